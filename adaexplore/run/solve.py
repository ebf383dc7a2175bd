"""The one loop: plan, draft, verdict, observe, record."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from adaexplore.agent.agent import Agent
from adaexplore.core.directions import Directions
from adaexplore.core.draft import STOPPED, Draft, DraftOutcome
from adaexplore.core.errors import AdaExploreError, AnswersPending, BudgetReached, Interrupted
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.streams import stream
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Score
from adaexplore.llm.budget import Budget
from adaexplore.records.steering import Steering
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.attempt import AS_BEFORE, Attempt, carry_out, judge_seed, score_of
from adaexplore.run.history import History
from adaexplore.run.in_flight import InFlight
from adaexplore.run.verdicts import Verdicts, recorded_findings
from adaexplore.search.directions import directed
from adaexplore.search.policy import Policy

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.5
"""Seconds between two looks at whether a paused run goes on."""

_NOTHING_NEW = (*STOPPED, *AS_BEFORE)
"""Outcomes whose verdict the judge did not give, or gave before."""


@dataclass(frozen=True)
class Solver:
    """All that one task needs; every part is a leaf that the loop calls.

    Attributes:
        agent: writes drafts.
        policy: decides what is tried next.
        verdicts: the judge behind a memory.
        records: the task's folder.
        seed: the run's seed.
        total_steps: how many steps there are to be, those of ``seeds`` included.
        parallel_steps: how many may be worked on at a time.
        seeds: kernels to begin with; each makes a step without a model.
        directions: what siblings may be told to try.
        profiles: whether a kernel is profiled before a step builds on it.
        budget: admits steps, those of the run's other tasks too; None where nothing is limited.
        steering: what a person asks of the run meanwhile; None where nobody can.
        pinned: the nodes that a person chose in a recorded run that is repeated, by step.
        notes: what prompts said at a person's wish there, by step.
        bans: the nodes that were left out of the search there, by step.
    """

    agent: Agent
    policy: Policy
    verdicts: Verdicts
    records: TaskRecords
    seed: int
    total_steps: int
    parallel_steps: int = 1
    seeds: tuple[str, ...] = ()
    directions: Directions = field(default_factory=Directions)
    profiles: bool = False
    budget: Budget | None = None
    steering: Steering | None = None
    pinned: Mapping[int, int] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    bans: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def solve(solver: Solver, stop: threading.Event) -> Iterator[StepRecord]:
    """Search one task to ``total_steps``, going on from what is recorded; further records are left alone.

    Every record is yielded once it is on disk, the recorded ones first, in the order in which the policy
    observed them. A step draws its random numbers from a stream of its own, so a resumed search goes on as
    if it had never stopped; of several steps in flight those that were not recorded are done again, with the
    same plans.

    Raises:
        Interrupted: ``stop`` was set; what was being written then is dropped, what was being judged is kept.
            Or a person steered the run to its end; then all steps in flight are kept.
        AnswersPending: as many steps as may be in flight wait for answers.
        BudgetReached: no further step may begin; those in flight are kept.
        ModelError, JudgeError, StorageError: nothing of the failing step is kept; others in flight are.
    """
    search = _Search(solver, stop)
    yield from search.resume()
    search.begin()
    failure: AdaExploreError | None = None
    pending: AnswersPending | None = None
    while True:
        while failure is None and not stop.is_set() and search.has_room():
            if solver.steering is not None and solver.steering.stopped():
                failure = Interrupted("stopped by adaexplore steer; the same command goes on from here")
                break
            if solver.steering is not None and solver.steering.paused():
                if search.in_flight:
                    break  # what these find is recorded meanwhile
                stop.wait(_LOOK_AGAIN_S)
                continue
            try:
                search.start_next()
            except BudgetReached as reached:
                if search.in_flight:
                    break  # what these cost decides
                if solver.budget is None or solver.budget.reached is not None:
                    failure = reached
                else:
                    solver.budget.wait()  # what other tasks' steps cost decides
        if not search.in_flight:
            break
        plan, ended = search.in_flight.take()
        try:
            attempt = ended.result()
        except AnswersPending as missing:
            search.park(plan)
            pending = missing
            continue
        except AdaExploreError as error:
            search.drop(plan)
            failure = failure or error
            if search.in_flight:
                logger.warning("%s; waiting for %d steps in flight", error, len(search.in_flight))
            continue
        yield search.keep(plan, attempt)
    if failure is not None:
        raise failure
    if pending is not None:
        raise pending
    if search.waiting:
        raise Interrupted("stopped")
    search.finish()


class _Search:
    """The state of one task's search, and what the loop does with it; used by the loop's thread alone."""

    def __init__(self, solver: Solver, stop: threading.Event) -> None:
        self._solver = solver
        self._stop = stop
        self._task = solver.agent.task
        self._history = History()
        self._verdicts = solver.verdicts
        self._recorded = solver.records.steps()
        self._kept_findings = 0
        self.in_flight = InFlight[Attempt]()
        self.waiting: deque[int] = deque()
        self._since: dict[int, float] = {}
        self._parked: list[Plan] = []
        self._begun: dict[int, Plan] = {}
        self._pinned: set[int] = set()
        self._pins_seen = 0
        self._observed: list[tuple[Plan, str, Score]] = []

    def resume(self) -> Iterator[StepRecord]:
        """Take in and yield what is recorded."""
        profiles = self._solver.records.profiles()
        self._verdicts.learn_findings(recorded_findings(self._solver.records))
        self._kept_findings = len(self._verdicts.findings())
        made = [record for record in self._recorded if record.node.plan.step > 0]
        for record in made[: self._solver.total_steps]:
            self._solver.policy.observe(record.node.plan, record.draft.source, score_of(record.verdict))
            self._observed.append((record.node.plan, record.draft.source, score_of(record.verdict)))
            self._remember(record)
            if record.node.plan.step in profiles:
                self._verdicts.learn_profile(record.draft.source, profiles[record.node.plan.step])
            yield record
        self.waiting.extend(self._history.free_numbers(self._solver.total_steps))
        for plan in self._solver.records.plans():
            if plan.step in self.waiting and self._history.has(
                plan.parent_id, *plan.context_ids, *plan.elite_ids
            ):
                self._begun[plan.step] = plan

    def begin(self) -> None:
        """Make ready for more steps; where there is none yet, have the problem tried and write the root."""
        records, rules = self._solver.records, self._solver.agent.rules
        if not self._history:
            self._verdicts.check_problem()
            records.write_reference(self._task.reference)
            nothing = Draft(DraftOutcome.EMPTY, "", (), Usage())
            records.write_step(StepRecord(self._solver.policy.root_state(), nothing, None, False))
        if self.waiting:
            records.set_aside()
            if records.rules() != rules:
                records.write_rules(rules)

    def has_room(self) -> bool:
        """Whether another step is to be started now; the first one that is planned sees all seeds."""
        if not self.waiting or len(self.in_flight) + len(self._parked) >= self._solver.parallel_steps:
            return False
        return self._is_seed(self.waiting[0]) or not any(
            self._is_seed(plan.step) for plan in self.in_flight.plans
        )

    def start_next(self) -> None:
        """Plan the next step and begin to work on it.

        Raises:
            BudgetReached: it would cost too much.
        """
        solver, step = self._solver, self.waiting[0]
        if solver.budget is not None and not self._is_seed(step):
            solver.budget.admit()
            self._since[step] = time.monotonic()
        self.waiting.popleft()
        if self._is_seed(step):
            work = partial(judge_seed, solver.seeds[step - 1], self._verdicts)
            self.in_flight.start(Plan(step, StepKind.LARGE, 0), work)
            return
        rng = stream(solver.seed, self._task.key, "search", step)
        beside = (*self.in_flight.plans, *self._parked)
        plan = self._begun.get(step)
        if plan is None:
            bans = self._bans(step)
            plan = self._pinned_plan(step)
            if plan is None:
                plan = self._decided(step, rng, bans, beside)
                plan = directed(plan, solver.policy.tree, beside, solver.directions)
            plan = replace(plan, note=self._note(step), banned=bans)
        if solver.parallel_steps > 1 and step not in self._begun:
            self._begun[step] = plan
            solver.records.write_plans(list(self._begun.values()))
        self.in_flight.start(
            plan,
            partial(
                carry_out,
                plan,
                self._history.shown(plan.context_ids),
                self._history.shown(plan.elite_ids),
                agent=solver.agent,
                verdicts=self._verdicts,
                records=solver.records,
                profiles=solver.profiles,
                stop=self._stop,
            ),
        )

    def keep(self, plan: Plan, attempt: Attempt) -> StepRecord:
        """Let the policy observe what came of ``plan``, and write the step."""
        draft = attempt.draft
        since = self._since.pop(plan.step, None)
        if self._solver.budget is not None and since is not None:
            self._solver.budget.settle(time.monotonic() - since)
        node = self._solver.policy.observe(plan, draft.source, attempt.score)
        self._observed.append((plan, draft.source, attempt.score))
        record = StepRecord(
            node,
            draft,
            attempt.verdict,
            attempt.evaluated,
            written=attempt.written,
            pinned=plan.step in self._pinned,
        )
        findings = self._verdicts.findings()
        if len(findings) > self._kept_findings:
            self._solver.records.write_findings({name: asdict(found) for name, found in findings.items()})
            self._kept_findings = len(findings)
        self._solver.records.write_step(record)
        self._begun.pop(plan.step, None)
        self._remember(record)
        return record

    def park(self, plan: Plan) -> None:
        """Leave ``plan`` as it is: its prompt waits in a mailbox, and other plans count with it."""
        self.drop(plan)
        self._parked.append(plan)

    def drop(self, plan: Plan) -> None:
        """Take note that nothing came of ``plan``."""
        if self._solver.budget is not None and self._since.pop(plan.step, None) is not None:
            self._solver.budget.drop()

    def finish(self) -> None:
        """Write the tree, unless it is only a part of what is recorded, and the best kernel."""
        solver, records = self._solver, self._solver.records
        if sum(record.node.plan.step > 0 for record in self._recorded) <= solver.total_steps:
            records.write_tree(asdict(solver.policy.statistics()), solver.policy.describe())
        best, clean = self._history.best, self._history.best_clean
        if best.verdict is not None and best.verdict.suspect_flags and clean.verdict is not None:
            records.write_best_clean(solver.total_steps, clean.source, clean.verdict)
        records.write_best(solver.total_steps, best.source, best.verdict)

    def _pinned_plan(self, step: int) -> Plan | None:
        """Return the plan that a person asked for, None where there is none or its kernel is not there."""
        solver = self._solver
        if step in solver.pinned:
            node = solver.pinned[step]
        else:
            pins = [] if solver.steering is None else solver.steering.pins(self._task.key)
            if self._pins_seen >= len(pins):
                return None
            node = pins[self._pins_seen]
            self._pins_seen += 1
        if not self._history.has_kernel(node):
            logger.warning("task %s has no kernel of step %d to pin", self._task.key, node)
            return None
        self._pinned.add(step)
        return Plan(step, StepKind.SMALL, node, (node,))

    def _bans(self, step: int) -> tuple[int, ...]:
        steering = self._solver.steering
        return self._solver.bans.get(step) or (() if steering is None else steering.bans(self._task.key))

    def _decided(self, step: int, rng: random.Random, bans: tuple[int, ...], beside: Sequence[Plan]) -> Plan:
        """Return the policy's plan; where nodes are banned, that of a search that never had them."""
        policy, gone = self._solver.policy, set(bans)
        if not gone:
            return policy.plan(step, rng, beside)
        policy = type(policy)(policy.knobs)
        for plan, source, score in self._observed:
            if plan.step in gone or plan.parent_id in gone:
                gone.add(plan.step)
            else:
                policy.observe(plan, source, score)
        return policy.plan(step, rng, [plan for plan in beside if plan.parent_id not in gone])

    def _note(self, step: int) -> str:
        steering = self._solver.steering
        return self._solver.notes.get(step) or ("" if steering is None else steering.note(self._task.key))

    def _is_seed(self, step: int) -> bool:
        return step <= len(self._solver.seeds)

    def _remember(self, record: StepRecord) -> None:
        self._history.add(record)
        if record.verdict is None or record.draft.outcome in _NOTHING_NEW:
            return
        for source in (record.draft.source, record.written):
            if source is not None:
                self._verdicts.learn(source, record.verdict)
