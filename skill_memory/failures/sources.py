"""Read recorded failures from run directories of this project or the release, and from recorded trees."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.draft import STOPPED, DraftOutcome
from adaexplore.core.errors import RecordError
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import Verdict
from adaexplore.records import layout
from adaexplore.records.run_records import RunRecords
from skill_memory.failures.failure import Failure, TaskFailures, is_failure, is_infrastructure, lineages
from skill_memory.failures.signature import writable

log = logging.getLogger(__name__)

_WRONG_VALUES = "incorrect output"
_TIMEOUT = "Subprocess timeout"
_COMPILERS = "triton.compiler.errors."
_PLACE = re.compile(r"(?:in \w+, )?line (\d+)(?:, `(.*)`)?: ")
"""Start of the feedback of a lint or of the compile gate (``agent/checks.py``)."""


@dataclass(frozen=True)
class Collected:
    """Failures by task, and the number of infrastructure failures."""

    tasks: tuple[TaskFailures, ...] = ()
    infrastructure: int = 0

    def __add__(self, other: Collected) -> Collected:
        return Collected(self.tasks + other.tasks, self.infrastructure + other.infrastructure)

    @property
    def failures(self) -> int:
        return sum(len(task.failures) for task in self.tasks)


def from_run(folder: Path) -> Collected:
    """Read the failures in a run directory; skip tasks with damaged records, with a warning.

    Raises:
        RecordError: ``folder`` is not a run directory.
    """
    records = RunRecords.existing(folder)
    found = Collected()
    for key in records.tasks():
        try:
            found += from_task(records, key)
        except RecordError as error:
            log.warning("left out: %s", error)
    return found


def from_task(run: RunRecords, key: str) -> Collected:
    """Read the failures of one task of a run; failures of copied steps belong to the run that made them.

    Raises:
        RecordError: a record is damaged.
    """
    task = run.task(key)
    steps = task.steps()
    reference = task.reference() if task.has_reference() else ""
    heads = lineages((s.node.plan.step, s.node.plan.kind, s.node.plan.parent_id) for s in steps)
    if task.agent_type == layout.IRS:
        heads = dict.fromkeys(heads, 1)  # one chain
    numbers = [step.node.plan.step for step in steps if step.node.plan.step > 0]
    makers = dict(zip(numbers, run.makers(key, len(numbers)), strict=True))
    judged: dict[str, list[Failure]] = {maker: [] for maker in makers.values()}
    for step in steps:
        number = step.node.plan.step
        failure = _failure(step, heads[number], reference)
        if failure is not None:
            judged[makers.get(heads[number], makers[number])].append(failure)
    return sum((_sorted_out(maker, failures) for maker, failures in judged.items()), Collected())


def _failure(step: StepRecord, lineage: int, reference: str) -> Failure | None:
    """Return the failure in a verdict of the judge, a lint or the gate; None if there is none."""
    verdict, line = step.verdict, None
    stopped = step.draft.outcome in STOPPED
    if verdict is None or step.draft.outcome is DraftOutcome.SEED or not (step.evaluated or stopped):
        return None
    place = _PLACE.match(verdict.feedback) if stopped else None
    if place is not None:
        line, text = int(place[1]), verdict.feedback[place.end() :]
        lints = verdict.lints
        text = text.partition("\n")[0] if lints else text  # one line per finding; the first one decides
        told = FailureText(runtime_error=f"{place[2] or ''}\n{text}", lint=lints[0] if lints else "")
        verdict = Verdict(status=verdict.status, failure=told)
    return Failure(step.node.plan.step, step.draft.source, verdict, lineage, line, reference)


def from_trees(folder: Path) -> Collected:
    """Read the failures of the recorded trees in ``folder`` (``*.json``, one task each).

    Other files are skipped with a warning.

    Raises:
        RecordError: there are no recorded trees.
    """
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else [folder] if folder.is_file() else []
    found, read = Collected(), 0
    for path in paths:
        try:
            tree = json.loads(regular_bytes(path))
            found += _sorted_out(path.stem, _tree_failures(tree))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            log.warning("left out: %s is not a recorded tree (%s: %s)", path, type(error).__name__, error)
        else:
            read += 1
    if not read:
        raise RecordError(f"{folder} holds no recorded trees (*.json with 'steps')")
    return found


def _tree_failures(tree: dict[str, Any]) -> Iterator[Failure]:
    steps = sorted(tree["steps"], key=lambda step: int(step["step"]))
    heads = lineages((int(s["node_id"]), StepKind(s["created_by"]), s["parent_node_id"]) for s in steps)
    for step in steps:
        if step["code"]:
            yield Failure(
                int(step["step"]),
                writable(str(step["code"])),
                trace_verdict(step),
                lineage=heads[int(step["node_id"])],
                reference=writable(str(tree.get("reference_src") or "")),
            )


def trace_verdict(step: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a step of a recorded tree, which has only the last line of the error.

    Raises:
        KeyError, TypeError: the step is not of that shape.
    """
    score, error = step["score"], str(step.get("error") or "").rstrip()
    if score["correct"]:
        return Verdict(status=Status.PASSED)
    if error == _WRONG_VALUES:
        return Verdict(status=Status.WRONG_VALUE)
    if error == _TIMEOUT:
        return Verdict(status=Status.TIMEOUT, failure=FailureText(error=error))
    name, _, message = error.partition(": ")
    if "." not in name or " " in name.strip():
        return Verdict(status=Status.CRASH)
    told = FailureText(runtime_error=message, runtime_error_name=name)
    if name.endswith(("SyntaxError", "IndentationError", "TabError")):
        return Verdict(status=Status.SYNTAX, failure=told)
    if not score["compiled"]:
        return Verdict(status=Status.LOAD, failure=told)
    return Verdict(status=Status.COMPILE if name.startswith(_COMPILERS) else Status.LAUNCH, failure=told)


def _sorted_out(task: str, judged: Iterable[Failure]) -> Collected:
    failures, infrastructure = [], 0
    for each in judged:
        if not each.verdict.status.is_fault:
            continue
        if is_infrastructure(each.verdict):
            infrastructure += 1
        elif is_failure(each.verdict):
            failures.append(each)
    return Collected((TaskFailures(task, tuple(failures)),), infrastructure)
