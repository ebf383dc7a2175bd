from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.flags import Flags, ProblemFlag
from adaexplore.core.verdict import Status, Verdict
from adaexplore.run.retiming import combine


def timed(speedup: float, low: float | None = None, high: float | None = None) -> Verdict:
    stats = {"mean": 2.0 / speedup, "fast_p": speedup, "baseline_time": 2.0}
    if low is not None:
        stats |= {"ci_low": low, "ci_high": high}
    return Verdict(status=Status.PASSED, runtime_ms=2.0 / speedup, runtime_stats=stats)


def test_a_failure_outweighs_a_pass_in_either_order() -> None:
    wrong = Verdict(status=Status.NONDETERMINISTIC)
    assert combine(timed(2.0), wrong) is wrong
    assert combine(wrong, timed(2.0)) is wrong


def test_agreeing_timings_narrow_the_interval() -> None:
    both = combine(timed(2.0, 1.9, 2.1), timed(2.0, 1.9, 2.1))
    assert both.speedup_interval is not None
    assert abs((both.speedup or 0) - 2.0) < 1e-9
    assert 1.9 < both.speedup_interval.low < 2.0 < both.speedup_interval.high < 2.1


def test_disagreeing_timings_widen_it_over_both() -> None:
    both = combine(timed(2.0, 1.99, 2.01), timed(1.0, 0.99, 1.01))
    assert both.speedup_interval is not None
    assert both.speedup_interval.low <= 1.0 + 1e-9
    assert both.speedup_interval.high >= 2.0 - 1e-9


def test_the_surer_timing_weighs_more() -> None:
    both = combine(timed(2.0, 1.99, 2.01), timed(1.5, 1.0, 2.25))
    assert 1.95 < (both.speedup or 0) <= 2.0


def test_without_intervals_both_weigh_the_same() -> None:
    both = combine(timed(1.0), timed(4.0))
    assert abs((both.speedup or 0) - 2.0) < 1e-9
    assert abs((both.runtime_ms or 0) - 1.0) < 1e-9


def test_under_the_interpreter_there_is_nothing_to_combine() -> None:
    found = Verdict(status=Status.PASSED, runtime_stats={"fast_p": 1.0, "timing": "interpreter"})
    assert combine(found, found) is found


def flagged(verdict: Verdict, **severities: str) -> Verdict:
    told = [{"id": name, "severity": severity, "evidence": "seen"} for name, severity in severities.items()]
    return verdict.model_copy(update={"metadata": {"integrity": [*severities], "integrity_evidence": told}})


def test_flags_of_either_timing_stay_the_gravest_first() -> None:
    clean, noted = timed(2.0), flagged(timed(2.0), odd="note")
    suspect = flagged(timed(2.0), fast="suspect", odd="note")
    for pair in ((clean, suspect), (suspect, clean), (noted, suspect), (suspect, noted)):
        both = combine(*pair)
        assert [flag.id for flag in both.flags] == ["fast", "odd"]
        assert [flag.severity for flag in both.flags] == ["suspect", "note"]
    assert combine(clean, clean).metadata == clean.metadata


def test_flags_of_the_problem_stay_apart() -> None:
    problem = (ProblemFlag("degenerate_problem", "seen"),)
    now = timed(2.0).model_copy(update={"metadata": Flags(problem=problem).to_metadata()})
    before = flagged(timed(2.0), degenerate_problem="suspect", odd="note")
    for both in (combine(now, before), combine(before, now), combine(now, flagged(timed(2.0), odd="note"))):
        assert both.problem_flags == problem
        assert [flag.id for flag in both.flags] == ["odd"]


speedups = st.floats(0.01, 100)
errors = st.floats(1e-4, 0.5)


@given(speedups, errors, speedups, errors)
def test_the_combined_speedup_lies_between_and_its_interval_covers_both(
    first: float, first_error: float, second: float, second_error: float
) -> None:
    both = combine(
        timed(first, first * (1 - first_error), first * (1 + first_error)),
        timed(second, second * (1 - second_error), second * (1 + second_error)),
    )
    interval = both.speedup_interval
    assert interval is not None
    slack = 1e-9
    assert min(first, second) * (1 - slack) <= (both.speedup or 0) <= max(first, second) * (1 + slack)
    assert interval.low <= min(first, second) * (1 + slack)
    assert interval.high >= max(first, second) * (1 - slack)
    assert Verdict.from_metrics(both.to_metrics()) == both
