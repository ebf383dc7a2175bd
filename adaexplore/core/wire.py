"""The judge's wire protocol v1, shared by the agent's client and the judge's gateway.

Field names, defaults and types are those of the released service, so its clients work unchanged;
the fields under "added here" have defaults that mean what the release did.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic_core import PydanticCustomError

from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status

Backend = Literal["cuda", "triton"]
DtypeName = Literal["fp32", "fp16", "bf16", "native"]
Direction = Literal["forward", "backward", "both"]
"""What is judged: only outputs, or outputs and gradients; ``backward`` is an alias of ``both``."""
Tf32Policy = Literal["paper", "off", "on"]
Tier = Literal["strict", "tf32", "half", "legacy"]
"""Precision of an output, best first; ``legacy`` is only the elementwise tolerance."""
BaselineKind = Literal["eager", "compile", "max-autotune"]
"""How the reference runs when it is timed; the latter two are modes of ``torch.compile``."""

DeviceKind = Literal["cuda", "cpu"]
"""Device kind of a judge: GPUs for ``cuda``; for any other kind the CPU, where nothing is timed."""

LEGACY_TOLERANCE = 5e-2


def _require_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


def _is_absent(value: object) -> bool:
    return value is None or value is False


def _is_forward(direction: Direction) -> bool:
    return direction == "forward"


Whole = Annotated[int, BeforeValidator(_require_number)]
"""An integer: no text and no boolean; 5.0 is allowed, as in JSON."""
TimeLimit = Annotated[int, Field(ge=1, le=3600), BeforeValidator(_require_number)]
"""Whole seconds; the JSON schema of ``TimeLimit | None`` has the limits only because they come first."""
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
GpuModel = Annotated[str, Field(pattern="[A-Za-z0-9]", max_length=100)]
"""Words of a GPU's name, such as ``H100``."""
MAX_WORKLOADS = 128
"""Maximum number of workloads of a problem."""


def fits(gpus: Sequence[str], hardware: str) -> bool:
    """Return whether ``hardware`` is one of the models: it has all words of the model's name. Empty: any."""
    return not gpus or any(words(gpu) <= words(hardware) for gpu in gpus)


@lru_cache(1024)  # clients choose the names
def words(name: str) -> frozenset[str]:
    """Return the words of a GPU's name, in small letters."""
    return frozenset(re.findall("[a-z0-9]+", name.lower()))


class Workload(BaseModel):
    """One input set of a problem that has several.

    ``inputs`` are dtypes, shapes and plain values; empty if hidden or not drawn.
    """

    name: str
    weight: Positive
    hidden: bool = False
    inputs: str = ""


class EvaluationRequest(BaseModel):
    """Body of ``POST /evaluate``."""

    model_config = ConfigDict(extra="ignore")

    original_model_src: str = ""
    custom_model_src: str = ""
    seed_num: Whole = 42
    num_correct_trials: Whole = Field(default=1, ge=1)
    num_perf_trials: Whole = Field(default=10, ge=1)
    measure_performance: StrictBool = False
    backend: Backend = "cuda"
    dtype_str: DtypeName = "fp32"
    device: Whole | None = None
    verbose: StrictBool = False
    timeout: TimeLimit | None = 300
    build_dir: str | None = None
    gpu_name: str | None = None
    level: str | None = None
    problem_id: str | None = Field(default=None, coerce_numbers_to_str=True)
    test_source: str | None = None
    kernel_code: str | None = None
    task_id: str | None = Field(default=None, coerce_numbers_to_str=True)
    # added here; older judges do not know all of them, so some are not sent without a value
    tolerance: float = Field(default=LEGACY_TOLERANCE, strict=True, gt=0, allow_inf_nan=False)
    tf32: Tf32Policy = "paper"
    tier: Tier = "legacy"
    baseline: BaselineKind = "eager"
    tune_s: float = Field(default=0.0, strict=True, ge=0, le=600)  # for a sweep of TUNABLES; 0: no sweep
    # of a search; the judge may stop timing clearly slower candidates
    best_so_far: Positive | None = Field(default=None, exclude_if=_is_absent)
    # of a job of kind ``compile``: return the PTX of the kernels
    asm: StrictBool = Field(default=False, exclude_if=_is_absent)
    samples: StrictBool = Field(default=False, exclude_if=_is_absent)  # return the baseline's timed calls
    direction: Direction = Field(default="forward", exclude_if=_is_forward)
    # source that defines get_workloads() in the reference's namespace
    hidden_workloads: str | None = Field(default=None, exclude_if=_is_absent)
    # one of these; None: any
    gpu: GpuModel | Annotated[list[GpuModel], Field(min_length=1, max_length=64)] | None = Field(
        default=None, exclude_if=_is_absent
    )

    @property
    def gpus(self) -> tuple[str, ...]:
        """Return the GPU models to choose from; empty for any."""
        return (self.gpu,) if isinstance(self.gpu, str) else tuple(self.gpu or ())


class EvaluationResponse(BaseModel):
    """Answer of the evaluation endpoints; ``runtime`` is milliseconds, -1.0 when absent."""

    success: bool
    compiled: bool
    correctness: bool
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    execution_time: float
    queue_time: float = 0.0
    error: str | None = None


