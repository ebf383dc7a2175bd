"""Each check is joined with what measures its facts; nothing is left over."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from online_judge import checks
from online_judge.checks.check import Check, FlagKind, Observation
from online_judge.checks.facts.findings import Fact
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
    """Return the source of a function by its dotted name."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return inspect.getsource(found)
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("check", all_checks(), ids=lambda check: check.flags[0].id)
def test_functions_that_a_check_names_measure_it(check: Check[Fact]) -> None:
    sources = "\n".join(map(source_of, check.measured_by))
    for fact in check.facts:
        if issubclass(fact, Observation):
            assert f"{fact.__name__}(" in sources or f"{fact.__name__}.from_claim(" in sources, fact


def test_every_flag_belongs_to_one_check() -> None:
    declared = [kind for check in all_checks() for kind in check.flags]
    assert len(declared) == len({kind.id for kind in declared})
    assert defined(FlagKind) - {FlagKind} == set(declared)


def test_every_fact_is_read_by_a_check() -> None:
    read = {fact for check in all_checks() for fact in check.facts}
    assert defined(Fact) - {Observation} == read


def test_observation_that_no_check_reads_is_refused() -> None:
    result = EvaluationResult(ending={"kind": "passed"}).to_json()  # type: ignore[arg-type]
    for kind in ({"kind": "CallWork"}, {"kind": "Nothing"}, {}):
        with pytest.raises(ValueError, match="no check reads"):
            EvaluationResult.from_json(result | {"observations": [kind]})
