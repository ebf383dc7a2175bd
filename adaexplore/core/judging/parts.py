"""Parts of a verdict. Only what was given is written, and nested keys that other judges add are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.text.tunables import Values
from adaexplore.core.wire import Tier

_Calls = Annotated[tuple[float, ...], Field(strict=False)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class FailureText(Part):
    """Texts about a failure under the release's names; differences are texts with six decimals."""

    model_config = ConfigDict(extra="forbid")

    error: str = ""
    stage: str = ""
    max_difference: tuple[str, ...] = Field(default=(), strict=False)
    avg_difference: tuple[str, ...] = Field(default=(), strict=False)
    correctness_issue: str = ""
    correctness_issue_name: str = ""
    compilation_error_name: str = ""
    compilation_error: str = ""
    runtime_error_name: str = ""
    runtime_error: str = ""
    lint: str = ""  # the lint's rule, of a failure that a lint found


class PrecisionLimit(Part):
    rms: float
    peak: float
    noise: float | None = None  # of the root mean square that no common factor explains


class Precision(Part):
    """Error and limits of the least precise output, in its standard deviations; None: not finite."""

    tier: Tier | None = None
    rms: float | None = None
    peak: float | None = None
    noise: float | None = None
    limits: dict[Tier, PrecisionLimit] = Field(default_factory=dict)
    basis: str = ""  # origin of the limits below ``strict``: ``emulated`` or ``constants``


class Tuned(Part):
    """The sweep over a candidate's tunables, or its part on one workload; times are milliseconds.

    ``problem`` says why the tunables were not used; ``timing`` is ``interpreter`` if nothing was swept.
    """

    workload: str = ""
    shape: tuple[int, ...] = Field(default=(), strict=False)
    values: Values | None = None
    tried: int = 0
    failed: int = 0
    declared_ms: float | None = None
    best_ms: float | None = None
    declared: Values | None = None
    reasons: dict[str, int] = Field(default_factory=dict)
    by_shape: tuple[Tuned, ...] = Field(default=(), strict=False)
    seconds: float | None = None
    spent_s: dict[str, float] = Field(default_factory=dict)
    timing: str = ""
    problem: str = ""


class Effect(Part):
    """An input or buffer that the reference writes."""

    name: str
    role: Literal["input", "buffer"]


class DeviceUse(Part):
    """Seconds on the device."""

    held_s: float  # held exclusively
    waited_s: float  # waited for that
    gpu_s: float  # in which the GPU worked for calls of either side
    # of the timing by part: warm-up, marked, single, plain and graph rounds; empty for several workloads
    spent_s: dict[str, float] = Field(default_factory=dict)


class HostClock(Part):
    """Medians by the evaluator's own clock, in milliseconds."""

    wall_open_ms: float  # wall time of a block beyond the claimed times
    baseline_open_ms: float  # the same of the baseline's blocks
    block_ms: float  # claimed length of a block
    tail_ms: float  # how long the GPU works on after a block
    graph_ms: float | None  # of a call within a replayed graph; None if none was replayed
    copy_ms: float  # of copying the outputs of one call
    single_ms: float | None = None  # of the fastest call in a block of its own; None without such blocks
    baseline_single_ms: float | None = None  # likewise


class RuntimeStats(Part):
    """Times of a candidate that passed, in milliseconds a call unless stated otherwise.

    Judges differ in what they give; see :class:`online_judge.protocol.measurement.Timing`.
    """

    runtime_ms: float | None = None  # the mean of the timed calls, or the time that counts instead
    mean: float | None = None
    median: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    p10: float | None = None
    p90: float | None = None
    mad: float | None = None
    num_trials: int | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    gpu_ms: float | None = None
    score_ms: float | None = None
    e2e_ms: float | None = None
    baseline_gpu_ms: float | None = None
    baseline_e2e_ms: float | None = None
    baseline_clean_ms: float | None = None
    baseline_trials: int | None = None
    rounds: int | None = None
    hardware: str = ""
    device: str = ""
    speedup: float | None = None  # the baseline's time that counts / the candidate's
    baseline: str = ""
    baseline_type: str = ""  # ``recorded`` or ``measured``
    baseline_ms: float | None = None  # the baseline's time that counts
    use: DeviceUse | None = None
    host: HostClock | None = None
    clocks: dict[str, Any] | None = None  # states of the GPU before and after
    forward_gpu_ms: float | None = None
    baseline_forward_gpu_ms: float | None = None
    stopped_early: bool = False  # the candidate is clearly slower than the request's ``best_so_far``
    baseline_samples: tuple[_Calls, ...] = Field(default=(), strict=False)  # by round
    kernels: dict[str, Any] | None = None  # the longest kernels of a call, and the share of own ones
    sol_ms: float | None = None  # the hardware's bound
    sol_score: float | None = None  # how near it is: 1 at the bound, 0.5 as fast as the baseline
    unknown: dict[str, Any] = Field(default_factory=dict)  # keys of other judges
