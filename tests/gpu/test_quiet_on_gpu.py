"""Whether others use a real GPU; run it with nothing else on the GPU."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch

from online_judge.common.timing import Stopwatch

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

OTHER_PROGRAM = """
import torch
a = torch.randn(8192, 8192, device="cuda")
while True:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    print("works", flush=True)
"""


@pytest.mark.parametrize("launch_s", [0.0, 2e-4])
def test_slow_host_is_nobody_else(cuda: None, launch_s: float) -> None:
    stopwatch = Stopwatch()
    zero = stopwatch._zero

    def late(flush: torch.Tensor) -> None:
        until = time.perf_counter() + launch_s
        while time.perf_counter() < until:
            pass
        zero(flush)

    stopwatch._zero = late
    assert stopwatch.wait_for_quiet()


def test_other_program_is_seen(cuda: None) -> None:
    stopwatch = Stopwatch()
    other = subprocess.Popen([sys.executable, "-c", OTHER_PROGRAM], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"works\n"
        assert not stopwatch.wait_for_quiet()
    finally:
        other.kill()
        other.wait()
