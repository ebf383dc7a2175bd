from __future__ import annotations

import contextlib
import signal
import time

import pytest

from adaexplore.core.cpu_limit import CpuLimitReached, cpu_limit


def loop() -> None:
    with cpu_limit(0.2, "too long"):
        while True:
            with contextlib.suppress(Exception):  # as a careless program does
                sum(range(1000))


def test_an_endless_loop_is_ended() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(CpuLimitReached, match="too long"):
        loop()
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_waiting_does_not_count() -> None:
    with cpu_limit(0.2, "too long"):
        time.sleep(0.5)
