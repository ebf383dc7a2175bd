"""A known kernel that shows whether a device computes and times as it should."""

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.slots.jobs import EvaluationJob

MOST_SLOWER = 1.03
"""A device's canary may take this many times as long as the fastest of its model."""

_PROBLEM = """
import torch

STEPS = 64
SIZE = 2**24 if torch.cuda.is_available() else 2**10


class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(STEPS):
            x = x * 0.5 + 1.0
        return x


def get_inputs():
    return [torch.rand(SIZE)]


def get_init_inputs():
    return []
"""
_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    for _ in range(STEPS):
        value = value * 0.5 + 1.0
    tl.store(y + places, value, mask=places < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), 64, 1024)
        return y
"""


def job(number: int) -> EvaluationJob:
    """Return the canary as a job; each has a number of its own."""
    request = EvaluationRequest(
        original_model_src=_PROBLEM,
        custom_model_src=_KERNEL,
        backend="triton",
        measure_performance=True,
        num_perf_trials=100,
    )
    return EvaluationJob("candidate", request, id=f"canary-{number}")


class Canaries:
    """The canary's fastest time on each model."""

    def __init__(self) -> None:
        self._fastest_ms: dict[str, float] = {}

    def fault(self, hardware: str, verdict: Verdict) -> str | None:
        """Return what is wrong with a device on which the canary got this verdict; None if nothing."""
        if not verdict.correct:
            return f"the canary kernel got the verdict {verdict.status.value}"
        ms = verdict.runtime_ms
        if ms is None:  # nothing is timed there
            return None
        fastest_ms = self._fastest_ms[hardware] = min(ms, self._fastest_ms.get(hardware, ms))
        if ms > MOST_SLOWER * fastest_ms:
            return f"the canary kernel took {ms:.4g} ms; the fastest {hardware} takes {fastest_ms:.4g} ms"
        return None
