"""Figures per category of problems."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaexplore.report.figures import geometric_mean, unmeasured
from adaexplore.report.task_result import Best
from adaexplore.report.text import NONE


@dataclass(frozen=True)
class Judged:
    """The best kernel of a problem in one run; ``problem`` is equal in all runs of the problem."""

    problem: str
    category: str
    best: Best


@dataclass(frozen=True)
class CategoryFigures:
    category: str
    tasks: int  # number of its tasks in all runs
    correct: int  # tasks with a correct kernel
    # tasks with a correct kernel that is slower than the reference; None if none was measured
    slower: int | None
    speedup: float | None  # geometric mean over correct, measured kernels
    # greatest ratio of one problem's speedups on two GPUs; None if no problem was measured on several GPUs
    spread: float | None


def by_category(judged: Sequence[Judged]) -> list[CategoryFigures]:
    """Return the figures of each category that occurs, sorted by name."""
    groups: Mapping[str, list[Judged]] = defaultdict(list)
    for each in judged:
        groups[each.category].append(each)
    return [_figures(name, groups[name]) for name in sorted(groups)]


def _figures(category: str, judged: Sequence[Judged]) -> CategoryFigures:
    bests = [each.best for each in judged]
    speedups = [best.speedup for best in bests if best.speedup is not None]
    on: Mapping[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in judged:
        if each.best.speedup is not None and each.best.hardware:
            on[each.problem][each.best.hardware].append(each.best.speedup)
    means = [
        [geometric_mean(found) or 0.0 for found in gpus.values()] for gpus in on.values() if len(gpus) > 1
    ]
    return CategoryFigures(
        category=category,
        tasks=len(judged),
        correct=sum(best.correct for best in bests),
        slower=None if unmeasured(bests) else sum(speedup < 1 for speedup in speedups),
        speedup=geometric_mean(speedups),
        spread=max((max(each) / min(each) for each in means if len(each) > 1), default=None),
    )


def category_table(figures: Sequence[CategoryFigures]) -> tuple[list[str], list[list[str]]]:
    header = ["category", "tasks", "correct", "slower than eager", "speedup", "spread over GPUs"]
    rows = [
        [
            each.category, str(each.tasks), str(each.correct),
            NONE if each.slower is None else str(each.slower),
            NONE if each.speedup is None else f"{each.speedup:.3f}",
            NONE if each.spread is None else f"{each.spread:.2f}",
        ]
        for each in figures
    ]  # fmt: skip
    return header, rows
