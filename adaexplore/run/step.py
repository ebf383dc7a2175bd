"""One step of a search: a draft is written, checked and repaired, then judged."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from adaexplore.agent.agent import Agent, Conversation
from adaexplore.agent.attempt import Attempt
from adaexplore.agent.checks import compiled, duplicate, linted
from adaexplore.core.directions import Directions
from adaexplore.core.draft import AS_BEFORE, Draft, DraftOutcome, RepairReason, ShownKernel
from adaexplore.core.environment import Conditions
from adaexplore.core.errors import Interrupted
from adaexplore.core.plan import Plan
from adaexplore.core.text.dispatch import with_dispatch, without_dispatch
from adaexplore.core.text.identity import MOST_PARSED_CHARS
from adaexplore.core.text.tunables import TunablesError, with_values
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Score, Verdict, score_of
from adaexplore.llm.budget import Budget
from adaexplore.preflight.lints import lint
from adaexplore.records.steering import Steered, Steering
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.policy import Policy

logger = logging.getLogger(__name__)

_CANDIDATES = (DraftOutcome.WRITTEN, *AS_BEFORE, DraftOutcome.SEED)


@dataclass(frozen=True)
class Solver:
    """The parts of one task; the loop calls each, and none calls back."""

    agent: Agent  # writes drafts
    policy: Policy  # decides what to try next
    verdicts: Verdicts  # the judge, with a memory of known verdicts
    records: TaskRecords
    budget: Budget  # admits steps of all tasks of the run
    steering: Steering  # the user's requests while the run goes on
    conditions: Conditions  # under which recorded facts about the reference are used again
    seed: int
    total_steps: int  # total number of steps, including those of ``seeds``
    parallel_steps: int = 1  # maximum number of steps in flight
    seeds: tuple[str, ...] = ()  # starting kernels; each is a step without a model
    # the directions that prompts may give to sibling steps
    directions: Directions = field(default_factory=Directions)
    profiles: bool = False  # whether a kernel is profiled before a step builds on it
    # the user's requests in the recorded run that is repeated, by step
    steered: Mapping[int, Steered] = field(default_factory=dict)


@dataclass(frozen=True)
class JudgedDraft:
    """A step without its place in the tree; see :class:`~adaexplore.core.step.StepRecord`."""

    draft: Draft
    verdict: Verdict | None = None
    evaluated: bool = False
    written: str | None = None

    @property
    def score(self) -> Score:
        """The score by which the search orders candidates."""
        return score_of(self.verdict)


def take_step(
    solver: Solver,
    plan: Plan,
    recent: Sequence[ShownKernel],
    elite: Sequence[ShownKernel],
    stop: threading.Event,
) -> JudgedDraft:
    """Write a draft for ``plan`` and judge it, unless its verdict is known.

    Args:
        solver: the task's parts.
        plan: the plan; the first steps judge the starting kernels.
        recent: the kernels of its context, oldest first.
        elite: kernels that are shown in a separate block.
        stop: an event; when set, the draft is not judged.

    Raises:
        Interrupted: ``stop`` was set while the model wrote.
        ModelError, JudgeError: nothing of the step is kept.
        StorageError: the run's folder was moved or removed.
    """
    solver.records.check_place()
    if plan.step <= len(solver.seeds):
        return _judged(Draft(DraftOutcome.SEED, solver.seeds[plan.step - 1], (), Usage()), solver.verdicts)
    shown = _with_profile(solver, plan, [*elite, *recent]) if solver.profiles else [*elite, *recent]
    recent, elite = shown[len(elite) :], shown[: len(elite)]
    draft = write_draft(solver.agent, solver.verdicts, plan, recent, elite)
    if stop.is_set():
        raise Interrupted("stopped")
    if draft.outcome in AS_BEFORE and recent[-1].verdict is not None:  # of the judge or of a lint
        return JudgedDraft(draft, recent[-1].verdict)
    return _judged(draft, solver.verdicts)


def write_draft(
    agent: Agent,
    verdicts: Verdicts,
    plan: Plan,
    recent: Sequence[ShownKernel],
    elite: Sequence[ShownKernel] = (),
) -> Draft:
    """Ask the model for a source, check it, and send it back until no check objects.

    Raises:
        ModelError: the model could not be asked. A bad answer never raises.
        JudgeError: the judge's compiler failed.
    """
    conversation = Conversation(agent, plan)
    attempts = [_checked(conversation.write(recent, elite), agent, verdicts)]
    while conversation.may_repair(attempts):
        attempts.append(_checked(conversation.repair(attempts), agent, verdicts))
    return conversation.draft(attempts)


def _checked(attempt: Attempt, agent: Agent, verdicts: Verdicts) -> Attempt:
    """Return the attempt with the first objection to its source; the cheapest check runs first."""
    source, repaired, objection = attempt.source, agent.options.repaired, None
    if attempt.outcome is not DraftOutcome.WRITTEN:
        return attempt
    known = verdicts.known(source)
    if known is not None:
        return replace(duplicate(source, known), rewritten=attempt.rewritten)
    if RepairReason.LINT in repaired and len(source) <= MOST_PARSED_CHARS:
        objection = linted(source, lint(source, agent.facts.triton, agent.task.reference))
    if objection is None and RepairReason.GATE in repaired:
        objection = compiled(source, verdicts.compile(source))
    return attempt if objection is None else replace(objection, rewritten=attempt.rewritten)


def _judged(draft: Draft, verdicts: Verdicts) -> JudgedDraft:
    """Judge ``draft``, unless there is nothing to judge or its verdict is known.

    If the judge chose the values of the draft's tunables, the source holds them.
    """
    if draft.outcome not in _CANDIDATES or not draft.source.strip():
        return JudgedDraft(draft, draft.verdict)
    verdict, evaluated = verdicts.on(draft.source)
    tuned = _tuned(draft.source, verdict)
    verdict = verdicts.on_other_gpus(tuned, verdict)
    if tuned == draft.source:
        return JudgedDraft(draft, verdict, evaluated)
    verdicts.learn(draft.source, verdict)
    verdicts.learn(tuned, verdict)
    return JudgedDraft(replace(draft, source=tuned), verdict, evaluated, written=draft.source)


def _with_profile(solver: Solver, plan: Plan, shown: list[ShownKernel]) -> list[ShownKernel]:
    """Add a profile to the kernel that the step builds on (the edited or the best one), if it is correct.

    The profile is recorded before a prompt shows it, so that a resumed step shows the same one.
    """
    places = range(len(shown))[-1:] if plan.kind.edits else range(len(shown))
    base = max(places, key=lambda place: score_of(shown[place].verdict), default=None)
    if base is None or not score_of(shown[base].verdict).correct:
        return shown
    profile, asked = solver.verdicts.profile(shown[base].source)
    if asked:
        solver.records.write_profile((*plan.elite_ids, *plan.context_ids)[base], profile)
    return [*shown[:base], replace(shown[base], profile=profile), *shown[base + 1 :]]


def _tuned(source: str, verdict: Verdict) -> str:
    """Return ``source`` with the values that the judge's config sweep chose."""
    if verdict.tuned_values is None:
        return source
    try:
        return with_dispatch(
            with_values(without_dispatch(source), verdict.tuned_values), verdict.tuned_by_shape
        )
    except (TunablesError, KeyError) as error:
        logger.warning("the judge tuned names that the source does not declare: %s", error)
        return source
