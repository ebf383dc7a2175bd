"""What else the judge found: tier, flags, interval; files of before stay readable."""

from __future__ import annotations

from typing import Any

import pytest

from adaexplore.core.judging.flags import Flag, ProblemFlag
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import from_metrics, to_metrics
from tests.verdicts import make_verdict

EVIDENCE = [
    {"id": "no_own_kernel", "severity": "suspect", "evidence": "0 of 5 calls launch one"},
    {"id": "launch_bound", "severity": "note", "evidence": "18 us"},
]
FLAGGED: dict[str, Any] = {
    "compiled": True,
    "correctness": True,
    "metadata": {
        "status": "passed",
        "hardware": "GPU",
        "tier": "tf32",
        "integrity": ["no_own_kernel", "launch_bound"],
        "integrity_evidence": EVIDENCE,
        "sandbox": {"network": True},
    },
    "runtime": 2.0,
    "runtime_stats": {"mean": 2.0, "fast_p": 1.5, "ci_low": 1.45, "ci_high": 1.56, "gpu_ms": 1.9},
}


def test_flags_tier_and_interval_survive_metrics() -> None:
    verdict = from_metrics(FLAGGED)
    assert to_metrics(verdict) == FLAGGED
    assert verdict.correct
    assert (verdict.tier, verdict.speedup_interval) == ("tf32", (1.45, 1.56))
    assert [flag.id for flag in verdict.flags] == ["no_own_kernel", "launch_bound"]
    assert verdict.flags[1] == Flag("launch_bound", "note", "18 us")
    assert verdict.suspect_flags == (Flag("no_own_kernel", "suspect", "0 of 5 calls launch one"),)


def test_verdict_that_stopped_early_is_measured() -> None:
    stats = FLAGGED["runtime_stats"] | {"stopped_early": True}
    verdict = from_metrics(FLAGGED | {"runtime_stats": stats})
    assert verdict.speedup is not None
    assert verdict.score == from_metrics(FLAGGED).score
    assert to_metrics(verdict)["runtime_stats"] == stats


def test_verdict_of_earlier_judge_has_no_new_fields() -> None:
    old = {**FLAGGED, "metadata": {"notes": ["tf32_asymmetric"]}, "runtime_stats": {"fast_p": 1.5}}
    verdict = from_metrics(old)
    assert (verdict.tier, verdict.speedup_interval, verdict.flags) == (None, None, ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"runtime_stats": {"fast_p": [2.0]}},
        {"runtime_stats": {"fast_p": "fast"}},
        {"metadata": {"status": "passed", "other_gpus": {"H100": {}}}},
        {"metadata": {"status": "compile", "other_gpus": ["H100"]}},
        {"metadata": {"status": "passed", "other_gpus": {"H100": [1]}}},
    ],
)
def test_figures_of_wrong_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_metrics(FLAGGED | wrong)


def test_a_flag_without_evidence_is_suspect() -> None:
    verdict = make_verdict(status=Status.PASSED, metadata={"integrity": ["something_new"]})
    assert verdict.suspect_flags == (Flag("something_new", "suspect", ""),)


PROBLEM = {"id": "degenerate_problem", "evidence": "trivial answers pass: zeros"}
OF_BEFORE = {
    "integrity": ["degenerate_problem", "launch_bound"],
    "integrity_evidence": [{**PROBLEM, "severity": "suspect"}, EVIDENCE[1]],
}
OF_NOW = {
    "integrity": ["launch_bound"],
    "integrity_evidence": [EVIDENCE[1]],
    "problem_flags": ["degenerate_problem"],
    "problem_flags_evidence": [PROBLEM],
}


@pytest.mark.parametrize("metadata", [OF_BEFORE, OF_NOW])
def test_a_flagged_problem_leaves_the_kernel_clean(metadata: dict[str, Any]) -> None:
    verdict = make_verdict(status=Status.PASSED, metadata=metadata)
    assert verdict.problem_flags == (ProblemFlag("degenerate_problem", "trivial answers pass: zeros"),)
    assert [flag.id for flag in verdict.flags] == ["launch_bound"]
    assert verdict.suspect_flags == ()


def test_a_rejected_candidate_is_not_correct() -> None:
    rejected = {
        "integrity": ["clock_mismatch"],
        "integrity_evidence": [{"id": "clock_mismatch", "severity": "reject", "evidence": "3x"}],
    }
    found = {**FLAGGED, "correctness": False, "metadata": {"status": "integrity", **rejected}}
    verdict = from_metrics(found)
    assert (verdict.status, verdict.correct, verdict.speedup) == (Status.INTEGRITY, False, None)
    assert verdict.score.compiled
    with pytest.raises(ValueError, match="clock_mismatch"):
        make_verdict(status=Status.PASSED, metadata=rejected)


@pytest.mark.parametrize(
    "stats", [{"ci_low": "1", "ci_high": 2.0}, {"ci_low": 1.0}, {"timing": "interpreter"}]
)
def test_interval_needs_two_numbers_and_measured_speedup(stats: dict[str, Any]) -> None:
    verdict = make_verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, **stats})
    assert verdict.speedup_interval is None


@pytest.mark.parametrize(
    "metadata",
    [{"integrity": "x"}, {"integrity_evidence": [7]}, {"problem_flags": "x"}, {"tier": ["strict"]}],
)
def test_malformed_metadata_gives_no_flags(metadata: dict[str, Any]) -> None:
    verdict = make_verdict(status=Status.PASSED, metadata=metadata)
    assert (verdict.flags, verdict.problem_flags, verdict.tier) == ((), (), None)
