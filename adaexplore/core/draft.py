"""A candidate's source and how it came about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict


class DraftOutcome(StrEnum):
    """What became of the model's replies in one step."""

    WRITTEN = "written"  # new source, to be judged
    UNCHANGED = "unchanged"  # the reply asked for no effective change
    EDIT_FAILED = "edit_failed"  # edits did not match, also after repair; source is the parent's
    EMPTY = "empty"  # an empty reply
    REFUSED = "refused"  # the model declined
    CUT = "cut"  # the reply hit the token limit
    NO_CODE = "no_code"  # a reply in which no code can be found
    LINT_STOPPED = "lint_stopped"  # a lint is sure that the source fails, also after repair
    GATE_STOPPED = "gate_stopped"  # the source does not compile, also after repair
    SEED = "seed"  # a starting kernel that the user gave; no model was asked


STOPPED = (DraftOutcome.LINT_STOPPED, DraftOutcome.GATE_STOPPED)
"""Outcomes that come with a verdict of their own."""


class RepairReason(StrEnum):
    """Why the model was asked again within one step."""

    EDIT = "edit"  # its edits did not match
    FORMAT = "format"  # its reply held nothing usable
    UNCHANGED = "unchanged"  # its edits changed nothing
    DUPLICATE = "duplicate"  # an equal program was judged already
    LINT = "lint"  # a lint is sure that the source fails
    GATE = "gate"  # the source does not compile


MOST_SHOWN_CHARS = 2**18
"""A longer reply, or failing source, is not put into a prompt again: no model could read it."""


@dataclass(frozen=True)
class Exchange:
    """One prompt and the reply to it.

    Attributes:
        purpose: what it was asked for, by name.
        prompt: the whole message.
        reply: the text that came back.
        finish: how the reply ended: complete, cut (by the token limit) or refused.
        reason: why it was asked, where it repairs the reply before it (a :class:`RepairReason`), else "".
    """

    purpose: str
    prompt: str
    reply: str
    finish: str = "complete"
    reason: str = ""


def request_name(purpose: str, earlier: Iterable[str]) -> str:
    """What names a request within its step: its purpose, with a number from the second one of it on.

    Args:
        purpose: what it is for.
        earlier: the purposes of the requests before it.
    """
    before = sum(other == purpose for other in earlier)
    return purpose if before == 0 else f"{purpose}-{before + 1}"


@dataclass(frozen=True)
class Draft:
    """The result of one agent step.

    Attributes:
        outcome: how the step ended on the model's side.
        source: the candidate, or "" where no source came about.
        exchanges: every prompt and reply of the step, in order.
        usage: their cost.
        verdict: what is already sure about the source (``LINT_STOPPED``, ``GATE_STOPPED``): the judge is
            not asked for it. None everywhere else.
    """

    outcome: DraftOutcome
    source: str
    exchanges: tuple[Exchange, ...]
    usage: Usage
    verdict: Verdict | None = None
