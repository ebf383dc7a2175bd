"""Read a run's folder step by step as it grows; a damaged file affects only its own step."""

import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from adaexplore.core.errors import AdaExploreError, RecordError
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.plan import StepKind
from adaexplore.core.step import NodeState
from adaexplore.core.verdict import Verdict
from adaexplore.records import content, layout, metrics
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Steering
from adaexplore.records.step_reader import StepReader
from adaexplore.records.task_records import PROFILE
from adaexplore.report.closing import not_begun_text
from adaexplore.report.task_result import Best
from adaexplore.view.model import UNREADABLE, Details, Node, RunView, Shape, TaskView, shape_of
from skill_memory.failures.signature import signature_of

MAX_BYTES = 64 << 20
"""Files above this are not read."""

READ_FOR_S = 0.3
"""Maximum seconds of one refresh, so that a page shows parts of a large run at once."""

_SETTLED_NS = 2_000_000_000
"""A folder changed this recently may change again within the resolution of its time stamp."""

_BROKEN = (AdaExploreError, ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError)
_TOTAL_STEPS = re.compile(r"^total_steps: *(\d{1,9})\s*$", re.MULTILINE)

T = TypeVar("T")


@dataclass
class _Task:
    folder: Path
    view: TaskView
    reader: StepReader | None = None
    nodes: list[tuple[int, Node]] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    before: NodeState | None = None
    best: Best = field(default_factory=Best)
    listed_at: int = 0
    changed_at: int = -1


