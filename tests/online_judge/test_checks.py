"""Each check is joined with what measures its facts; nothing is left over."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from online_judge import checks
from online_judge.checks.behaviour.static_notes import SourceText
from online_judge.checks.check import CheckFact, FlagKind, Observation
from online_judge.checks.registry import all_checks
from online_judge.protocol.result import EvaluationResult

FACTS = "online_judge.checks.facts"


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(checks.__path__, f"{checks.__name__}."):
        if not found.name.startswith(FACTS):
            yield importlib.import_module(found.name)


def defined(kind: type) -> set[Any]:
    """Return what the modules of checks define of a type, or as its subclasses."""
    names = {module.__name__ for module in modules()}
    values = [value for module in modules() for value in vars(module).values()]
    held = [value for each in values if isinstance(each, dict) for value in each.values()]
    instances = {value for value in [*values, *held] if isinstance(value, kind)}
    classes = {
        value
        for value in values
        if isinstance(value, type) and issubclass(value, kind) and value.__module__ in names
    }
    return instances | classes


def source_of(name: str) -> str:
    """Return the source of a function of the judge by its dotted name."""
    parts = ["online_judge", *name.split(".")]
    for length in range(len(parts) - 1, 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            found: Any = importlib.import_module(".".join(parts[:length]))
            return inspect.getsource(operator.attrgetter(".".join(parts[length:]))(found))
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("fact", sorted(defined(CheckFact) - {CheckFact, Observation}, key=str))
def test_named_function_finds_the_fact(fact: type[CheckFact]) -> None:
    source = source_of(fact.MEASURED_BY) if fact.MEASURED_BY else ""
    assert source or fact is SourceText
    if issubclass(fact, Observation):
        assert f"{fact.__name__}(" in source or f"{fact.__name__}.from_claim(" in source


def test_every_flag_belongs_to_one_check() -> None:
    declared = [kind for check in all_checks() for kind in check.flags]
    assert len(declared) == len({kind.id for kind in declared})
    assert defined(FlagKind) - {FlagKind} == set(declared)


def test_every_fact_is_read_by_a_check() -> None:
    read = {fact for check in all_checks() for fact in check.facts}
    assert defined(CheckFact) - {CheckFact, Observation} == read


def test_observation_that_no_check_reads_is_refused() -> None:
    result = EvaluationResult(ending={"kind": "passed"}).to_json()  # type: ignore[arg-type]
    for kind in ({"kind": "CallWork"}, {"kind": "Nothing"}, {}):
        with pytest.raises(ValueError, match="no check reads"):
            EvaluationResult.from_json(result | {"observations": [kind]})
