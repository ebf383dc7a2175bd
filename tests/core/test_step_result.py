"""What a step is called, and whose verdict it shows."""

from __future__ import annotations

import pytest

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepResult
from adaexplore.core.verdict import Verdict
from tests.verdicts import make_verdict

PASSED = make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 2.0})
WRONG = Verdict(status=Status.COMPILE)


@pytest.mark.parametrize(
    ("kind", "outcome", "recorded", "name"),
    [
        (StepKind.SMALL, DraftOutcome.WRITTEN, PASSED, "passed"),
        (StepKind.SMALL, DraftOutcome.UNCHANGED, PASSED, "edit failed (unchanged)"),
        (StepKind.SMALL, DraftOutcome.UNCHANGED, WRONG, "edit failed (unchanged)"),
        (StepKind.SMALL, DraftOutcome.EDIT_FAILED, PASSED, "edit failed (not applied)"),
        (StepKind.SMALL, DraftOutcome.CUT, None, "edit failed (cut)"),
        (StepKind.SMALL, DraftOutcome.REFUSED, None, "edit failed (refused)"),
        (StepKind.SMALL, DraftOutcome.EMPTY, None, "edit failed (empty)"),
        (StepKind.SMALL, DraftOutcome.NO_CODE, None, "edit failed (no code)"),
        (StepKind.LARGE, DraftOutcome.NO_CODE, None, "no kernel (no code)"),
        (StepKind.LARGE, DraftOutcome.WRITTEN, WRONG, "compile"),
        (StepKind.SMALL, DraftOutcome.LINT_STOPPED, WRONG, "compile"),
        (StepKind.LARGE, DraftOutcome.SEED, None, "nothing to judge"),
    ],
)
def test_a_result_has_one_name(
    kind: StepKind, outcome: DraftOutcome, recorded: Verdict | None, name: str
) -> None:
    result = StepResult(kind, outcome, recorded)
    assert result.name == name
    assert result.edit_failed is name.startswith("edit failed")
    assert bool(result.why) is ("(" in name)
    assert result.verdict is (None if "(" in name else recorded)
