"""What every model client takes and answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from adaexplore.core.usage import Usage


class Purpose(StrEnum):
    """What a request is for, so that no client has to guess it from prose."""

    LARGE = "large"
    REVIEW = "review"
    SMALL = "small"
    REPAIR = "repair"
    RULE = "rule"
    MERGE = "merge"
    TASK = "task"


class Finish(StrEnum):
    """How a reply ended."""

    COMPLETE = "complete"
    CUT = "cut"  # by the token limit
    REFUSED = "refused"  # by the model or its content filter


@dataclass(frozen=True)
class Turn:
    """An earlier message of the same conversation, and the reply to it, which is not blank."""

    prompt: str
    purpose: Purpose
    reply: str
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ModelRequest:
    """One user message, alone or in a conversation that is under way.

    Attributes:
        prompt: the whole message.
        purpose: what it is for.
        key: names this draw uniquely within a run, such as ``2_63/7/large``; a seeded writer and
            a replay answer by it, others ignore it.
        cuts: offsets in ``prompt``, ascending: up to each of them it may begin like later requests, those
            that stay the same for longest first. A service that caches what is marked marks them.
        earlier: what was said before in the same conversation, oldest first.
    """

    prompt: str
    purpose: Purpose
    key: str
    cuts: tuple[int, ...] = ()
    earlier: tuple[Turn, ...] = ()

    @property
    def transcript(self) -> str:
        """The whole conversation as one text, for who takes no messages; ``prompt`` where it stands alone."""
        told = [f"{turn.prompt}\n\n## Your reply\n{turn.reply.strip()}\n\n" for turn in self.earlier]
        return "".join([*told, self.prompt])


@dataclass(frozen=True)
class ModelReply:
    """The answer to one request; ``text`` may be empty, ``model`` is the name that answered."""

    text: str
    finish: Finish
    usage: Usage
    model: str


class ModelClient(Protocol):
    """A language model, or something that answers like one. Safe to call from several threads."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: the service refused it for good; the message says what to fix.
            ModelUnavailableError: no answer in spite of retries.
        """
        ...
