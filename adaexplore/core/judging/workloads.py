"""Results by workload in a verdict, for problems with several workloads."""

from __future__ import annotations

from pydantic import ConfigDict

from adaexplore.core.judging.parts import Part
from adaexplore.core.judging.status import Status
from adaexplore.core.wire import Workload


class WorkloadVerdict(Workload):
    """The result on one workload.

    ``flags`` are ids, ``why`` is the first line of the feedback on a failure; times are milliseconds and
    None if nothing was timed. ``speedup`` is ``baseline_ms / score_ms``; judges before these two had only
    times by the GPU's events, which do not always count.
    """

    model_config = ConfigDict(extra="allow")

    status: Status
    correctness: bool
    speedup: float | None = None
    gpu_ms: float | None = None
    baseline_gpu_ms: float | None = None
    score_ms: float | None = None
    baseline_ms: float | None = None
    sol_score: float | None = None
    flags: tuple[str, ...] = ()
    why: str = ""

    @property
    def times_ms(self) -> tuple[float | None, float | None]:
        """The times of kernel and reference that count."""
        if self.score_ms is None or self.baseline_ms is None:
            return self.gpu_ms, self.baseline_gpu_ms
        return self.score_ms, self.baseline_ms

    @property
    def summary(self) -> str:
        """Return name, weight, inputs, and the speedup with its times, or the status."""
        found = self.status if self.speedup is None else f"{self.speedup:.3f}x"
        kernel_ms, reference_ms = self.times_ms
        if kernel_ms is not None and reference_ms is not None:
            found += f" ({kernel_ms:.4g} ms, reference {reference_ms:.4g} ms)"
        inputs = f", inputs {self.inputs}" if self.inputs else ""
        return f"{self.name} (weight {self.weight:g}{inputs}): {found}"


HIDDEN = "a hidden workload"


class WorstWorkload(Part):
    """A workload that failed or is slower than the reference; safe to show.

    ``name`` is :data:`HIDDEN` for a hidden one.
    """

    name: str
    why: str