class RunFolder:
    """Reads a run of this project or of the release; it never writes."""

    def __init__(self, folder: Path) -> None:
        """Open ``folder``.

        Raises:
            RecordError: ``folder`` is not a run.
        """
        self._notes: tuple[str, ...] = ()
        try:
            RunRecords.existing(folder)
        except RecordError as error:
            if not RunRecords(folder).tasks():
                raise
            self._notes = (str(error),)
        self._root = folder.resolve()
        self._asked = Steering(self._root)
        self._tasks: dict[str, _Task] = {}
        self._view = RunView(name=folder.resolve().name, path=str(folder), loading=True)

    def refresh(self) -> RunView:
        """Read new data for a limited time; return the same object if there is none."""
        until = time.monotonic() + READ_FOR_S
        loading = False
        for key in RunRecords(self._root).tasks():
            task = self._tasks.setdefault(key, _Task(self._root / key, TaskView(key)))
            loading = not self._read_task(task, until) or loading
        view = replace(
            self._view,
            tasks=tuple(task.view for task in self._tasks.values()),
            total_steps=self._total_steps(),
            running=RunRecords(self._root).is_written(),
            steering=self._steering(),
            loading=loading,
            notes=(*self._notes, *self._not_begun()),
        )
        if view != self._view:
            self._view = view
        return self._view

    def details(self, key: str, step: int) -> Details:
        task = self._tasks.get(key)
        node = None if task is None else task.view.node(step)
        if task is None or task.reader is None or node is None:
            return Details()
        reader, files, faults = task.reader, task.reader.files(step), [node.fault] if node.fault else []

        def text(path: Path) -> str | None:
            return self._attempt(lambda: regular_bytes(path).decode("utf-8", "replace"), faults, path)

        metrics_path = files.metrics if files.metrics.exists() else files.metrics_text or files.metrics
        kind = node.kind or StepKind.LARGE
        return Details(
            code=text(files.code),
            written=text(files.written),
            parent_code=text(reader.files(node.parent).code) if node.parent else None,
            reference=text(task.folder / layout.REFERENCE),
            exchanges=self._attempt(
                lambda: reader.exchanges(step, kind), faults, files.exchanges, files.prompt
            )
            or (),
            verdict=None
            if node.why
            else self._attempt(lambda: metrics.read_verdict(metrics_path), faults, metrics_path),
            profile=self._attempt(lambda: content.read_as(files.profile, PROFILE), faults, files.profile),
            faults=tuple(dict.fromkeys(faults)),
        )

    def _read_task(self, task: _Task, until: float) -> bool:
        """Read new steps; return False if time ran out."""
        try:
            changed = task.folder.stat().st_mtime_ns
            if changed == task.changed_at and task.listed_at - changed > _SETTLED_NS:
                return True
            if time.monotonic() > until:
                return False
            if not task.folder.resolve().is_relative_to(self._root):
                raise RecordError(f"{task.folder} is a link to another folder; view that folder")
            task.listed_at, names = time.time_ns(), os.listdir(task.folder)
        except (OSError, RecordError) as error:
            task.view = replace(task.view, failure=_reason(error))
            return True
        reader = StepReader(task.folder, layout.detect_agent(names) or layout.MCTS)
        complete = reader.complete()
        if not task.known.issubset(complete):  # steps were set aside and will be repeated
            task.nodes, task.known, task.before, task.best = [], set(), None, Best()
        task.reader = reader
        found: list[tuple[int, Node]] = []
        done = True
        for step in complete:
            if step in task.known:
                continue
            if time.monotonic() > until:
                done = False
                break
            task.known.add(step)
            found.append(self._read_step(task, reader, step))
        for place, node in sorted(found, key=lambda item: item[0]):
            if node.shape is Shape.PASSED and node.found.correct:
                task.best = task.best.or_found(node.found)
            if node.step > 0:
                task.nodes.append((place, replace(node, best=task.best)))
        if done:
            task.changed_at = changed
        task.view = TaskView(
            key=task.view.key,
            nodes=tuple(node for _, node in task.nodes),
            finished=bool(layout.best_steps(names)),
            failure=self._failure(task.folder),
            rules=task.view.rules or self._rules(task.folder),
        )
        return done

    def _read_step(self, task: _Task, reader: StepReader, step: int) -> tuple[int, Node]:
        """Return a step's place in the order of observation, and its node."""
        files = reader.files(step)
        try:
            for path in (files.log, files.metrics, files.metrics_text, files.usage):
                if path is not None and (path.exists() or path.is_symlink()):
                    self._check(path)
            summary, state = reader.step(step, task.before)
            node = Node(
                step=step,
                parent=state.plan.parent_id,
                kind=summary.kind,
                context=(*state.plan.elite_ids, *state.plan.context_ids),
                status=summary.result.name,
                shape=shape_of(summary.result),
                found=Best().or_better(step, summary.result.verdict),
                best=Best(),
                usage=summary.usage,
                failure=_kind_of_failure(summary.result.verdict),
                why=summary.result.why,
            )
            task.before = state
        except (*_BROKEN, ValueError) as error:
            fault = _reason(error)
            return step + 1, Node(step, 0, None, (), UNREADABLE, Shape.BROKEN, Best(), Best(), None, fault)
        return state.total_nodes, node

    def _not_begun(self) -> list[str]:
        """Return a line that counts the tasks that the run was given and has no folder of; empty if none."""
        records = RunRecords(self._root)
        planned = self._attempt(records.planned, [], self._root / layout.ENVIRONMENT) or []
        count = len(planned) - len(self._tasks)
        return [f"{not_begun_text(count, len(planned))}; the figures are of the others"] if count > 0 else []

    def _rules(self, folder: Path) -> frozenset[str]:
        read = RunRecords(self._root).task(folder.name).rules
        rules = self._attempt(read, [], folder / layout.RULES)
        return frozenset(rules or ())

    def _failure(self, folder: Path) -> str:
        faults: list[str] = []
        read = RunRecords(self._root).task(folder.name).failure
        failure = self._attempt(read, faults, folder / layout.TASK_FAILURE)
        return "".join(faults) if failure is None else failure.message

    def _total_steps(self) -> int | None:
        path = self._root / layout.CONFIG
        found = self._attempt(
            lambda: _TOTAL_STEPS.search(regular_bytes(path).decode("utf-8", "replace")), [], path
        )
        return int(found[1]) if found else None

    def _steering(self) -> tuple[str, ...]:
        faults: list[str] = []
        events = self._attempt(self._asked.events, faults, self._root / layout.STEERING)
        return (*(event.words for event in events or ()), *faults)

    def _attempt(self, read: Callable[[], T], faults: list[str], *paths: Path) -> T | None:
        """Return what ``read`` returns; None without files, or for a damaged one, with its fault added."""
        there = [path for path in paths if path.exists() or path.is_symlink()]
        try:
            for path in there:
                self._check(path)
            return read() if there else None
        except (*_BROKEN, ValueError) as error:
            faults.append(_reason(error))
            return None

    def _check(self, path: Path) -> None:
        """Refuse links, special files and large files.

        Raises:
            RecordError: the file is a link, not a plain file, or too large.
            OSError: the file cannot be accessed.
        """
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise RecordError(f"{path} is not a plain file; the view does not read it")
        if info.st_size > MAX_BYTES:
            raise RecordError(f"{path} has {info.st_size >> 20} MiB; the view reads up to {MAX_BYTES >> 20}")


def _kind_of_failure(verdict: Verdict | None) -> str:
    signature = None if verdict is None or verdict.correct else signature_of(verdict)
    return "" if signature is None else signature.family


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
