from collections import Counter
from typing import Any

import pytest

from online_judge.checks.facts.endings import Passed
from online_judge.checks.facts.precision import least_precise
from online_judge.common import trees
from online_judge.evaluator import rehearsal
from online_judge.evaluator.reference import Reference
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.verdict import flags

SPEC = ProcessSpec("", "cpu", "", "sm_90", role="evaluator")


def test_rehearsal_goes_to_the_end_and_grades_precision() -> None:
    result = rehearsal.rehearse(SPEC)
    assert isinstance(result.ending, Passed)
    assert least_precise(result.grades).limits.keys() == {"strict", "tf32"}
    assert flags.of_candidate(result.observations, "/job") == []


def test_reference_runs_once_on_each_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    outputs = Reference.outputs

    def counted(self: Reference, inputs: list[Any], trial: str | int, **filled: bool) -> trees.Tree:
        calls[str(trial).rpartition(":")[2]] += 1
        return outputs(self, inputs, trial, **filled)

    monkeypatch.setattr(Reference, "outputs", counted)
    rehearsal.rehearse(SPEC)
    assert [calls[name] for name in ("scaled", "shifted", "tied")] == [2, 1, 1]  # up and down
