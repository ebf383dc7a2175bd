"""The one loop: plan, draft, verdict, observe, record."""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from adaexplore.core.draft import AS_BEFORE, STOPPED, Draft, DraftOutcome
from adaexplore.core.errors import AdaExploreError, AnswersPending, BudgetReached, Interrupted
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.streams import stream
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import score_of
from adaexplore.records.steering import Steered
from adaexplore.run.history import History
from adaexplore.run.in_flight import InFlight
from adaexplore.run.step import JudgedDraft, Solver, take_step
from adaexplore.search.directions import directed

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S = 0.5
"""Seconds between two checks whether a paused run was resumed."""

_NOTHING_NEW = (*STOPPED, *AS_BEFORE)
"""Outcomes without a new verdict of the judge."""


def solve(solver: Solver, stop: threading.Event) -> Iterator[StepRecord]:
    """Search one task up to ``total_steps``, continuing from its records; later records stay as they are.

    Each record is yielded once it is on disk, in the order in which the policy observed the steps;
    existing records come first. Each step has its own random stream, so a resumed search
    continues as if it had never stopped. Steps in flight that were not recorded are repeated with the
    same plans.

    Raises:
        Interrupted: ``stop`` was set; drafts being written are dropped, drafts being judged are kept. Or a
            user stopped the run; then all steps in flight are kept.
        AnswersPending: all steps that may be in flight wait for answers.
        BudgetReached: no further step may start; those in flight are kept.
        ModelError, JudgeError, StorageError: nothing of the failing step is kept; others in flight are.
    """
    search = _Search(solver, stop)
    yield from search.resume()
    search.begin()
    failure: AdaExploreError | None = None
    pending: AnswersPending | None = None
    while True:
        while failure is None and not stop.is_set() and search.may_start():
            if solver.steering.stopped():
                failure = Interrupted("stopped by adaexplore steer; the same command continues from here")
                break
            if solver.steering.paused():
                if search.in_flight:
                    break  # keep results that arrive while waiting
                stop.wait(_LOOK_AGAIN_S)
                continue
            try:
                search.start_next()
            except BudgetReached as reached:
                if search.in_flight:
                    break  # their cost decides
                if solver.budget.reached is not None:
                    failure = reached
                else:
                    solver.budget.wait()  # the cost of other tasks' steps decides
        if not search.in_flight:
            break
        plan, ended = search.in_flight.take()
        try:
            judged = ended.result()
        except AnswersPending as missing:
            search.park(plan)
            if pending is None or missing.prompts >= pending.prompts:
                pending = missing  # an earlier one may have counted before others wrote their prompts
            continue
        except AdaExploreError as error:
            search.drop(plan)
            failure = failure or error
            if search.in_flight:
                logger.warning("%s; waiting for %d steps in flight", error, len(search.in_flight))
            continue
        yield search.keep(plan, judged)
    if failure is not None:
        raise failure
    if pending is not None:
        raise pending
    if search.waiting:
        raise Interrupted("stopped")
    search.finish()


