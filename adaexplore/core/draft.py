"""A candidate's source and its origin."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from adaexplore.core.judging.profile import Profile
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict


class DraftOutcome(StrEnum):
    """The outcome of the model's replies in one step."""

    WRITTEN = "written"  # new source, to be judged
    UNCHANGED = "unchanged"  # the reply has no effective change
    EDIT_FAILED = "edit_failed"  # edits did not match, even after repair; source is the parent's
    EMPTY = "empty"  # an empty reply
    REFUSED = "refused"  # the model declined
    CUT = "cut"  # the reply hit the token limit
    NO_CODE = "no_code"  # a reply without code
    LINT_STOPPED = "lint_stopped"  # a lint is sure that the source fails, even after repair
    GATE_STOPPED = "gate_stopped"  # the source does not compile, even after repair
    SEED = "seed"  # a starting kernel that the user gave; no model was asked


AS_BEFORE = (DraftOutcome.UNCHANGED, DraftOutcome.EDIT_FAILED)
"""Outcomes that leave the program unchanged."""

STOPPED = (DraftOutcome.LINT_STOPPED, DraftOutcome.GATE_STOPPED)
"""Outcomes with their own verdict."""


class RepairReason(StrEnum):
    """Why a reply was sent back within one step."""

    EDIT = "edit"  # its edits did not match
    FORMAT = "format"  # its reply had no usable content
    UNCHANGED = "unchanged"  # its edits changed nothing
    DUPLICATE = "duplicate"  # an equal program was judged already
    LINT = "lint"  # a lint is sure that the source fails
    GATE = "gate"  # the source does not compile


MOST_SHOWN_CHARS = 2**18
"""Longer replies or failing sources are not put into a prompt again: no model could read them."""


@dataclass(frozen=True)
class Exchange:
    """One prompt and the reply to it."""

    purpose: str
    prompt: str  # the whole message
    reply: str  # the text that came back
    finish: str = "complete"  # how the reply ended: complete, cut (by the token limit) or refused
    reason: str = ""  # the ``RepairReason`` if it repairs the previous reply, else ""


def request_name(purpose: str, earlier: Iterable[str]) -> str:
    """Return the name of a request within its step: its purpose, with a number if ``earlier`` ones had it."""
    before = sum(other == purpose for other in earlier)
    return purpose if before == 0 else f"{purpose}-{before + 1}"


@dataclass(frozen=True)
class Draft:
    """The result of one agent step."""

    outcome: DraftOutcome  # how the step ended on the model's side
    source: str  # the candidate, or "" if there is none
    exchanges: tuple[Exchange, ...]  # every prompt and reply of the step, in order
    usage: Usage
    # the certain verdict of outcomes ``LINT_STOPPED`` and ``GATE_STOPPED``, for which the judge is not asked;
    # else None
    verdict: Verdict | None = None
    rewritten: bool = False  # whether a small step's reply is a whole file in place of edits


@dataclass(frozen=True)
class ShownKernel:
    """A candidate as prompts show it."""

    source: str  # its code
    verdict: Verdict | None  # None if it was never judged
    repeated: bool = False  # whether its verdict is that of an equal program judged before
    profile: Profile | None = None  # its profile, if one was requested

    @property
    def failed(self) -> bool:
        """Whether the judge found it wrong."""
        return self.verdict is not None and not self.verdict.correct
