"""Records of the measurements: one JSON line per finished unit, so that a killed part can continue."""

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from adaexplore.core.errors import UsageError
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.judge_client.http import REFERENCE_FAILED

Failure = Literal["problem error", "judge error", "given up"]
GIVEN_UP = "given up"
"""Start of the error message of a unit that took too long at the client."""


class Record(BaseModel):
    """One line of a ledger; fields of earlier versions are skipped."""

    model_config = ConfigDict(frozen=True)


class Session(Record):
    """Date, command, revision, hardware and versions of a measurement."""

    date: str
    command: str
    revision: str
    hardware: str
    driver: str | None
    machine: str
    versions: dict[str, str]


class Judged(Record):
    """One verdict of the judge; times in milliseconds, spans in seconds."""

    unit: str  # its name, such as ``repeat/large-softmax/3``
    candidate: str
    problem: str
    status: str  # the verdict's status; ``error`` if the judge gave none
    error: str | None = None  # why there is none
    tier: str | None = None
    flags: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()  # flags of severity ``reject``; ``flags`` has all
    problem_flags: tuple[str, ...] = ()  # flags of the problem, not of the candidate
    evidence: tuple[str, ...] = ()
    feedback: str = ""
    seconds: float  # from the submission to the verdict at the client
    speedup: float | None = None
    gpu_ms: float | None = None
    baseline_ms: float | None = None  # the baseline that counts
    slot_held_s: float | None = None  # how long the exclusive slot was held; None if the verdict does not say
    slot_gpu_s: float | None = None  # how long the GPU worked for candidate and baseline meanwhile

    @property
    def failure(self) -> Failure | None:
        """Return who is at fault for a missing verdict; None if there is a verdict."""
        if self.error is None:
            return None
        if self.error.startswith(REFERENCE_FAILED):
            return "problem error"
        return "given up" if self.error.startswith(GIVEN_UP) else "judge error"


class PlainRun(Record):
    """A plain comparison in a process of its own."""

    candidate: str
    outcome: str  # ``passed``, ``wrong``, ``timeout``, ``crash`` or ``error``
    detail: str = ""  # the error, or the largest difference
    seconds: float


class Batch(Record):
    """Candidates judged in one batch."""

    slots: int  # parallel evaluations on the device
    in_flight: int  # parallel submissions
    wall_s: float  # from the first submission to the last verdict
    start_s: float  # time until the judge was ready, first verdict included; not part of ``wall_s``
    verdicts: tuple[Judged, ...]


KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in (Session, Judged, PlainRun, Batch)}
R = TypeVar("R", bound=Record)


class Ledger:
    """The records of one part on one device; safe to use from several threads."""

    def __init__(self, folder: Path, device: str, part: str) -> None:
        """Read the file; a partial line of a killed process causes a warning, and its unit is measured again.

        Raises:
            UsageError: a line is no record.
            StorageError: the file cannot be read.
        """
        self.part = part
        self.device = device
        self.path = folder / f"{device}-{part}.jsonl"
        self._lines = JsonLines(self.path)
        self._records = self._lines.read(self._record)

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of one kind, oldest first."""
        return [record for record in self._records if isinstance(record, kind)]

    def verdicts(self) -> list[Judged]:
        """Return the last verdict of each unit, in the order of the first."""
        return list({each.unit: each for each in self.of(Judged)}.values())

    def add(self, record: Record) -> None:
        """Store a record.

        Raises:
            StorageError: it cannot be written.
        """
        self._lines.append({"type": type(record).__name__, **record.model_dump(mode="json")})
        self._records.append(record)

    def open_session(self, session: Session) -> None:
        """Store the session of the measurements that follow.

        Raises:
            UsageError: earlier records come from other hardware or versions.
        """
        for earlier in self.of(Session)[:1]:
            changed = [n for n in ("hardware", "versions") if getattr(session, n) != getattr(earlier, n)]
            if changed:
                raise UsageError(
                    f"{self.path} has measurements with another {', '.join(changed)}; choose another --out"
                )
        self.add(session)

    def _record(self, line: Any) -> Record:
        try:
            return KINDS[line.pop("type")].model_validate(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{self.path} is damaged ({type(error).__name__}); choose another --out"
            ) from error