class _Search:
    """The state of one task's search; used only by the loop's thread."""

    def __init__(self, solver: Solver, stop: threading.Event) -> None:
        self._solver = solver
        self._stop = stop
        self._task = solver.agent.task
        self._history = History()
        self._verdicts = solver.verdicts
        self._recorded = solver.records.steps()
        self._kept_findings = 0
        self.in_flight = InFlight[JudgedDraft]()
        self.waiting: deque[int] = deque()
        self._since: dict[int, float] = {}
        self._parked: list[Plan] = []
        self._begun: dict[int, Plan] = {}
        self._pinned: set[int] = set()
        self._pins_seen = 0

    def resume(self) -> Iterator[StepRecord]:
        """Observe and yield the recorded steps."""
        profiles = self._solver.records.profiles()
        self._verdicts.learn_findings(self._solver.records.findings())
        self._kept_findings = len(self._verdicts.findings())
        made = [record for record in self._recorded if record.node.plan.step > 0]
        for record in made[: self._solver.total_steps]:
            self._solver.policy.observe(record.node.plan, record.draft.source, score_of(record.verdict))
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
        """Prepare for more steps; in a new task, have the judge check the problem and write the root.

        Recorded facts about the problem are used again unless their conditions have changed. They are on disk
        before the first prompt.
        """
        records, rules, task = self._solver.records, self._solver.agent.rules, self._task
        facts, now = records.reference_facts(), self._solver.conditions
        stale = facts is not None and facts.conditions != now
        if (not self._history and facts is None) or (self.waiting and stale):
            facts = self._verdicts.check_problem()
            if facts is not None:
                facts = facts.model_copy(update={"conditions": facts.conditions or now})
                records.write_reference_facts(facts)
        if not self._history:
            records.write_reference(task.reference, task.hidden_workloads, task.full_reference)
            nothing = Draft(DraftOutcome.EMPTY, "", (), Usage())
            records.write_step(StepRecord(self._solver.policy.root_state(), nothing, None, False))
        agent = replace(self._solver.agent, reference=facts)
        self._solver = replace(self._solver, agent=agent)
        if self.waiting:
            records.set_aside()
            if records.rules() != rules:
                records.write_rules(rules)

    def may_start(self) -> bool:
        """Return whether another step may start now; the first planned step waits for all seeds."""
        if not self.waiting or len(self.in_flight) + len(self._parked) >= self._solver.parallel_steps:
            return False
        return self._is_seed(self.waiting[0]) or not any(
            self._is_seed(plan.step) for plan in self.in_flight.plans
        )

    def start_next(self) -> None:
        """Plan the next step and start work on it.

        Raises:
            BudgetReached: the step would exceed the budget.
        """
        solver, step = self._solver, self.waiting[0]
        if not self._is_seed(step):
            solver.budget.admit()
            self._since[step] = time.monotonic()
        self.waiting.popleft()
        if self._is_seed(step):
            plan = Plan(step, StepKind.LARGE, 0)
        elif step in self._begun:
            plan = self._begun[step]
        else:
            plan = self._planned(step)
            if solver.parallel_steps > 1:
                self._begun[step] = plan
                solver.records.write_plans(list(self._begun.values()))
        recent, elite = self._history.shown(plan.context_ids), self._history.shown(plan.elite_ids)
        self.in_flight.start(plan, partial(take_step, solver, plan, recent, elite, self._stop))

    def keep(self, plan: Plan, judged: JudgedDraft) -> StepRecord:
        """Let the policy observe the result of ``plan``, and write the step."""
        draft = judged.draft
        since = self._since.pop(plan.step, None)
        if since is not None:
            self._solver.budget.settle(time.monotonic() - since)
        node = self._solver.policy.observe(plan, draft.source, judged.score)
        record = StepRecord(
            node,
            draft,
            judged.verdict,
            judged.evaluated,
            written=judged.written,
            pinned=plan.step in self._pinned,
        )
        findings = self._verdicts.findings()
        if len(findings) > self._kept_findings:
            self._solver.records.write_findings(findings)
            self._kept_findings = len(findings)
        self._solver.records.write_step(record)
        self._begun.pop(plan.step, None)
        self._remember(record)
        return record

    def park(self, plan: Plan) -> None:
        """Keep ``plan`` pending while its prompt waits in a mailbox; other plans count it as in flight."""
        self.drop(plan)
        self._parked.append(plan)

    def drop(self, plan: Plan) -> None:
        """Forget ``plan``, which has no result."""
        if self._since.pop(plan.step, None) is not None:
            self._solver.budget.drop()

    def finish(self) -> None:
        """Write the best kernel, and the tree unless more steps are recorded than it holds."""
        solver, records = self._solver, self._solver.records
        if sum(record.node.plan.step > 0 for record in self._recorded) <= solver.total_steps:
            records.write_tree(
                solver.policy.statistics().as_keys(), solver.policy.describe(self._history.edits_failed)
            )
        best, clean = self._history.best, self._history.best_clean
        if best.verdict is not None and best.verdict.suspect_flags and clean.verdict is not None:
            records.write_best_clean(solver.total_steps, clean.source, clean.verdict)
        records.write_best(solver.total_steps, best.source, best.verdict)

    def _planned(self, step: int) -> Plan:
        """Return the plan that the user asked for, else the policy's."""
        rng = stream(self._solver.seed, self._task.key, "search", step)
        beside, asked = (*self.in_flight.plans, *self._parked), self._asked(step)
        plan = self._pinned_plan(step, asked.pinned)
        if plan is None:
            plan = self._decided(step, rng, asked.banned, beside)
            plan = directed(plan, self._solver.policy.tree, beside, self._solver.directions)
        return replace(plan, note=asked.note, banned=asked.banned)

    def _asked(self, step: int) -> Steered:
        """Return the user's steering of a step: from the repeated run's records, else the current one."""
        found, steering = self._solver.steered.get(step, Steered()), self._solver.steering
        key = self._task.key
        return replace(
            found, note=found.note or steering.note(key), banned=found.banned or steering.bans(key)
        )

    def _pinned_plan(self, step: int, node: int | None) -> Plan | None:
        """Return the plan that the user asked for; None without one or if its kernel is missing."""
        if node is None:
            pins = self._solver.steering.pins(self._task.key)
            if self._pins_seen >= len(pins):
                return None
            node = pins[self._pins_seen]
            self._pins_seen += 1
        if not self._history.has_kernel(node):
            logger.warning("task %s has no kernel of step %d to pin", self._task.key, node)
            return None
        self._pinned.add(step)
        return Plan(step, StepKind.SMALL, node, (node,))

    def _decided(self, step: int, rng: random.Random, bans: tuple[int, ...], beside: Sequence[Plan]) -> Plan:
        """Return the policy's plan; if nodes are banned, the plan of a search without them."""
        policy, gone = self._solver.policy, set(bans)
        if not gone:
            return policy.plan(step, rng, beside)
        without = type(policy)(policy.knobs)
        for node in policy.tree:
            if node.id in gone or node.plan.parent_id in gone:
                gone.add(node.id)
            elif node.parent is not None:
                without.observe(node.plan, node.source, node.score)
        return without.plan(step, rng, [plan for plan in beside if plan.parent_id not in gone])

    def _is_seed(self, step: int) -> bool:
        return step <= len(self._solver.seeds)

    def _remember(self, record: StepRecord) -> None:
        self._history.add(record)
        if record.verdict is None or (not record.evaluated and record.draft.outcome in _NOTHING_NEW):
            return
        for source in (record.draft.source, record.written):
            if source is not None:
                self._verdicts.learn(source, record.verdict)
