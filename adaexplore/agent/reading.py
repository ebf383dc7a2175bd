"""Read a reply: what is its answer, and which source or fault does it hold."""

from __future__ import annotations

from typing import Protocol

from adaexplore.agent import paper_reading
from adaexplore.agent.attempt import NO_CODE, Attempt, told
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.replies import answers
from adaexplore.core.replies.edit_forms import Edits, apply_last, edits_in
from adaexplore.core.replies.programs import Program, is_program, program_in
from adaexplore.core.replies.sources import sources_in
from adaexplore.core.text.edits import EditError
from adaexplore.core.text.identity import source_identity
from adaexplore.prompts.steps import Layout

_NO_PROGRAM = (
    "No code in your answer is a complete file that defines ModelNew. Write out every part of the file."
)
_NO_EDITS = EditError(None, "no edits in the reply")
_NO_CHANGE = (
    "Your answer leaves the program as it was: comments, formatting and names of files are no change. "
    "Make one that has an effect."
)


class Reading(Protocol):
    """How the replies of a run are read."""

    def answer_in(self, reply: str) -> str:
        """Return the part of a reply that is read, and that later prompts repeat."""

    def read(self, answer: str, parent: str | None, written: str) -> Attempt:
        """Return what an answer holds.

        Args:
            answer: the answer.
            parent: the kernel that the step edits; None if it writes a whole file.
            written: the last whole file of this step, which edits in a repair change; "" without one.
        """


class _Tolerant:
    """Reading of the default preset: any form that models write."""

    def answer_in(self, reply: str) -> str:
        return answers.answer_in(reply)

    def read(self, answer: str, parent: str | None, written: str) -> Attempt:
        edits = edits_in(answer)
        base = written or parent or ""
        program = program_in(_without(answer, edits), base=base) or _in_new_text(edits)
        edited, error = _edited(base, edits)
        repeats = program is not None and source_identity(program.source) == source_identity(base)
        if edited is not None and edits is not None:
            if program is None or repeats or edits.end > program.end:
                return _attempt(edited, parent, rewritten=bool(parent and written))
        elif program is not None and repeats and edits is not None:
            program = None
        if program is not None:
            return _attempt(program.source, parent, rewritten=parent is not None)
        if parent is not None:
            return Attempt(DraftOutcome.EDIT_FAILED, parent, RepairReason.EDIT, _objection(answer, error))
        if base and edits is not None:
            return Attempt(DraftOutcome.NO_CODE, "", RepairReason.EDIT, told(error))
        return Attempt(DraftOutcome.NO_CODE, "", RepairReason.FORMAT, _objection(answer, _NO_EDITS, NO_CODE))


def reading_of(layout: Layout) -> Reading:
    """Return how replies to prompts of this layout are read; in layout ``paper``, as the release does."""
    return paper_reading if layout == "paper" else _Tolerant()


def _edited(base: str, edits: Edits | None) -> tuple[str | None, EditError]:
    if edits is None or not base:
        return None, _NO_EDITS
    try:
        return apply_last(base, edits.edits), _NO_EDITS
    except EditError as error:
        return None, error


def _without(answer: str, edits: Edits | None) -> str:
    """Return ``answer`` with blanks in place of its edits, so that all places stay."""
    if edits is None:
        return answer
    return f"{answer[: edits.start]}{' ' * (edits.end - edits.start)}{answer[edits.end :]}"


def _in_new_text(edits: Edits | None) -> Program | None:
    """Return the last edit's new text that is a whole file."""
    for edit in reversed(edits.edits if edits else ()):
        if edit.new and is_program(edit.new):
            return Program(f"{edit.new}\n", 0)
    return None


def _attempt(source: str, parent: str | None, *, rewritten: bool) -> Attempt:
    if parent is not None and source_identity(source) == source_identity(parent):
        return Attempt(DraftOutcome.UNCHANGED, source, RepairReason.UNCHANGED, _NO_CHANGE)
    return Attempt(DraftOutcome.WRITTEN, source, rewritten=rewritten)


def _objection(answer: str, error: EditError, without: str = "") -> str:
    """Return the fault of an answer without a usable source."""
    if error.index is None and any(source.text.strip() for source in sources_in(answer, "ModelNew")):
        return _NO_PROGRAM if without else f"{told(error)} {_NO_PROGRAM}"
    return without or told(error)
