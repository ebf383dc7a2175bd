"""What the timing of a candidate against its baseline gave, as numbers; imports no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from online_judge.common.gpu_peaks import Peak
from online_judge.protocol.facts import Fact
from online_judge.protocol.observations import Observation

# bits of NVML's clocks event reasons; idle, application clocks and sync boost slow nothing down unasked
_SLOWDOWNS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True)
class GpuState:
    """One look at a GPU.

    Attributes:
        sm_mhz: clock of the multiprocessors.
        memory_mhz: clock of the memory.
        temperature_c: of the chip.
        power_w: drawn.
        reasons: NVML's bit mask of why the clocks are not higher.
        processes: compute processes on it, the judge's own included.
    """

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    reasons: int
    processes: int

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Why the GPU runs slower than it was asked to."""
        return tuple(name for bit, name in _SLOWDOWNS.items() if self.reasons & bit)

    def to_json(self) -> dict[str, Any]:
        """For verdicts and results."""
        return {**asdict(self), "slowdowns": list(self.slowdowns)}


@dataclass(frozen=True)
class Times:
    """Statistics of one side in milliseconds, not rounded; mean and deviation without 5 % at either end."""

    mean: float
    median: float
    std: float
    min: float
    max: float
    p10: float
    p90: float
    mad: float
    num_trials: int


@dataclass(frozen=True)
class HostClock:
    """Medians of what the evaluator's own clock saw, in milliseconds.

    Attributes:
        wall_open_ms: wall time of a block outside of the claimed times.
        baseline_open_ms: the same of the baseline's blocks.
        block_ms: claimed length of a block.
        tail_ms: how long the GPU works on after a block.
        graph_ms: of a call within a replayed graph; None where none was replayed.
        copy_ms: of copying the outputs of one call.
    """

    wall_open_ms: float
    baseline_open_ms: float
    block_ms: float
    tail_ms: float
    graph_ms: float | None
    copy_ms: float


@dataclass(frozen=True)
class DeviceUse:
    """Seconds on the device.

    Attributes:
        held_s: for which it was held exclusively.
        waited_s: of waiting for that.
        gpu_s: in which the GPU worked for calls of either side.
        spent_s: of the timing by part: warm-up, marked, plain and graph rounds.
    """

    held_s: float
    waited_s: float
    gpu_s: float
    spent_s: dict[str, float]


class Timing(Fact):
    """A candidate's times beside its baseline's; milliseconds a call unless stated otherwise.

    Attributes:
        times: statistics of the candidate's timed calls.
        speedup: the baseline's time that counts / the candidate's.
        ci_low: lower end of the speedup's bootstrap interval.
        ci_high: its upper end.
        gpu_ms: median of the candidate by events.
        score_ms: the candidate's time that counts.
        e2e_ms: of the candidate on the wall, outputs copied.
        baseline_ms: the baseline's time that counts.
        recorded: whether that is a recorded time and not a measured one.
        baseline_gpu_ms: median of the baseline by events.
        baseline_e2e_ms: of the baseline on the wall.
        baseline_clean_ms: of the baseline before any candidate was loaded; None where it was not measured.
        baseline_trials: timed calls of the baseline.
        rounds: of the interleaved timing.
        use: of the device.
        host: what the evaluator's own clock saw.
        before: state of the GPU before the timing; None where it cannot be read.
        after: the same afterwards.
        peak: rates that the GPU cannot exceed; None where they are not known.
        output_bytes: bytes that every call must write.
        read_bytes: bytes of inputs and weights.
        flops: operations of the reference.
        observations: what is odd about the times and the timed outputs, in the order of their discovery.
    """

    times: Times
    speedup: float
    ci_low: float
    ci_high: float
    gpu_ms: float
    score_ms: float
    e2e_ms: float
    baseline_ms: float
    recorded: bool
    baseline_gpu_ms: float
    baseline_e2e_ms: float
    baseline_clean_ms: float | None
    baseline_trials: int
    rounds: int
    use: DeviceUse
    host: HostClock
    before: GpuState | None
    after: GpuState | None
    peak: Peak | None
    output_bytes: int
    read_bytes: int
    flops: float
    observations: tuple[Observation, ...] = ()
