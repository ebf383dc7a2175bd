"""The data that pages show: values that need no files."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from adaexplore.core.draft import Exchange
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import StatusKind
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepResult
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.report.figures import gm10
from adaexplore.report.task_result import Best, total_usage

UNREADABLE = "unreadable"


class Shape(StrEnum):
    """How a step is drawn: the CSS class of its form and colour."""

    PASSED = "passed"
    WRONG = "wrong"
    BUILD = "build"
    CRASH = "crash"
    REJECTED = "rejected"
    UNEDITED = "unedited"
    NOTHING = "nothing"
    BROKEN = "broken"

    @property
    def legend(self) -> str:
        match self:
            case Shape.PASSED:
                return "correct"
            case Shape.WRONG:
                return "wrong output"
            case Shape.BUILD:
                return "does not load or compile"
            case Shape.CRASH:
                return "fails when it runs"
            case Shape.REJECTED:
                return "rejected by an integrity check"
            case Shape.UNEDITED:
                return "edit failed: no new kernel"
            case Shape.NOTHING:
                return "nothing to judge"
            case Shape.BROKEN:
                return "its files cannot be read"


def shape_of(result: StepResult) -> Shape:
    """Return the shape of a step that can be read."""
    if result.verdict is None:
        return Shape.UNEDITED if result.edit_failed else Shape.NOTHING
    match result.verdict.status.row.kind:
        case StatusKind.PASSED:
            return Shape.PASSED
        case StatusKind.LOAD | StatusKind.BUILD:
            return Shape.BUILD
        case StatusKind.RUN:
            return Shape.CRASH
        case StatusKind.FORM | StatusKind.VALUES:
            return Shape.WRONG
        case StatusKind.REJECTED:
            return Shape.REJECTED
        case StatusKind.UNKNOWN:
            return Shape.NOTHING


@dataclass(frozen=True)
class Node:
    """One step of a search, except the dummy root."""

    step: int
    parent: int  # its parent; 0 is the root
    kind: StepKind | None  # its kind; None if unreadable
    context: tuple[int, ...]  # the nodes shown to the model, including elite ones
    status: str  # what the step is called (``StepResult``), or ``unreadable``
    shape: Shape  # how it is drawn
    found: Best  # the candidate itself, if it is correct
    best: Best  # the best candidate after this step
    usage: Usage | None  # its cost; None if not recorded
    fault: str = ""  # why it cannot be read
    failure: str = ""  # the kind of its failure, as the skill memory counts it; "" if it teaches no rule
    why: str = ""  # why it has no new kernel; "" if it has one

    @property
    def label(self) -> str:
        kind = "step" if self.kind is None else self.kind.value.replace("_", " ")
        flags = f", {', '.join(self.found.flags)}" if self.found.flags else ""
        return f"Step {self.step}, {kind}, {speedup_text(self.found) or self.status}{flags}"


@dataclass(frozen=True)
class TaskView:
    """One task; ``nodes`` in the order in which the search observed them, ``rules`` those of its prompts."""

    key: str
    nodes: tuple[Node, ...] = ()
    finished: bool = False
    failure: str = ""
    rules: frozenset[str] = frozenset()

    @property
    def best(self) -> Best:
        return self.nodes[-1].best if self.nodes else Best()

    @property
    def usage(self) -> Usage | None:
        """Return the cost of all steps; None if a part of it was not recorded."""
        return total_usage(node.usage for node in self.nodes)

    @property
    def failures(self) -> dict[str, int]:
        """Count the steps of each status except ``passed``, the most frequent first."""
        return dict(
            Counter(node.status for node in self.nodes if node.shape is not Shape.PASSED).most_common()
        )

    def node(self, step: int) -> Node | None:
        return next((node for node in self.nodes if node.step == step), None)


@dataclass(frozen=True)
class RunView:
    """One run; ``notes`` are faults of its files, ``loading`` means that more will be read."""

    name: str
    path: str
    tasks: tuple[TaskView, ...] = ()
    total_steps: int | None = None
    running: bool = False
    loading: bool = False
    notes: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()

    def task(self, key: str) -> TaskView | None:
        return next((task for task in self.tasks if task.key == key), None)

    def status(self, task: TaskView) -> str:
        """Return the state of a task in one or two words."""
        if task.failure:
            return "could not be run"
        if task.finished:
            return "finished"
        return ("running" if task.nodes else "waiting") if self.running else "stopped"


@dataclass(frozen=True)
class Details:
    """All data of one node; texts are None if not recorded."""

    code: str | None = None
    written: str | None = None
    parent_code: str | None = None
    reference: str | None = None
    exchanges: tuple[Exchange, ...] = ()
    verdict: Verdict | None = None
    profile: Profile | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Uplift:
    """How often steps failed as a rule says: with the rule in their prompts, and without."""

    failed_with: int = 0
    steps_with: int = 0
    failed_without: int = 0
    steps_without: int = 0


def uplift(runs: Sequence[RunView], text: str, failures: Collection[str]) -> Uplift:
    """Count steps of ``runs`` that failed as the rule ``text`` explains: with a signature in ``failures``."""
    counts = {True: [0, 0], False: [0, 0]}
    for task in (task for run in runs for task in run.tasks):
        count = counts[text in task.rules]
        count[0] += sum(node.failure in failures for node in task.nodes)
        count[1] += len(task.nodes)
    return Uplift(*counts[True], *counts[False])


def parents(nodes: Sequence[Node]) -> Iterator[tuple[Node, int]]:
    """Yield each node with its parent; a parent that does not precede its node is replaced by the root."""
    seen = {0}
    for node in nodes:
        yield node, node.parent if node.parent in seen else 0
        seen.add(node.step)


def speedup_text(best: Best) -> str:
    """Return a speedup with its interval; "" if nothing is correct."""
    if not best.correct:
        return ""
    if best.speedup is None:
        return "correct, not timed"
    sure = "" if best.interval is None else f" [{best.interval.low:.2f}, {best.interval.high:.2f}]"
    return f"{best.speedup:.2f}x{sure}"


def finite(value: float | None) -> float:
    """Return a finite number; 0 for anything else."""
    return value if value is not None and math.isfinite(value) and abs(value) < 1e12 else 0.0


def gm10_of(bests: Iterable[Best]) -> float | None:
    """Return GM(10) of the best candidates of tasks; None if none was measured.

    Correct tasks that were not timed are left out, as in the statistics.
    """
    known = [best.speedup for best in bests if best.speedup or not best.correct]
    return gm10(known) if any(known) else None
