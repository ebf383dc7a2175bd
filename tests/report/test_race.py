from __future__ import annotations

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.report.race import race, race_text
from tests.verdicts import make_verdict


def timed(speedup: float, *interval: float) -> Verdict:
    stats = {"fast_p": speedup} | dict(zip(("ci_low", "ci_high"), interval, strict=False))
    return make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats=stats)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (timed(3.0, 2.9, 3.1), timed(2.0, 1.9, 2.1), "a is 1.500x as fast as b (95% interval 1.41"),
        (timed(2.0, 1.9, 2.1), timed(3.0, 2.9, 3.1), "b is 1.500x as fast as a (95% interval 1.41"),
        (timed(2.0, 1.9, 2.1), timed(2.05, 1.9, 2.2), "no difference between b and a can be measured"),
        (timed(2.0), timed(1.0, 0.9, 1.1), "a is 2.000x as fast as b"),
        (timed(2.0), Verdict(status=Status.COMPILE), "a and b cannot be compared"),
        (Verdict(status=Status.PASSED), timed(2.0), "a and b cannot be compared"),
    ],
)
def test_faster_kernel_is_named_when_certain(first: Verdict, second: Verdict, said: str) -> None:
    assert race_text("a", "b", race(first, second)).startswith(said)


def test_ratio_interval_is_wider_than_both_inputs() -> None:
    found = race(timed(3.0, 2.7, 3.3), timed(3.0, 2.7, 3.3))
    assert found is not None
    assert found.interval is not None
    assert found.interval.low < 0.9
    assert found.interval.high > 1.1
