"""What is kept of each measurement."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.judge_client.http import REFERENCE_FAILED

Failure = Literal["problem error", "judge error", "given up"]
GIVEN_UP = "given up"
"""Start of the error of a unit that took too long at the client."""


class Record(BaseModel):
    """One line of a ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Session(Record):
    """With what, when and by which command something was measured."""

    date: str
    command: str
    revision: str
    hardware: str
    driver: str | None
    machine: str
    versions: dict[str, str]

    def basis(self) -> dict[str, Any]:
        """What must be the same for measurements to stand in one figure."""
        return {"hardware": self.hardware, "versions": self.versions}


class Judged(Record):
    """One verdict of the judge; times in milliseconds, spans in seconds.

    Attributes:
        unit: what it was asked for, such as ``repeat/large-softmax/3``.
        candidate: id of the candidate.
        problem: name of its problem.
        status: the verdict's status; ``error`` where the judge gave none.
        error: why there is none.
        rejects: flags of severity ``reject``; ``flags`` has all.
        problem_flags: flags of the problem, not of the candidate.
        seconds: from the submission to the verdict at the client.
        baseline_ms: the baseline that counts.
        baseline_gpu_ms: the reference's time beside the candidate.
        baseline_clean_ms: the reference's time alone, before any candidate was loaded.
        slot_held_s: how long the exclusive slot was held; None where the verdict does not say.
        slot_gpu_s: how long the GPU worked for candidate and baseline meanwhile.
    """

    unit: str
    candidate: str
    problem: str
    status: str
    error: str | None = None
    tier: str | None = None
    flags: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()
    problem_flags: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    feedback: str = ""
    seconds: float
    queue_s: float = 0.0
    execution_s: float = 0.0
    speedup: float | None = None
    gpu_ms: float | None = None
    baseline_ms: float | None = None
    baseline_gpu_ms: float | None = None
    baseline_clean_ms: float | None = None
    slot_held_s: float | None = None
    slot_gpu_s: float | None = None

    @property
    def failure(self) -> Failure | None:
        """Return who is at fault for a missing verdict; None where there is a verdict."""
        if self.error is None:
            return None
        if self.error.startswith(REFERENCE_FAILED):
            return "problem error"
        return "given up" if self.error.startswith(GIVEN_UP) else "judge error"


class PlainRun(Record):
    """A plain comparison in a process of its own.

    Attributes:
        outcome: ``passed``, ``wrong``, ``timeout``, ``crash`` or ``error``.
        detail: the error or how far off it was.
    """

    candidate: str
    outcome: str
    detail: str = ""
    seconds: float


class NaiveRun(Record):
    """An evaluation in a fresh interpreter, as the released design has it.

    Attributes:
        outcome: as for :class:`PlainRun`.
        stages_s: seconds of each stage, in order; ``exit`` is what the process took to end.
    """

    candidate: str
    outcome: str
    detail: str = ""
    seconds: float
    stages_s: dict[str, float] = Field(default_factory=dict)
    speedup: float | None = None


class Batch(Record):
    """Candidates judged side by side.

    Attributes:
        slots: evaluations at a time on the device.
        in_flight: submissions at a time.
        wall_s: from the first submission to the last verdict.
        start_s: how long the judge took to be ready, first verdict included; not part of ``wall_s``.
    """

    slots: int
    in_flight: int
    wall_s: float
    start_s: float
    verdicts: tuple[Judged, ...]


class Flood(Record):
    """Simultaneous submissions against a full queue.

    Attributes:
        running_and_waiting: what the judge itself counted after the last answer.
        retry_after: refusals that said when to come again.
        other_answers: status codes that are neither 202 nor 429, or errors of the connection.
        distinct_ids: different job ids among the accepted.
        ended: states that the accepted jobs ended in; the last ones are cancelled.
        lost: accepted jobs that the judge did not know any more, or that never ended.
        started_twice: jobs that the judge's log has started more than once.
        statuses: verdicts of the jobs that were let run to their end.
    """

    submissions: int
    limit: int
    devices: int
    sleep_s: float
    accepted: int
    refused: int
    retry_after: int
    other_answers: dict[str, int]
    running_and_waiting: int
    distinct_ids: int
    ended: dict[str, int]
    lost: int
    started_twice: int
    statuses: dict[str, int]
    burst_s: float


class TestRun(Record):
    """A run of pytest and the report that the tests wrote, one entry a fixture."""

    __test__ = False

    paths: tuple[str, ...]
    exit_code: int
    last_line: str
    seconds: float
    report: tuple[dict[str, Any], ...] | None = None


KINDS: dict[str, type[Record]] = {
    kind.__name__: kind for kind in (Session, Judged, PlainRun, NaiveRun, Batch, Flood, TestRun)
}
