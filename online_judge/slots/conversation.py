"""Have a process do one job: attempts, time limits, cancellation, result."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.judging.status import Stage
from online_judge.processes.fork_client import ForkClient, ForkServerLost
from online_judge.processes.gpu_lease import FEW, Cancelled, GpuLeases, NotEnoughMemory
from online_judge.protocol.channel import ChannelClosed, FrameError
from online_judge.protocol.messages import Clock, Whose

log = logging.getLogger(__name__)

WHOLE_MESSAGE_S = 10.0
"""Longest time that one message of a process may take."""
_LOOK_S = 0.25
_LEAST_REFERENCE_S = 30.0
_NO_LIMIT_S = 30.0  # longest single wait while no limit is running
_GAP_S = WHOLE_MESSAGE_S + 2.0
"""A longer gap between two reads shows that the gateway itself was stopped."""


class CandidateTimeout(Exception):
    """The candidate used up its time in ``stage``."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.value)
        self.stage = stage


class ReferenceTimeout(ProblemError):
    """The reference used up its time."""


class TimeLimits:
    """Whose time is running, and how much each side has used."""

    def __init__(
        self,
        limit_s: float,
        stopped_s: Callable[[], float] = lambda: 0.0,
        waited_s: Callable[[], float] = lambda: 0.0,
        spent: Mapping[Whose, float] | None = None,
    ) -> None:
        """Let the reference's time run.

        Args:
            limit_s: the candidate's limit in seconds.
            stopped_s: returns total seconds for which others have stopped the processes; not charged.
            waited_s: returns total seconds for which the evaluator has waited for leases. While the evaluator
                reports that nobody's time runs, only these seconds are free; the rest is charged to the
                reference.
            spent: seconds that each side used on earlier workloads of the same request.
        """
        self.whose: Whose = "reference"
        self.stage = Stage.LOAD
        self.stage_seconds: dict[str, float] = {}
        self._stopped_s = stopped_s
        self._waited_s = waited_s
        self._stopped_before, self._waited_before = stopped_s(), waited_s()
        reference_s = max(limit_s, _LEAST_REFERENCE_S)
        self._limits: dict[Whose, float] = {"candidate": limit_s, "tuning": limit_s, "reference": reference_s}
        self.spent = dict.fromkeys(self._limits, 0.0) | dict(spent or {})
        self._on_several = bool(spent)
        self._spent_before = 0.0  # value of ``spent`` when this clock started
        self._since = time.monotonic()

    def switch(self, whose: Whose, stage: str) -> None:
        """Charge the time from now on to ``whose``."""
        self._advance()
        self.whose = whose
        self.stage = Stage(stage) if stage else self.stage
        self._spent_before = self.spent.get(whose, 0.0)

    def forgive(self, seconds: float) -> None:
        """Charge the last ``seconds`` to nobody, because this process was stopped."""
        self._since += seconds

    def remaining_s(self) -> float:
        """Return the remaining seconds of the side whose time runs.

        Raises ReferenceTimeout if the reference has none left, CandidateTimeout if the candidate has none.
        """
        self._advance()
        remaining = {name: limit - self.spent[name] for name, limit in self._limits.items()}
        if remaining["reference"] <= 0:
            hint = " with all workloads together: ask for a larger timeout" if self._on_several else ""
            raise ReferenceTimeout(f"the reference was not done after {self._limits['reference']:g} s{hint}")
        if self.whose == "none":
            return _NO_LIMIT_S
        if remaining[self.whose] <= 0:
            raise CandidateTimeout(self.stage)
        return remaining[self.whose]

    def _advance(self) -> None:
        now, stopped_s, waited_s = time.monotonic(), self._stopped_s(), self._waited_s()
        passed_s, charged, free_s = now - self._since, self.whose, stopped_s - self._stopped_before
        if self.whose == "none":
            charged, free_s = "reference", free_s + waited_s - self._waited_before
            self.spent[charged] += max(passed_s - free_s, 0.0)
        else:  # another judge's stop is reported late, when most of it is charged
            self.spent[charged] = max(self.spent[charged] + passed_s - free_s, self._spent_before)
        name = {"none": "lock", "tuning": "tuning"}.get(self.whose, self.stage.value)
        self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + passed_s
        self._since, self._stopped_before, self._waited_before = now, stopped_s, waited_s


class Lost(Exception):
    """An attempt ended without a result."""


