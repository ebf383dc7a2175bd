"""All checks of this package: their flags, and the reading of observations."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from adaexplore.core.files.declarations import declared
from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Observation

_KIND = "kind"


@cache
def all_checks() -> tuple[Check[Any], ...]:
    """Return the ``CHECK`` of every module that has one, by the modules' names."""
    return tuple(declared("online_judge.checks", "CHECK"))


@cache
def all_flags() -> Mapping[str, FlagKind]:
    """Return all flags by id; raises ValueError if two checks have the same."""
    kinds = [kind for check in all_checks() for kind in check.flags]
    by_id = {kind.id: kind for kind in kinds}
    if len(by_id) < len(kinds):
        raise ValueError("two flags have the same id")
    return by_id


def flags_of(fact: CheckFact) -> Iterator[Found]:
    """Yield the flags that all checks find in a fact."""
    for check in all_checks():
        if isinstance(fact, check.facts):
            yield from check.find(fact)


@cache
def _observations() -> Mapping[str, type[Observation]]:
    facts = (fact for check in all_checks() for fact in check.facts)
    return {fact.__name__: fact for fact in facts if issubclass(fact, Observation)}


def _read(data: object) -> object:
    """Read an evaluator's message strictly; raises ValueError."""
    if not isinstance(data, dict):
        return data
    cls = _observations().get(str(data.get(_KIND)))
    if cls is None:
        raise ValueError(f"no check reads an observation of the kind {data.get(_KIND)!r}")
    return cls.from_json({key: value for key, value in data.items() if key != _KIND})


def _write(fact: Observation) -> dict[str, Any]:
    return {_KIND: type(fact).__name__, **fact.to_json()}


AnyObservation = Annotated[Observation, BeforeValidator(_read), PlainSerializer(_write)]
"""An observation that some check reads; its JSON names its type."""
