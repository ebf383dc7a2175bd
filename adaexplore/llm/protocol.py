"""Requests and replies of every model client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from adaexplore.core.draft import ShownKernel
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.tasks.operators import Operator


class Finish(StrEnum):
    """How a reply ended."""

    COMPLETE = "complete"
    CUT = "cut"  # by the token limit
    REFUSED = "refused"  # by the model or its content filter


@dataclass(frozen=True)
class StepData:
    """A step's request as data.

    Attributes:
        reference: the module to replace.
        kernels: the shown ones in the prompt's order; edits change the last one.
        edits: whether edits are asked for, rather than a whole file.
        direction: its name; "" for none.
        tunes: whether the judge sweeps the numbers that a kernel declares.
    """

    reference: str
    kernels: tuple[ShownKernel, ...] = ()
    rules: tuple[str, ...] = ()
    direction: str = ""
    tunes: bool = False
    edits: bool = False


@dataclass(frozen=True)
class RuleData:
    """Failures of one kind, for a rule: the construct, and code and error of each."""

    constructs: tuple[str, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True)
class MergeData:
    """Two rules that may be equivalent."""

    one: str
    other: str


@dataclass(frozen=True)
class TaskData:
    """A problem to compose: operators to choose from, how many, and elements of the first input."""

    operators: tuple[Operator, ...]
    fewest: int
    most: int
    low: int
    high: int


RequestData = StepData | RuleData | MergeData | TaskData


@dataclass(frozen=True)
class Turn:
    """An earlier message of the same conversation, and the reply to it, which is not blank.

    ``plain`` is as in :class:`ModelRequest`.
    """

    prompt: str
    purpose: Purpose
    reply: str
    cuts: tuple[int, ...] = ()
    plain: str | None = None


@dataclass(frozen=True)
class ModelRequest:
    """One user message, alone or in a conversation.

    Attributes:
        prompt: the whole message.
        key: its unique name within a run, such as ``2_63/7/large``; a seeded writer and a replay
            answer by it, others ignore it.
        cuts: ascending offsets in ``prompt``: later requests may have the same text up to each of them. The
            longest-lived prefix comes first. Services with explicit caching mark them.
        earlier: earlier turns of the same conversation, oldest first.
        data: the content of the prompt (for a repair, of the conversation's first prompt) for a client that
            reads no prose; others ignore it.
        plain: ``prompt`` without its measured figures, line by line, for a client that compares it with an
            earlier one; None if it has none.
    """

    prompt: str
    purpose: Purpose
    key: str
    cuts: tuple[int, ...] = ()
    earlier: tuple[Turn, ...] = ()
    data: RequestData | None = None
    plain: str | None = None

    @property
    def transcript(self) -> str:
        """The conversation as one text, for clients without messages; ``prompt`` without earlier turns."""
        return _transcript([(turn.prompt, turn.reply) for turn in self.earlier], self.prompt)

    @property
    def plain_transcript(self) -> str:
        """The conversation without the measured figures of its prompts."""
        told = [(turn.prompt if turn.plain is None else turn.plain, turn.reply) for turn in self.earlier]
        return _transcript(told, self.prompt if self.plain is None else self.plain)


def _transcript(turns: Sequence[tuple[str, str]], prompt: str) -> str:
    told = [f"{asked}\n\n## Your reply\n{reply.strip()}\n\n" for asked, reply in turns]
    return "".join([*told, prompt])


@dataclass(frozen=True)
class ModelReply:
    """The answer to one request; ``model`` is the name that answered.

    ``text`` may be empty; it has no lone surrogates, which no file or request can hold.
    """

    text: str
    finish: Finish
    usage: Usage
    model: str


class ModelClient(Protocol):
    """A language model, or a program that answers like one; thread-safe."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: the service refused it for good; the message says what to fix.
            ModelUnavailableError: no answer in spite of retries.
        """
