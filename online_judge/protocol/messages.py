"""Messages between the gateway and an evaluator; imports no torch.

The evaluator, like any process, is first :class:`Ready`. The gateway sends a :class:`Job` or
:class:`Release`. The evaluator sends clocks and asks for leases while it works, then its :class:`Answer`.
The gateway does not trust these messages, because the reference's code runs in the evaluator.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import (
    MAX_WORKLOADS,
    EvaluationRequest,
    ProblemRequest,
    ProblemTraits,
    TensorFacts,
    Workload,
)
from online_judge.checks.facts.findings import Fact
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.result import EvaluationResult, ProfileResult

Operation = Literal["evaluate", "sweep", "profile", "problem", "baseline"]
Whose = Literal["reference", "candidate", "tuning", "none"]
Mode = Literal["shared", "exclusive", "memory", "timing_memory", "compiling", "stopped"]
"""How a device is held, see :meth:`online_judge.processes.gpu_lease.GpuLeases.take`."""


class Job(Fact):
    """What to do with a reference and, unless ``op`` says otherwise, with the candidate behind the socket."""

    op: Operation  # ``problem`` and ``baseline`` need no candidate
    request: Annotated[ProblemRequest | EvaluationRequest, Field(union_mode="left_to_right")]
    seeds: str  # hex; the key of the problem's hidden seeds
    alone: bool  # whether the device runs no other job
    hardware: str  # name of the device
    name: str = ""  # part of the names of the hidden inputs
    build_dir: str | None = None  # for CUDA extensions; None: the candidate process's own folder
    recorded_ms: float | None = None  # a reference time to use instead of a measured one
    clean_ms: CleanMs | None = None  # of the baseline without a candidate, if known
    sweep: SweepTerms | None = None  # of a ``sweep``
    workload: int = 0  # number of the problem's input set

    @model_validator(mode="after")
    def _fits(self) -> Self:
        is_problem = isinstance(self.request, ProblemRequest)
        if is_problem != (self.op == "problem") or (self.sweep is None) == (self.op == "sweep"):
            raise ValueError(f"this is no job to {self.op}")
        return self


class Release(Fact):
    """The candidate process is gone: free the memory shared with it."""

    op: Literal["release"] = "release"


class ProblemRuns(Fact):
    kind: Literal["problem"] = "problem"
    traits: ProblemTraits | None = None  # None unless a thorough report was requested
    tensors: list[TensorFacts] = Field(default_factory=list)  # empty in a thorough report


class BaselineTimed(Fact):
    kind: Literal["baseline"] = "baseline"
    ms: CleanMs | None  # None if somebody else used the GPU


class CandidateGone(Fact):
    """The candidate process died or broke the protocol."""

    kind: Literal["candidate_gone"] = "candidate_gone"
    stage: Stage
    why: str  # how it broke the protocol; empty if it died


class NotEnoughMemory(Fact):
    """The device had too little memory beside other jobs."""

    kind: Literal["not_enough_memory"] = "not_enough_memory"
    why: str  # a line for the log


class Failed(Fact):
    """The reference failed, or the judge's own code raised."""

    kind: Literal["reference_failed", "judge_failed"]
    reason: str
    broken: bool  # whether the evaluator's CUDA context is lost


class Released(Fact):
    kind: Literal["release"] = "release"


Finding = EvaluationResult | Swept | ProfileResult | ProblemRuns | BaselineTimed | CandidateGone | Released
Failure = NotEnoughMemory | Failed


class Answer(Fact):
    """Answers a :class:`Job` or :class:`Release`; the order decides the kind of finding."""

    result: Annotated[Finding | Failure, Field(discriminator="kind")]
    # of the problem; empty if it was not loaded or has only one
    workloads: tuple[Workload, ...] = Field((), max_length=MAX_WORKLOADS)


class Clock(Fact):
    clock: Whose  # whose time runs from now on
    stage: Stage | Literal[""]  # the stage that begins; empty if the last one goes on


class Ready(Fact):
    ready: dict[str, str]  # empty


class Lease(Fact):
    """``take`` is answered by :class:`Granted`, ``stopped_s`` by :class:`Stopped`."""

    lease: Literal["take", "return", "stopped_s"]
    kind: Mode | None = None  # of the lease to take; the one taken last is returned
    share: float = 0.0  # of the device's memory, for ``memory``
    drained: bool = False  # for ``exclusive``: shared users return the device first, instead of being stopped


class Granted(Fact):
    granted: float  # seconds waited for the lease


class Stopped(Fact):
    stopped_s: float  # seconds for which others have stopped its processes so far


ORDERS: TypeAdapter[Job | Release] = TypeAdapter(Annotated[Job | Release, Field(discriminator="op")])
_TOLD: TypeAdapter[Answer | Clock] = TypeAdapter(Answer | Clock)


def told(message: Mapping[str, Any], op: str) -> Answer | Clock:
    """Read an evaluator's message strictly; raises ValueError, also if it does not answer the ``op``."""
    found = _TOLD.validate_json(json.dumps(message), strict=True)
    if isinstance(found, Answer) and isinstance(found.result, Finding):
        gone = isinstance(found.result, CandidateGone) and op not in ("problem", "baseline", "release")
        if found.result.kind != op and not gone:
            raise ValueError(f"{found.result.kind} does not answer {op}")
    return found
