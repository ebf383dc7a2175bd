"""Merge several verdicts: the score, the worst workload, and secrecy of hidden ones."""

import json
import math
from typing import Any

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.wire import Workload
from online_judge.verdict.merging import Judged, merged, says_more
from tests.verdicts import changed, make_verdict, metadata_of, stats_of


def passed(name: str, speedup: float, weight: float = 1.0, hidden: bool = False, **metadata: Any) -> Judged:
    stats = {
        "fast_p": speedup,
        "ci_low": speedup / 2,
        "ci_high": speedup * 2,
        "gpu_ms": 1.0,
        "baseline_gpu_ms": speedup,
        "clocks": {"at": name},
        "slot": {"held_s": 1.0, "waited_s": 0.0, "gpu_s": 0.5, "spent_s": {}},
    }
    verdict = make_verdict(status=Status.PASSED, metadata=metadata, runtime_ms=1.0, runtime_stats=stats)
    return Judged(Workload(name=name, weight=weight, hidden=hidden, inputs="float32[8]"), verdict)


def failed(name: str, status: Status = Status.WRONG_VALUE, hidden: bool = False, **metadata: Any) -> Judged:
    metadata = {"feedback": f"{status}: [37, 5] is wrong\nNext: look", "hardware": "h"} | metadata
    workload = Workload(name=name, weight=1.0, hidden=hidden, inputs="" if hidden else "float32[8]")
    return Judged(workload, make_verdict(status=status, metadata=metadata))


def with_stats(judged: Judged, **stats: Any) -> Judged:
    return Judged(judged.workload, changed(judged.verdict, **stats))


def test_score_is_the_weighted_geometric_mean() -> None:
    verdict = merged([passed("a", 8.0), passed("b", 1.0, weight=2.0)], [])
    assert verdict.speedup == pytest.approx(2.0)
    assert verdict.speedup_interval == pytest.approx((1.0, 4.0))
    assert stats_of(verdict)["baseline_gpu_ms"] == pytest.approx(2.0)
    assert verdict.runtime_ms == pytest.approx(1.0)
    assert "clocks" not in stats_of(verdict)
    assert stats_of(verdict)["slot"]["held_s"] == 2.0
    assert [each["speedup"] for each in metadata_of(verdict)["workloads"]] == [8.0, 1.0]
    assert "worst_workload" not in metadata_of(verdict)


@pytest.mark.parametrize("weight", [5e-324, 1.7e308])
def test_equal_weights_of_any_size_give_one_score(weight: float) -> None:
    verdict = merged([passed(name, 4.0, weight=weight) for name in "ab"], [])
    assert verdict.speedup == pytest.approx(4.0)


@pytest.mark.parametrize(("speedup", "named"), [(0.94, True), (0.96, False)])
def test_slow_workload_is_named_below_the_limit(speedup: float, named: bool) -> None:
    verdict = merged([passed("a", 8.0), passed("b", speedup)], [])
    expected = {"name": "b", "why": "speedup 0.94"} if named else None
    assert metadata_of(verdict).get("worst_workload") == expected
    assert verdict.speedup == pytest.approx(math.sqrt(8.0 * speedup))


@pytest.mark.parametrize(("second", "merged_score"), [(0.0, 0.0), (0.25, 0.5), (None, None)])
def test_sol_score_of_zero_counts(second: float | None, merged_score: float | None) -> None:
    judged = [passed("a", 2.0), passed("b", 2.0)]
    judged[0] = with_stats(judged[0], sol_score=1.0)
    if second is not None:
        judged[1] = with_stats(judged[1], sol_score=second)
    assert stats_of(merged(judged, [])).get("sol_score") == merged_score


def test_timeout_feedback_names_limit_of_all_workloads() -> None:
    assert "of all workloads" in merged([passed("a", 2.0), failed("b", Status.TIMEOUT)], []).feedback
    assert "of all workloads" not in merged([passed("a", 2.0), failed("b")], []).feedback


def test_slow_hidden_workload_keeps_its_name() -> None:
    verdict = merged([passed("a", 8.0), passed("secret", 0.5, hidden=True)], [])
    assert metadata_of(verdict)["worst_workload"] == {"name": "a hidden workload", "why": "speedup 0.5"}


def test_failure_on_one_fails_the_kernel() -> None:
    verdict = merged([passed("a", 8.0), failed("b")], [])
    assert (verdict.status, verdict.speedup, stats_of(verdict)) == (Status.WRONG_VALUE, None, {})
    assert metadata_of(verdict)["worst_workload"] == {"name": "b", "why": "wrong_value"}
    assert verdict.feedback.startswith(
        "it fails on workload 'b' (float32[8]) and passes on 1 of 2 workloads\n"
    )
    assert "[37, 5]" in verdict.feedback
    assert metadata_of(verdict)["workloads"][1]["why"] == "wrong_value: [37, 5] is wrong"


def test_shown_failure_explains_before_a_hidden_one() -> None:
    verdict = merged([failed("secret", hidden=True), failed("b", Status.COMPILE)], [])
    assert verdict.status is Status.COMPILE
    assert metadata_of(verdict)["worst_workload"]["name"] == "b"