class ProcessLost(Lost):
    """The process of a conversation died, was stopped or broke the protocol during the time of ``whose``."""

    def __init__(self, whose: Whose, stage: Stage) -> None:
        super().__init__(f"a process died in the time of the {whose}")
        self.whose = whose
        self.stage = stage


class ReferenceLost(ProcessLost):
    """The process died although there was no candidate."""


class ContextLost(Lost):
    """The evaluator's CUDA context is broken; ``final`` is raised if this happens again."""

    def __init__(self, final: JudgeError) -> None:
        super().__init__(f"an evaluator lost its CUDA context: {final}")
        self.final = final


@dataclass(eq=False)
class Attempts:
    """The attempts at one job: ``while attempts.another(): with attempts.attempt() as alone: ...``.

    At most ``count`` of them count, and at most ``2 * count`` are made. An attempt in which the fork server
    died does not count. An attempt that lacks memory beside other jobs is repeated beside few, then alone on
    the device; all of them count as one.
    """

    forks: ForkClient
    leases: GpuLeases | None = None  # of the device; None if the job needs no device
    problem: str = ""  # key of its need of memory
    cancelled: threading.Event = field(default_factory=threading.Event)  # ends the wait for the device
    count: int = 2
    lost: Lost | None = field(default=None, init=False)  # the exception that ended the latest attempt
    _made: int = field(default=0, init=False)
    _counted: int = field(default=0, init=False)
    _generation: int | None = field(default=None, init=False)
    _others: int | None = field(default=None, init=False)  # beside the next attempt; None: as usual

    @property
    def are_left(self) -> bool:
        """Return True if another attempt may follow the present one."""
        counts = self._generation == self.forks.generation
        return self._counted + counts < self.count and self._made < 2 * self.count

    def another(self) -> bool:
        if self._others is not None:
            return True
        if not self.are_left:
            return False
        self._counted += self._generation == self.forks.generation
        self._made += 1
        self._generation = self.forks.generation
        return True

    def repeat_alone(self) -> None:
        """Let another attempt follow, alone on the device, which counts as one with the present one."""
        self._others = 0

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """Make an attempt within the block; yield whether the job is alone on the device.

        :class:`Lost`, :class:`ForkServerLost` and, beside other jobs, :class:`NotEnoughMemory` end the block
        and are swallowed.
        """
        self.lost = None
        others, self._others = self._others, None
        claim: AbstractContextManager[int] = nullcontext(1)
        if self.leases is not None:
            claim = self.leases.claim(self.problem, self.cancelled, others=others)
        try:
            with claim as most:
                try:
                    yield most == 0
                except NotEnoughMemory as error:
                    if most == 0 or self.leases is None:
                        raise
                    self._others = FEW if most > FEW and self.leases.most_running > FEW + 1 else 0
                    log.warning(
                        "too little memory: the job is tried again beside %d others (%s)", self._others, error
                    )
                    self.leases.remember(self.problem, self._others)
        except (Lost, ForkServerLost) as error:
            log.error("an attempt at a job ended early: %s", error)
            self.lost = error if isinstance(error, Lost) else None


Job = TypeVar("Job", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Peer(Protocol[Job, Result]):
    """The process at the other end; its methods raise ChannelClosed or FrameError if it is lost."""

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it, so that no answer will come."""

    def order(self, order: Job, fds: Sequence[int]) -> None:
        """Send it an order."""

    def hear(self, timeout_s: float) -> Clock | Result | None:
        """Return its next message, the result last; None on timeout."""


def converse(
    peer: Peer[Job, Result], order: Job, fds: Sequence[int], limits: TimeLimits, cancelled: threading.Event
) -> Result:
    """Give a process an order and wait for its result.

    Raises ReferenceTimeout or CandidateTimeout if a side used up its time, Cancelled, ProcessLost.
    """
    message: Clock | Result | None = None
    try:
        peer.order(order, fds)
        looked = time.monotonic()
        while True:
            if message is None:
                message = peer.hear(0)  # read before time is charged: it may have been waiting here
            if (gap_s := time.monotonic() - looked) > _GAP_S:
                limits.forgive(gap_s)
            looked = time.monotonic()
            wait_s = min(_LOOK_S, limits.remaining_s())
            if cancelled.is_set():
                raise Cancelled
            if message is None:
                message = peer.hear(wait_s)
                if message is None and peer.stopped:
                    raise ChannelClosed("it was stopped")
            elif isinstance(message, Clock):
                limits.switch(message.clock, message.stage)
                message = None
            else:
                return message
    except (ChannelClosed, FrameError) as error:
        raise ProcessLost(limits.whose, limits.stage) from error
