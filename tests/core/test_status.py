"""The table of statuses."""

from __future__ import annotations

import pytest

from adaexplore.core.judging.status import Stage, Status, StatusKind


@pytest.mark.parametrize("status", Status)
def test_every_fault_has_advice(status: Status) -> None:
    assert bool(status.row.advice) is (status is not Status.PASSED)


@pytest.mark.parametrize("status", Status)
def test_only_failures_with_error_texts_teach(status: Status) -> None:
    texts = (StatusKind.LOAD, StatusKind.BUILD, StatusKind.RUN, StatusKind.FORM)
    assert not status.row.teaches or status.row.kind in texts


@pytest.mark.parametrize("status", [Status.PASSED, Status.INTEGRITY, Status.TIMEOUT, Status.CRASH])
def test_candidates_cannot_claim_what_the_judge_decides(status: Status) -> None:
    assert not status.row.claimable


def test_each_stage_has_claimable_statuses() -> None:
    claimed = {stage for status in Status for stage in status.row.claimable}
    assert claimed == set(Stage)
