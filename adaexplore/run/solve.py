"""The one loop: plan, draft, verdict, observe, record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from adaexplore.agent.agent import Agent
from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.errors import Interrupted
from adaexplore.core.step import StepRecord
from adaexplore.core.streams import stream
from adaexplore.core.usage import Usage
from adaexplore.judge_client.protocol import Judge
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.history import History, judgeable, score_of
from adaexplore.search.policy import Policy


@dataclass(frozen=True)
class Solver:
    """All that one task needs; every part is a leaf that the loop calls."""

    agent: Agent
    policy: Policy
    judge: Judge
    records: TaskRecords
    seed: int
    total_steps: int


def solve(solver: Solver, stop: threading.Event) -> Iterator[StepRecord]:
    """Search one task to ``total_steps``, going on from what is recorded; further records are left alone.

    Every record is yielded once it is on disk, the recorded ones first. A step draws its random
    numbers from a stream of its own, so a resumed search goes on as if it had never stopped.

    Raises:
        Interrupted: ``stop`` was set; the step in flight is dropped.
        ModelError, JudgeError, StorageError: nothing of the step in flight is kept.
    """
    task, policy, records = solver.agent.task, solver.policy, solver.records
    history = History()
    root = StepRecord(policy.root_state(), Draft(DraftOutcome.EMPTY, "", (), Usage()), None, False)
    recorded = records.steps()
    for record in recorded:
        if 0 < record.node.plan.step <= solver.total_steps:
            policy.observe(record.node.plan, record.draft.source, score_of(record.verdict))
            history.add(record)
            yield record
    if history.next_step == 1:
        solver.judge.check_problem(task)
        records.write_reference(task.reference)
        records.write_step(root)
    for step in range(history.next_step, solver.total_steps + 1):
        plan = policy.plan(step, stream(solver.seed, task.key, "search", step))
        draft = solver.agent.draft(plan, history.shown(plan.context_ids), history.shown(plan.elite_ids))
        if stop.is_set():
            raise Interrupted("stopped")
        verdict, evaluated = None, False
        if judgeable(draft.outcome, draft.source):
            verdict = history.verdict_on(draft.source)
            if verdict is None:
                verdict, evaluated = solver.judge.evaluate(task, draft.source), True
        node = policy.observe(plan, draft.source, score_of(verdict))
        record = StepRecord(node, draft, verdict, evaluated)
        records.write_step(record)
        history.add(record)
        yield record
        if stop.is_set():
            raise Interrupted("stopped")
    if not recorded or recorded[-1].node.plan.step <= solver.total_steps:
        records.write_tree(asdict(policy.statistics()), policy.describe())
    best, clean = history.best, history.best_clean
    if best.verdict is not None and best.verdict.suspect_flags and clean.verdict is not None:
        records.write_best_clean(solver.total_steps, clean.source, clean.verdict)
    records.write_best(solver.total_steps, best.source, best.verdict)
