"""The judge's wire protocol v1, shared by the agent's client and the judge's gateway.

Field names, defaults and types are those of the released service, so its clients work unchanged;
the fields under "added here" have defaults that mean what the release did.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from adaexplore.core.profile import Profile

Backend = Literal["cuda", "triton"]
DtypeName = Literal["fp32", "fp16", "bf16", "native"]
Tf32Policy = Literal["paper", "off", "on"]
Tier = Literal["strict", "tf32", "half", "legacy"]
"""Precision of an output, best first; ``legacy`` is the elementwise tolerance alone."""
BaselineKind = Literal["eager", "compile", "max-autotune"]
"""What the reference runs as when it is timed; the latter two are modes of ``torch.compile``."""

DeviceKind = Literal["cuda", "cpu"]
"""What a judge evaluates on: GPUs for ``cuda``; for any other kind the CPU, on which nothing is timed."""

LEGACY_TOLERANCE = 5e-2


def _require_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


Whole = Annotated[int, BeforeValidator(_require_number)]
"""A whole number: no text and no boolean, but 5.0 is one, as in JSON."""
TimeLimit = Annotated[int, Field(ge=1, le=3600), BeforeValidator(_require_number)]
"""Whole seconds; the JSON schema of ``TimeLimit | None`` has the limits only because they come first."""
Speedup = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


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
    problem_id: str | None = None
    test_source: str | None = None
    kernel_code: str | None = None
    task_id: str | None = None
    # added here
    tolerance: float = Field(default=LEGACY_TOLERANCE, strict=True, gt=0, allow_inf_nan=False)
    tf32: Tf32Policy = "paper"
    tier: Tier = "legacy"
    baseline: BaselineKind = "eager"
    tune_s: float = Field(
        default=0.0, strict=True, ge=0, le=600
    )  # for a sweep of TUNABLES; 0 leaves them as declared
    best_so_far: Speedup | None = None  # of a search; the judge may stop timing what is clearly slower
    asm: StrictBool = False  # of a job of kind ``compile``: return the PTX of the kernels

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out absent ``best_so_far`` and ``asm``: judges of before know no such keys."""
        fields: dict[str, Any] = dump(self)
        if self.best_so_far is None:
            fields.pop("best_so_far", None)
        if not self.asm:
            fields.pop("asm", None)
        return fields


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
    """Body of ``POST /v2/problem``: can this reference be judged here at all?"""

    model_config = ConfigDict(extra="forbid")

    original_model_src: str
    dtype_str: DtypeName = "fp32"
    seed_num: Whole = 42
    timeout: TimeLimit = 300
    thorough: StrictBool = False  # judges of before know no such key: not sent where false


class ProblemTraits(BaseModel):
    """What a thorough look at a reference found.

    Attributes:
        flags: what makes results on it say little: ``nondeterministic``, ``stochastic`` (it draws random
            numbers), ``nonfinite``, ``constant_inputs``, ``degenerate_problem`` (a trivial answer
            passes), ``nearly_degenerate`` (it would at twice the tolerance, or for most elements),
            ``loose_tolerance`` (the tolerance exceeds a tenth of the output's standard deviation),
            ``view_of_input``, ``writes_inputs``.
        elements: of inputs, weights and outputs.
        call_ms: the fastest of its calls, by the wall clock.
        operators: what one call does, by the names of torch's registry.
        graph: a hash of operators, what feeds them, shapes and dtypes; equal for two spellings of one.
    """

    flags: list[str]
    elements: int
    call_ms: float
    operators: list[str]
    graph: str


class ProblemReport(BaseModel):
    """Answer of ``POST /v2/problem``.

    ``ok`` is False when the reference fails or is too large for the device; ``reason`` then says
    in one line which and why. ``device`` is the judge's device kind, ``hardware`` its name.
    ``traits`` are there when a thorough look was asked for and the reference works.
    """

    ok: bool
    reason: str = ""
    device: DeviceKind
    hardware: str
    traits: ProblemTraits | None = None


JobKind = Literal["candidate", "compile", "problem", "profile"]
JobState = Literal["queued", "running", "done", "cancelled", "failed"]


class JobRequest(BaseModel):
    """Body of ``POST /v2/jobs``.

    Attributes:
        kind: ``candidate`` judges a candidate, ``compile`` compiles its launches without executing them,
            ``problem`` asks whether the reference can be judged here at all, ``profile`` where a candidate
            spends its time.
        request: the fields of v1; ``problem`` uses the reference, dtype, seed and timeout.
        priority: a waiting job of a higher one goes first.
        force: judge again even if the verdict is known or an identical job is on its way.
    """

    model_config = ConfigDict(extra="forbid")

    kind: JobKind = "candidate"
    request: EvaluationRequest
    priority: Whole = Field(default=0, ge=-100, le=100)
    force: StrictBool = False


class JobTicket(BaseModel):
    """Answer of ``POST /v2/jobs``; ``position`` counts the jobs that wait in front of it."""

    id: str
    status: JobState
    position: int


class JobVerdict(BaseModel):
    """v1's metrics and the typed status."""

    status: str
    compiled: bool
    correctness: bool
    metadata: dict[str, Any]
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = Field(default_factory=dict)


class CompileReport(BaseModel):
    """What a job of kind ``compile`` found.

    ``ok``: the module imports, the model is constructed, and every launch that one call reaches compiles.
    ``kernel``, ``line``, ``message`` and ``error_name`` (its ``module.Class``) tell of the first failure;
    ``line`` is one of the candidate's source. ``asm``: PTX by kernel, where it was asked for.
    """

    ok: bool
    status: str
    kernel: str | None = None
    line: int | None = None
    message: str = ""
    error_name: str = ""
    asm: dict[str, str] | None = None

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = dump(self)
        if self.asm is None:
            fields.pop("asm", None)
        return fields


class ProfileReport(BaseModel):
    """What a job of kind ``profile`` found; ``profile`` is None where there is none, ``message`` says why.

    ``status`` is ``passed`` where the candidate ran, which says nothing about its outputs.
    """

    status: str
    profile: Profile | None
    message: str = ""


class JobAnswer(BaseModel):
    """Answer of ``GET`` and ``DELETE /v2/jobs/{id}``.

    ``verdict`` is there when a candidate is done, ``report`` when a job of another kind is,
    ``error`` when the job failed; ``cached`` says that the verdict was already known.
    """

    id: str
    kind: JobKind
    state: JobState
    position: int = 0
    verdict: JobVerdict | None = None
    report: ProblemReport | CompileReport | ProfileReport | None = None
    error: str | None = None
    cached: bool = False
    queue_time: float = 0.0
    execution_time: float = 0.0
