"""A candidate's source and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from adaexplore.core.usage import Usage


class DraftOutcome(StrEnum):
    """What became of the model's replies in one step."""

    WRITTEN = "written"  # new source, to be judged
    UNCHANGED = "unchanged"  # the reply asked for no effective change
    EDIT_FAILED = "edit_failed"  # edits did not match, also after repair; source is the parent's
    EMPTY = "empty"  # an empty reply
    REFUSED = "refused"  # the model declined
    CUT = "cut"  # the reply hit the token limit
    NO_CODE = "no_code"  # a reply in which no code can be found


@dataclass(frozen=True)
class Exchange:
    """One prompt and the reply to it.

    Attributes:
        purpose: what it was asked for, by name.
        prompt: the whole message.
        reply: the text that came back.
        finish: how the reply ended: complete, cut (by the token limit) or refused.
    """

    purpose: str
    prompt: str
    reply: str
    finish: str = "complete"


@dataclass(frozen=True)
class Draft:
    """The result of one agent step.

    Attributes:
        outcome: how the step ended on the model's side.
        source: the candidate, or "" where no source came about.
        exchanges: every prompt and reply of the step, in order.
        usage: their cost.
    """

    outcome: DraftOutcome
    source: str
    exchanges: tuple[Exchange, ...]
    usage: Usage