class DeviceQueue(BaseModel):
    """Load of one device."""

    queued: int
    processing: int
    max_concurrent: int


class QueueStatus(BaseModel):
    """Answer of ``GET /queue/status``."""

    total_queued: int
    total_processing: int
    per_device: dict[str, DeviceQueue]
    max_concurrent: int
    max_queue_size: int


class ProblemRequest(BaseModel):
    """Body of ``POST /v2/problem``, which checks whether a reference can be judged."""

    model_config = ConfigDict(extra="forbid")

    original_model_src: str
    dtype_str: DtypeName = "fp32"
    seed_num: Whole = 42
    timeout: TimeLimit = 300
    # older judges do not know these keys, so they are sent only with a value
    thorough: StrictBool = Field(default=False, exclude_if=_is_absent)
    hidden_workloads: str | None = Field(default=None, exclude_if=_is_absent)
    direction: Direction = Field(default="forward", exclude_if=_is_forward)


class ProblemTraits(BaseModel):
    """Result of a thorough examination of a reference.

    Attributes:
        flags: properties that make its results less meaningful: ``nondeterministic``, ``stochastic`` (it
            draws random numbers), ``nonfinite``, ``constant_inputs``, ``degenerate_problem`` (a trivial
            answer passes), ``nearly_degenerate`` (it would at twice the tolerance, or for most elements),
            ``loose_tolerance`` (the tolerance exceeds a tenth of the output's standard deviation),
            ``view_of_input``, ``writes_inputs``.
        elements: of inputs, weights and outputs.
        call_ms: wall time of its fastest call.
        operators: the operators of one call, by the names of torch's registry.
        graph: a hash of operators, data flow, shapes and dtypes; equal for two spellings of one problem.
    """

    flags: list[str]
    elements: int
    call_ms: float
    operators: list[str]
    graph: str


Role = Literal["input", "weight", "output"]


class TensorFacts(BaseModel):
    """One tensor of a task; ``role`` is input, weight or output, numbers and names count within a role."""

    model_config = ConfigDict(frozen=True)

    role: Role
    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


class ProblemReport(BaseModel):
    """Answer of ``POST /v2/problem``.

    ``ok`` is False if the reference fails or is too large for the device; ``reason`` then explains
    it in one line. ``device`` is the judge's device kind, ``hardware`` its name.
    ``traits`` are present if a thorough examination was requested and the reference works, else ``tensors``:
    inputs, weights and outputs of one call on the first workload, at most 64. ``workloads`` are present if
    the problem has several.
    """

    ok: bool
    reason: str = ""
    device: DeviceKind
    hardware: str
    traits: ProblemTraits | None = None
    tensors: list[TensorFacts] = Field(default_factory=list)
    workloads: list[Workload] | None = Field(default=None, exclude_if=_is_absent)


WorkerState = Literal["ready", "starting", "draining", "quarantined", "refused", "lost"]


class WorkerStatus(BaseModel):
    """One device that jobs run on.

    ``device`` is its number, ``node`` the id of its machine in the cluster, ``slots`` the evaluations that it
    takes at a time; ``reason`` says why it is not ready.
    """

    device: int
    host: str
    node: str = ""
    hardware: str
    slots: int
    state: WorkerState
    reason: str = ""


class Workers(BaseModel):
    """Answer of ``GET /v2/workers``."""

    workers: list[WorkerStatus]


JobKind = Literal["candidate", "compile", "problem", "profile"]
JobState = Literal["queued", "running", "done", "cancelled", "failed"]


class JobRequest(BaseModel):
    """Body of ``POST /v2/jobs``.

    Attributes:
        kind: ``candidate`` judges a candidate, ``compile`` compiles its launches without executing them,
            ``problem`` checks whether the reference can be judged, ``profile`` profiles a candidate.
        request: the fields of v1; ``problem`` uses the reference, dtype, seed and timeout.
        priority: waiting jobs with a higher priority run first.
        force: judge again even if the verdict is known or an identical job is on its way.
    """

    model_config = ConfigDict(extra="forbid")

    kind: JobKind = "candidate"
    request: EvaluationRequest
    priority: Whole = Field(default=0, ge=-100, le=100)
    force: StrictBool = False


class JobTicket(BaseModel):
    """Answer of ``POST /v2/jobs``; ``position`` is the number of waiting jobs before it."""

    id: str
    status: JobState
    position: int


class CompileReport(BaseModel):
    """Result of a job of kind ``compile``.

    ``ok``: the module imports, the model is constructed, and every launch that one call reaches compiles.
    ``kernel``, ``line``, ``message`` and ``error_name`` (its ``module.Class``) describe the first failure;
    ``line`` is a line of the candidate's source. ``asm``: PTX by kernel, if requested.
    """

    ok: bool
    status: Status
    kernel: str | None = None
    line: int | None = None
    message: str = ""
    error_name: str = ""
    asm: dict[str, str] | None = Field(default=None, exclude_if=_is_absent)


class ProfileReport(BaseModel):
    """Result of a job of kind ``profile``; without a ``profile``, ``message`` says why.

    ``status`` is ``passed`` if the candidate ran, which says nothing about its outputs.
    """

    status: Status
    profile: Profile | None
    message: str = ""
