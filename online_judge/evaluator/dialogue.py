"""The evaluator's side of the conversation with a candidate process, and the exceptions that end it early."""

import io
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from adaexplore.core.judging.status import Stage
from online_judge.checks.facts.endings import Ending, Raised, WrongForm
from online_judge.checks.facts.findings import Failure
from online_judge.common import modules
from online_judge.evaluator.reference import ReferenceFailed
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError
from online_judge.protocol.messages import Whose
from online_judge.protocol.orders import DONE, GO, Answer, Block, Order
from online_judge.protocol.shared_tensors import SharedTensors

_MAX_DEPTH = 64


class CandidateGone(Exception):
    """The candidate process closed its channel without an answer, or broke the protocol."""

    def __init__(self, stage: Stage, why: str) -> None:
        """``why`` is empty if it is just gone."""
        super().__init__(why)
        self.stage = stage
        self.why = why


class CandidateFailed(Exception):
    """Ends the evaluation of a candidate that is wrong, as ``ending`` says."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.kind)
        self.ending = ending

    @property
    def is_final(self) -> bool:
        """Whether no more orders make sense: the process has exited, or outputs are on another device."""
        ending = self.ending
        return isinstance(ending, Raised) or (isinstance(ending, WrongForm) and ending.part == "device")


class BlockRefused(Exception):
    """The candidate process cannot run such a block; the text says why."""


class _Sender(pickle.Pickler):
    """Refuses objects of the reference's module, which the candidate process cannot unpickle."""

    def reducer_override(self, obj: Any) -> Any:
        owner = obj if hasattr(obj, "__qualname__") else type(obj)
        if getattr(owner, "__module__", None) == modules.REFERENCE_MODULE:
            raise pickle.PicklingError(f"{owner.__qualname__} is the reference's own")
        return NotImplemented


@dataclass(eq=False)
class Dialogue:
    """Sends orders to one candidate process; reports whose time is running.

    Its methods raise :class:`CandidateFailed` if the candidate process reports a failure, and
    :class:`CandidateGone` if there is no readable answer.
    """

    _candidate: Channel
    clock: Callable[[Whose, str], None]  # is given whose time runs, and the stage

    def ask(
        self,
        stage: Stage,
        order: Order[Answer],
        shared_tensors: Sequence[SharedTensors] = (),
        *,
        tuning: bool = False,
    ) -> Answer:
        """Give an order and wait for the answer; on the candidate's time, or on its time for ``tuning``.

        Afterwards that time still runs: the caller switches the clock before it works for the reference.

        Raises:
            ReferenceFailed: the order holds something that cannot be sent.
        """
        body = _pickled(order)
        for shared in shared_tensors:
            shared.settle()
        self.clock("tuning" if tuning else "candidate", stage.value)
        with _connected(stage):
            self._candidate.send(body, [fd for shared in shared_tensors for fd in shared.fds])
            received, _ = self._candidate.receive()
        return cast(Answer, self._understood(stage, received))

    def ready_block(self, order: Block) -> None:
        """Have a block prepared; its inputs need not be written yet.

        Raises:
            BlockRefused: the candidate process cannot run it.
        """
        answer = self.ask(Stage.TIMING, order)
        if answer.get("ready") is not True:
            raise BlockRefused(str(answer.get("why", ""))[:200])

    def run_block(self) -> tuple[float, dict[str, Any]]:
        """Run the prepared block; return wall milliseconds from GO to DONE, and the claimed times."""
        stage = Stage.TIMING
        self.clock("candidate", stage.value)
        with _connected(stage):
            begin = time.perf_counter()
            self._candidate.send(GO)
            word, _ = self._candidate.receive()
            wall_ms = (time.perf_counter() - begin) * 1e3
        if word != DONE:
            self._understood(stage, word)
            raise CandidateGone(stage, "it answered with something else than that a block is done")
        with _connected(stage):
            received, _ = self._candidate.receive()
        return wall_ms, self._understood(stage, received)

    def _understood(self, stage: Stage, body: bytes) -> dict[str, Any]:
        with _connected(stage):
            answer = channel.json_object(body)
        if not _is_shallow(answer):
            raise CandidateGone(stage, "it answered with something nested too deeply")
        if "failed" in answer:
            self.clock("reference", stage.value)
            raise CandidateFailed(Raised(failure=Failure.from_claim(stage, answer["failed"])))
        return answer


@contextmanager
def _connected(stage: Stage) -> Iterator[None]:
    try:
        yield
    except ChannelClosed as error:
        raise CandidateGone(stage, "") from error
    except FrameError as error:
        raise CandidateGone(stage, f"it answered with {error}") from error


def _is_shallow(answer: dict[str, Any]) -> bool:
    """Return True if it can be compared and printed without a stack overflow."""
    level: list[Any] = [answer]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for part in level
            if isinstance(part, dict | list)
            for inner in (part.values() if isinstance(part, dict) else part)
        ]
    return not level


def _pickled(order: Order[Any]) -> bytes:
    sent = io.BytesIO()
    try:
        _Sender(sent).dump(order)
        return sent.getvalue()
    except Exception as error:
        raise ReferenceFailed(
            f"get_init_inputs() gives what cannot be sent to a candidate: {error}"
        ) from error
