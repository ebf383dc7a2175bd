"""Answer of ``GET /v2/environment``: a judge's hardware, software and measurement.

A field that a judge cannot state is None or empty; then prompts leave it out.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.judging.profile import Profile
from adaexplore.core.wire import Direction, DtypeName, TensorFacts, Tf32Policy, Tier

FactName = Literal[
    "versions", "language", "hardware", "peaks", "precision", "measurement", "sweep", "reference"
]
"""The name of a fact in prompts, as in ``omit_facts``."""


def _is_absent(value: object) -> bool:
    return value is None


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True)


class DeviceFacts(_Facts):
    """One GPU, as torch and the CUDA driver describe it.

    Attributes:
        name: as torch names it.
        capability: compute capability, such as ``9.0``.
        multiprocessors: SMs.
        shared_bytes_per_block: maximum shared memory of a thread block that opts in.
        registers_per_multiprocessor: 32-bit registers of an SM.
        threads_per_multiprocessor: maximum resident threads of an SM.
        l2_bytes: size of the L2 cache.
        memory_bytes: size of the device's memory.
        bytes_per_s: peak memory bandwidth.
        flops: peak operations per second by precision (fp64, fp32, tf32, half, fp8), dense.
    """

    name: str
    capability: str
    multiprocessors: int | None = None
    shared_bytes_per_block: int | None = None
    registers_per_multiprocessor: int | None = None
    threads_per_multiprocessor: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    bytes_per_s: float | None = None
    flops: dict[str, float] = {}

    @property
    def target(self) -> str:
        """Return the target architecture of kernels, such as ``sm_90``."""
        return f"sm_{self.capability.replace('.', '')}"


class TritonFacts(_Facts):
    """Names and parameters of the judge's Triton.

    Attributes:
        names: public names by module: ``triton.language`` and its submodules.
        gone: names of earlier versions that this version lacks.
        parameters: of the functions of ``triton.language``, as a ``def`` writes them; defaults are None.
        launch_options: keywords of a launch that are not parameters of the kernel.
        range_options: keywords of ``tl.range``.
        range_note: the sentence of its documentation about hardware, if there is one.
        descriptors: functions that make tensor descriptors.
    """

    names: dict[str, list[str]] = {}
    gone: list[str] = []
    parameters: dict[str, str] = {}
    launch_options: list[str] = []
    range_options: list[str] = []
    range_note: str = ""
    descriptors: list[str] = []


class PrecisionTest(_Facts):
    """Rules of the precision tiers; errors are in standard deviations of the output.

    Attributes:
        sets: input sets whose outputs are compared with the reference in double precision.
        strict_times: factor on the error of PyTorch in float32 without TF32 that ``strict`` allows.
        strict_floor_ulp: units in the last place that it always allows; more for long sums.
        rounded_times: factor on the error of the reference with rounded operands that lower tiers allow.
        mantissa_bits: mantissa bits of the rounded operands, by tier.
        noise: error beyond a common factor that such a tier allows if the reference cannot run with rounded
            operands.
    """

    sets: int
    strict_times: float
    strict_floor_ulp: float
    rounded_times: float
    mantissa_bits: dict[Tier, int]
    noise: dict[Tier, float]


class Flags(_Facts):
    """Precision of float32 matrix products under one policy."""

    allow_tf32: bool  # of torch's own products and convolutions
    dot: str | None  # default ``input_precision`` of ``tl.dot``; None is Triton's own


class CheckRules(_Facts):
    """Conditions of calls of candidates.

    Attributes:
        gradients: whether autograd is on.
        mode: ``constructed``: modules stay in the mode that their constructor leaves; ``eval``: they are set
            to eval mode.
        flags: by policy ``tf32``.
        inputs: ``get_inputs``: all have the shapes and dtypes of its result, and dense ones its strides.
        output_strides: ``any``, or only those of the ``reference``.
        failed_combinations: what a sweep of tunables does with combinations that fail.
    """

    gradients: bool
    mode: Literal["constructed", "eval"]
    flags: dict[Tf32Policy, Flags]
    inputs: Literal["get_inputs", "other"]
    output_strides: Literal["any", "reference"]
    failed_combinations: Literal["skipped", "fatal"]


class TimingRules(_Facts):
    """Rules of timing.

    Attributes:
        statistic: the one of the timed calls that counts.
        warmup_s: seconds of calls before them, at least.
        least_calls: how many are timed, at least.
        cold_l2: whether a timed call finds nothing of its inputs in the L2 cache.
    """

    statistic: Literal["median", "mean"]
    warmup_s: float
    least_calls: int
    cold_l2: bool


class SoftwareFacts(_Facts):
    """Facts that do not depend on devices; ``versions`` are of torch, triton, cuda, python and numpy.

    ``packages`` are the names that problems can import besides Python's own.
    """

    versions: dict[str, str] = {}
    packages: list[str] = []
    triton: TritonFacts | None = None
    precision: PrecisionTest | None = None
    checks: CheckRules | None = None
    timing: TimingRules | None = None


class Environment(SoftwareFacts):
    """The whole answer; ``timing`` is missing if nothing is timed, ``devices`` without a GPU."""

    hardware: str
    devices: list[DeviceFacts] = []


class TierLimits(_Facts):
    """The largest error that a tier allows on one task, in standard deviations of the output."""

    rms: float
    peak: float


class Conditions(_Facts):
    """Conditions of checking a reference; facts that were recorded under others are asked for again.

    Attributes:
        hardware: the judge's.
        versions: the judge's versions of torch, triton and python, if it reports them.
        problem: digest of the problem's text, see :attr:`~adaexplore.core.task.Task.digest`.
    """

    hardware: str
    dtype: DtypeName
    direction: Direction
    tf32: Tf32Policy
    tier: Tier
    versions: dict[str, str | None] | None = Field(default=None, exclude_if=_is_absent)
    problem: str


class ReferenceFacts(_Facts):
    """A judge's facts about a task's reference.

    Attributes:
        conditions: the conditions of the check; the judge's answer has none.
        tensors: inputs, weights and outputs.
        limits: limits by tier, if the judge computed them.
        profile: profile of a call; None without a GPU.
    """

    conditions: Conditions | None = None
    tensors: list[TensorFacts] = []
    limits: dict[Tier, TierLimits] = {}
    profile: Profile | None = None