def test_hidden_failure_gives_only_its_status() -> None:
    flags = {"integrity": ["inputs_written"], "integrity_evidence": []}
    words: dict[str, Any] = {"stdout": "37", "runtime_error": "37", "max_difference": ["37"], **flags}
    verdict = merged([passed("a", 2.0), failed("secret", hidden=True, **words)], [])
    told = metadata_of(verdict)
    workloads = told.pop("workloads")
    text = json.dumps(told)
    assert "37" not in text
    assert "secret" not in text
    assert metadata_of(verdict)["hardware"] == "h"
    assert [flag.evidence for flag in verdict.flags] == ["a hidden workload"]
    assert workloads[1]["why"] == ""


def test_input_independent_failure_stays_unchanged() -> None:
    first = failed("a", Status.SYNTAX)
    verdict = merged([first], [Workload(name="b", weight=1.0)])
    assert verdict.feedback == first.verdict.feedback
    assert [each["status"] for each in metadata_of(verdict)["workloads"]] == ["syntax", "not_checked"]


def test_flags_of_all_are_kept_with_their_workload() -> None:
    def flagged(name: str) -> dict[str, Any]:
        evidence = [{"id": name, "severity": "suspect", "evidence": "e"}]
        return {"integrity": [name], "integrity_evidence": evidence, "problem_flags": ["constant_inputs"]}

    judged = [passed("a", 2.0, **flagged("stale_weights")), passed("b", 2.0, **flagged("decoy_kernel"))]
    verdict = merged(judged, [])
    assert [flag.id for flag in verdict.flags] == ["stale_weights", "decoy_kernel"]
    assert verdict.flags[1].evidence == "workload 'b': e"
    assert [flag.id for flag in verdict.problem_flags] == ["constant_inputs"]
    assert [each["flags"] for each in metadata_of(verdict)["workloads"]] == [
        ["stale_weights"],
        ["decoy_kernel"],
    ]


DEGENERATE: dict[str, Any] = {"problem_flags": ["degenerate_problem"]}


@pytest.mark.parametrize(
    ("judged", "left", "flags"),
    [
        ([passed("a", 2.0, **DEGENERATE), passed("b", 2.0)], [], ["trivial_workload"]),
        ([passed("a", 2.0, **DEGENERATE), passed("b", 2.0, **DEGENERATE)], [], ["degenerate_problem"]),
        ([failed("a", **DEGENERATE), passed("b", 2.0)], [], ["trivial_workload"]),
        ([failed("a", **DEGENERATE)], [Workload(name="b", weight=1.0)], []),
        ([failed("a", hidden=True, **DEGENERATE), passed("b", 2.0)], [], ["trivial_workload"]),
        ([failed("a"), passed("b", 2.0, **DEGENERATE)], [], []),
        ([failed("a", **DEGENERATE), passed("b", 2.0, **DEGENERATE)], [], ["degenerate_problem"]),
    ],
)
def test_problem_is_degenerate_on_all_workloads(
    judged: list[Judged], left: list[Any], flags: list[str]
) -> None:
    verdict = merged(judged, left)
    assert [each.id for each in verdict.problem_flags] == flags
    assert verdict.degenerate == (flags == ["degenerate_problem"])


def test_trivial_workloads_do_not_count_in_the_score() -> None:
    verdict = merged([passed("a", 50.0, **DEGENERATE), passed("b", 2.0)], [])
    assert (verdict.speedup, stats_of(verdict)["baseline_gpu_ms"]) == (2.0, 2.0)
    assert stats_of(verdict)["slot"]["held_s"] == 2.0
    all_trivial = merged([passed(name, 4.0, **DEGENERATE) for name in "ab"], [])
    assert all_trivial.speedup == pytest.approx(4.0)


def test_times_that_count_are_listed() -> None:
    first = with_stats(passed("a", 1.0), score_ms=10.0, baseline_time=10.0, gpu_ms=0.1)
    listed = merged([first, passed("b", 2.0)], []).workloads
    assert (listed[0].times_ms, listed[1].times_ms) == ((10.0, 10.0), (1.0, 2.0))
    assert "10 ms, reference 10 ms" in listed[0].summary


def precision(tier: str) -> dict[str, Any]:
    return {"tier": tier, "rms": 0.1, "peak": 1.0, "noise": 0.1, "limits": {}, "basis": "constants"}


def test_least_precise_workload_decides_the_tier() -> None:
    judged = [
        passed("a", 2.0, tier="strict", precision=precision("strict")),
        passed("b", 2.0, tier="half", precision=precision("half")),
    ]
    verdict = merged(judged, [])
    assert (verdict.tier, metadata_of(verdict)["precision"]) == ("half", precision("half"))


@pytest.mark.parametrize(
    ("statuses", "more"),
    [
        ([Status.WRONG_VALUE], True),
        ([Status.WRONG_VALUE] * 3, False),
        ([Status.SYNTAX], False),
        ([Status.TIMEOUT], False),
        ([Status.CRASH], True),
    ],
)
def test_judging_stops_after_three_or_final_failures(statuses: list[Status], more: bool) -> None:
    judged = [failed(str(number), status) for number, status in enumerate(statuses)]
    assert says_more([passed("ok", 1.0), *judged]) is more
