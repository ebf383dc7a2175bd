"""What is done about one plan besides deciding on it and remembering it: a draft and a verdict."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adaexplore.agent.agent import Agent
from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.errors import Interrupted
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.tunables import TunablesError, with_values
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Score, Verdict
from adaexplore.prompts.blocks import ShownKernel
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.verdicts import Verdicts

logger = logging.getLogger(__name__)

_CANDIDATES = (DraftOutcome.WRITTEN, DraftOutcome.UNCHANGED, DraftOutcome.EDIT_FAILED, DraftOutcome.SEED)
AS_BEFORE = (DraftOutcome.UNCHANGED, DraftOutcome.EDIT_FAILED)
"""Outcomes that leave the program as it was."""


@dataclass(frozen=True)
class Attempt:
    """All of a step but its place in the tree; see :class:`~adaexplore.core.step.StepRecord`."""

    draft: Draft
    verdict: Verdict | None = None
    evaluated: bool = False
    written: str | None = None

    @property
    def score(self) -> Score:
        """The search's order."""
        return score_of(self.verdict)


def score_of(verdict: Verdict | None) -> Score:
    """The search's order; nothing to judge is the lowest score."""
    return NO_SCORE if verdict is None else verdict.score


def carry_out(
    plan: Plan,
    recent: Sequence[ShownKernel],
    elite: Sequence[ShownKernel],
    *,
    agent: Agent,
    verdicts: Verdicts,
    records: TaskRecords,
    profiles: bool,
    stop: threading.Event,
) -> Attempt:
    """Have a draft written for ``plan`` and judged, unless its verdict is known.

    Args:
        plan: what is wanted.
        recent: the kernels of its context, oldest first.
        elite: those that are shown in a block of their own.
        agent: writes the draft.
        verdicts: the judge, and what it said so far.
        records: keeps the profile before a prompt shows it, so that a resumed step shows the same one.
        profiles: whether the kernel that the step builds on is profiled before.
        stop: set from outside, keeps the draft from being judged.

    Raises:
        Interrupted: ``stop`` was set while the model wrote.
        ModelError, JudgeError: nothing of the attempt is kept.
    """
    shown = [*elite, *recent]
    base = _base(plan, shown) if profiles else None
    if base is not None:
        profile, asked = verdicts.profile(shown[base].source)
        if asked:
            records.write_profile((*plan.elite_ids, *plan.context_ids)[base], profile)
        shown[base] = replace(shown[base], profile=profile)
    draft = agent.draft(plan, shown[len(elite) :], shown[: len(elite)], verdicts.known)
    if stop.is_set():
        raise Interrupted("stopped")
    if draft.outcome in AS_BEFORE and recent[-1].verdict is not None:  # the judge's, or that of a lint
        return Attempt(draft, recent[-1].verdict)
    return judge_draft(draft, verdicts)


def judge_seed(source: str, verdicts: Verdicts) -> Attempt:
    """Have a starting kernel judged.

    Raises:
        JudgeError: the judge failed.
    """
    return judge_draft(Draft(DraftOutcome.SEED, source, (), Usage()), verdicts)


def judge_draft(draft: Draft, verdicts: Verdicts) -> Attempt:
    """Have ``draft`` judged, unless there is nothing to judge, or its verdict is known.

    Where the judge chose the values of the draft's tunables, these stand in the attempt's source.
    """
    if draft.outcome not in _CANDIDATES or not draft.source.strip():
        return Attempt(draft, draft.verdict)
    verdict, evaluated = verdicts.on(draft.source)
    tuned = _tuned(draft.source, verdict)
    if tuned == draft.source:
        return Attempt(draft, verdict, evaluated)
    verdicts.learn(tuned, verdict)
    return Attempt(replace(draft, source=tuned), verdict, evaluated, written=draft.source)


def _base(plan: Plan, shown: Sequence[ShownKernel]) -> int | None:
    """Which of the kernels a step builds on: the one it edits, or the best; None where that one is wrong."""
    places = range(len(shown))[-1:] if plan.kind is StepKind.SMALL else range(len(shown))
    best = max(places, key=lambda place: score_of(shown[place].verdict), default=None)
    return best if best is not None and score_of(shown[best].verdict).correct else None


def _tuned(source: str, verdict: Verdict) -> str:
    """``source`` with the values that the judge's sweep of its tunables chose."""
    if verdict.tuned is None:
        return source
    try:
        return with_values(source, verdict.tuned)
    except (TunablesError, KeyError) as error:
        logger.warning("the judge tuned what the source does not declare: %s", error)
        return source
