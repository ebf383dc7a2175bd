"""Inputs of a recorded run: its tasks, starting kernels and steering."""

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import RecordError
from adaexplore.core.task import Task
from adaexplore.core.wire import Direction, DtypeName
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Steered
from adaexplore.records.task_records import TaskRecords


def recorded_tasks(run: RunRecords, dtype: DtypeName, direction: Direction = "forward") -> list[Task]:
    """Return the tasks of a recorded run with their recorded problems; "" for a task that could not run.

    Raises:
        RecordError: a task's problem was not kept, or its folder is not named ``<level>_<problem_id>``.
    """
    return [recorded_task(run.task(key), dtype, direction) for key in run.tasks()]


def recorded_task(records: TaskRecords, dtype: DtypeName, direction: Direction) -> Task:
    """Return one task of a recorded run; see :func:`recorded_tasks`."""
    key = records.folder.name
    level, _, problem_id = key.partition("_")
    if not level.isdecimal():
        raise RecordError(f"{records.folder} holds a task, but is not named <level>_<problem_id>; rename it")
    refused = records.failure() is not None and not records.has_reference()
    reference = "" if refused else records.reference()
    problem = (reference, dtype, records.reference_path, records.hidden_workloads(), direction)
    return Task(int(level), problem_id, key, *problem, full_reference=records.full_reference())


def recorded_seeds(run: RunRecords) -> dict[str, tuple[str, ...]]:
    """Return the starting kernels of a recorded run, by task."""
    seeds = {}
    for key in run.tasks():
        steps = sorted(run.task(key).steps(), key=lambda record: record.node.plan.step)
        begun = [record for record in steps if record.draft.outcome is DraftOutcome.SEED]
        seeds[key] = tuple(record.written or record.draft.source for record in begun)
    return seeds


def recorded_steering(run: RunRecords, key: str) -> dict[int, Steered]:
    """Return the user's steering of a task of a recorded run, by step."""
    found = {}
    for record in run.task(key).steps():
        plan = record.node.plan
        asked = Steered(plan.parent_id if record.pinned else None, plan.note, plan.banned)
        if asked != Steered():
            found[plan.step] = asked
    return found


def one_at_a_time(run: RunRecords) -> bool:
    """Return whether each task's steps were observed in the order in which they were planned.

    Steps copied from another run do not count.
    """
    orders = [
        [step.step for step in run.task(key).summaries() if step.step > 0][run.taken_over(key) :]
        for key in run.tasks()
    ]
    return all(order == sorted(order) for order in orders)
