"""What the pages show of runs: values without files behind them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from adaexplore.core.draft import Exchange
from adaexplore.core.plan import StepKind
from adaexplore.core.profile import Profile
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.report.task_result import Best, total_usage

UNREADABLE = "unreadable"

SHAPES = {
    "passed": ("passed",),
    "wrong": ("wrong_shape", "wrong_dtype", "wrong_value", "nonfinite", "nondeterministic"),
    "build": ("syntax", "load", "construct", "compile"),
    "crash": ("launch", "illegal_access", "crash", "out_of_memory", "timeout"),
    "rejected": ("integrity",),
    "broken": (UNREADABLE,),
}
"""Statuses that share a shape and a colour; all others are shown as ``nothing`` to judge."""

LEGEND = {
    "passed": "correct",
    "wrong": "wrong output",
    "build": "does not load or compile",
    "crash": "fails when it runs",
    "rejected": "rejected by an integrity check",
    "nothing": "nothing to judge",
    "broken": "its files cannot be read",
}


@dataclass(frozen=True)
class Node:
    """One step of a search, the dummy root left out.

    Attributes:
        step: its number.
        parent: the node under which it was made; 0 is the root.
        kind: how it came about; None where that cannot be read.
        context: the nodes that the model was shown, elite ones included.
        status: the verdict's status, what left nothing to judge, or ``unreadable``.
        found: the candidate itself, if it is correct.
        best: the best candidate after this step.
        usage: its cost, None where none was recorded.
        fault: why it cannot be read.
    """

    step: int
    parent: int
    kind: StepKind | None
    context: tuple[int, ...]
    status: str
    found: Best
    best: Best
    usage: Usage | None
    fault: str = ""

    @property
    def shape(self) -> str:
        """Return the key of :data:`LEGEND` that its status belongs to."""
        return next((shape for shape, statuses in SHAPES.items() if self.status in statuses), "nothing")

    @property
    def label(self) -> str:
        """Return the node in words."""
        kind = "step" if self.kind is None else self.kind.value.replace("_", " ")
        flags = f", {', '.join(self.found.flags)}" if self.found.flags else ""
        return f"Step {self.step}, {kind}, {speedup_text(self.found) or self.status}{flags}"


@dataclass(frozen=True)
class TaskView:
    """One task; ``nodes`` are in the order in which the search observed them."""

    key: str
    nodes: tuple[Node, ...] = ()
    finished: bool = False
    failure: str = ""

    @property
    def best(self) -> Best:
        """Return the best candidate."""
        return self.nodes[-1].best if self.nodes else Best()

    @property
    def usage(self) -> Usage | None:
        """Return the cost of all steps, None where a part of it was not recorded."""
        return total_usage(node.usage for node in self.nodes)

    @property
    def failures(self) -> dict[str, int]:
        """Return how many steps ended in which status but ``passed``, the most frequent first."""
        return dict(Counter(node.status for node in self.nodes if node.shape != "passed").most_common())

    def node(self, step: int) -> Node | None:
        """Return the node of a step, None where there is none."""
        return next((node for node in self.nodes if node.step == step), None)


@dataclass(frozen=True)
class RunView:
    """One run; ``notes`` are faults of its files, ``loading`` says that more is about to be read."""

    name: str
    path: str
    tasks: tuple[TaskView, ...] = ()
    total_steps: int | None = None
    running: bool = False
    loading: bool = False
    notes: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()

    def task(self, key: str) -> TaskView | None:
        """Return a task, None where there is none."""
        return next((task for task in self.tasks if task.key == key), None)

    def status(self, task: TaskView) -> str:
        """Return what is going on with a task, in a word or two."""
        if task.failure:
            return "could not be run"
        if task.finished:
            return "finished"
        return ("running" if task.nodes else "waiting") if self.running else "stopped"


@dataclass(frozen=True)
class Details:
    """All that is known of one node; texts are None where they were not recorded."""

    code: str | None = None
    written: str | None = None
    parent_code: str | None = None
    reference: str | None = None
    exchanges: tuple[Exchange, ...] = ()
    verdict: Verdict | None = None
    profile: Profile | None = None
    faults: tuple[str, ...] = ()


def parents(nodes: Sequence[Node]) -> Iterator[tuple[Node, int]]:
    """Yield each node with its parent; one that does not come before the node is taken for the root."""
    seen = {0}
    for node in nodes:
        yield node, node.parent if node.parent in seen else 0
        seen.add(node.step)


def speedup_text(best: Best) -> str:
    """Return a speedup with its interval; empty where nothing is correct."""
    if not best.correct:
        return ""
    if best.speedup is None:
        return "correct, not timed"
    sure = "" if best.interval is None else f" [{best.interval.low:.2f}, {best.interval.high:.2f}]"
    return f"{best.speedup:.2f}x{sure}"


def finite(value: float | None) -> float:
    """Return a number that can be drawn; 0 for what is not one."""
    return value if value is not None and math.isfinite(value) and abs(value) < 1e12 else 0.0


def capped_mean(bests: Iterable[Best], cap: float, failed: float) -> float | None:
    """Return the geometric mean of speedups; None where none was measured.

    Tasks that are correct and were not timed stay out of it, as in the statistics.
    """
    known = [best.speedup for best in bests if best.speedup or not best.correct]
    if not any(known):
        return None
    return math.exp(math.fsum(math.log(min(speedup or failed, cap)) for speedup in known) / len(known))
