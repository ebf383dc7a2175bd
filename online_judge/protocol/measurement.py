"""Numbers of a candidate's timing against its baseline; imports no torch."""

from dataclasses import dataclass
from typing import NamedTuple

from adaexplore.core.judging.parts import DeviceUse, HostClock
from adaexplore.core.wire import DtypeName
from online_judge.checks.facts.findings import Fact
from online_judge.checks.registry import AnyObservation
from online_judge.checks.timing.throttling import GpuState
from online_judge.common.gpu_peaks import Peak


class CleanMs(NamedTuple):
    """Times of a baseline's call in ms with no candidate around."""

    gpu: float  # median
    wall: float  # of the fastest call
    covered: float  # median after flushes that hide its launches

    def after(self, flushes: int) -> float:
        """Return the median to compare with calls that came after so many flushes each."""
        return self.covered if flushes > 1 else self.gpu


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


class Timing(Fact):
    """A candidate's times beside its baseline's; milliseconds a call unless stated otherwise."""

    times: Times  # statistics of the candidate's timed calls
    speedup: float  # the baseline's time that counts / the candidate's
    ci_low: float  # lower end of the speedup's bootstrap interval
    ci_high: float  # its upper end
    gpu_ms: float  # median of the candidate by events
    score_ms: float  # the candidate's time that counts
    e2e_ms: float  # of the candidate on the wall, outputs copied
    baseline_ms: float  # the baseline's time that counts
    recorded: bool  # whether that is a recorded time and not a measured one
    baseline_gpu_ms: float  # median of the baseline by events
    baseline_e2e_ms: float  # of the baseline on the wall
    baseline_clean_ms: float | None  # before any candidate was loaded; None: not measured
    baseline_stays_slow: bool  # it was much slower after the timing than that
    baseline_slowed: bool  # it was much slower than that in nearly all rounds, but not after them
    baseline_trials: int  # timed calls of the baseline
    rounds: int  # of the interleaved timing
    use: DeviceUse  # of the device
    host: HostClock  # times by the evaluator's own clock
    before: GpuState | None  # state of the GPU before the timing; None if unreadable
    after: GpuState | None  # the same afterwards
    peak: Peak | None  # rates that the GPU cannot exceed; None if unknown
    stopped_early: bool  # whether timing ended because the candidate is clearly slower than the best so far
    output_bytes: int  # bytes that every call must write
    read_bytes: int  # bytes of inputs and weights
    flops: float  # operations of the reference
    dtype: DtypeName = "fp32"  # of its arithmetic
    observations: tuple[AnyObservation, ...] = ()  # about times and timed outputs, in order of discovery
    baseline_samples: tuple[tuple[float, ...], ...] = ()  # of the baseline by round, if requested
    forward_gpu_ms: float | None = None  # part of ``gpu_ms``; None if calls run no backward passes
    baseline_forward_gpu_ms: float | None = None  # likewise, of ``baseline_gpu_ms``
