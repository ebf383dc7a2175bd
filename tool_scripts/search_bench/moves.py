"""Steps of recorded trees: start and end of each, and the best of its lineage."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from adaexplore.core.plan import StepKind
from skill_memory.failures.failure import lineages
from tool_scripts.search_bench.traces import RecordedStep, RecordedTree

ADVANCE = 0.05
"""Levels by which a lineage's best must grow to count as progress; timing noise is far smaller."""
TRIED = 3
"""Number of nodes from which on a lineage's best level is informative about its ceiling."""
DEFAULT_NOISE = 0.01


@dataclass(frozen=True)
class Move:
    """A step from ``start`` to ``end`` (levels; None for a failure).

    ``stuck`` says that the step's lineage never advanced again, this step included.
    """

    start: float
    end: float | None
    stuck: bool = False


@dataclass(frozen=True)
class Moves:
    """The steps of one tree."""

    small: tuple[Move, ...]  # edits of correct kernels
    large: tuple[Move, ...]  # new kernels with others in view; they start from the best of these
    fresh: tuple[float | None, ...]  # ends of new kernels with none in view
    first_repairs: tuple[float | None, ...]  # ends of edits of failed kernels without a correct ancestor
    repaired: tuple[bool, ...]  # for each edit of a failed kernel, whether it worked
    lineages: tuple[tuple[float, float], ...]  # the first and the best level of each lineage


def recorded_moves(tree: RecordedTree) -> Moves:
    """Sort the steps of ``tree``."""
    level = {step.id: step.level for step in tree.steps}
    founder = lineages((step.id, step.kind, step.parent_id) for step in tree.steps)
    levels: dict[int, list[float]] = {}
    advanced: dict[int, int] = {}
    for step, key, _, advances in _walk(tree):
        if step.level is not None:
            levels.setdefault(key, []).append(step.level)
        if advances:
            advanced[key] = step.id
    size = Counter(founder.values())
    small, large = [], []
    fresh, first_repairs, repaired = [], [], []
    for step in tree.steps:
        shown = [known for node in step.context_ids if (known := level[node]) is not None]
        start = level.get(step.parent_id)
        if step.kind is StepKind.LARGE and shown:
            large.append(Move(max(shown), level[step.id]))
        elif step.kind is StepKind.LARGE:
            fresh.append(level[step.id])
        elif start is not None:
            small.append(Move(start, level[step.id], step.id > advanced.get(founder[step.id], 0)))
        else:
            repaired.append(step.level is not None)
            if not shown:
                first_repairs.append(level[step.id])
    tried = tuple((found[0], max(found)) for key, found in levels.items() if size[key] >= TRIED)
    return Moves(tuple(small), tuple(large), tuple(fresh), tuple(first_repairs), tuple(repaired), tried)


def repair_rate(trees: Sequence[RecordedTree]) -> float:
    """Return the share of edits of failed kernels that worked, over all ``trees``: one has too few."""
    results = [worked for tree in trees for worked in recorded_moves(tree).repaired]
    return fmean(results) if results else 0.5


def timing_noise(trees: Sequence[RecordedTree]) -> float:
    """Estimate the standard deviation of a speedup's logarithm from sources that were measured repeatedly."""
    variances: list[float] = []
    for tree in trees:
        by_source: dict[str, list[float]] = {}
        for step in tree.steps:
            if step.level is not None and step.source.strip():
                by_source.setdefault(step.source, []).append(step.level)
        variances += [variance(levels) for levels in by_source.values() if len(levels) > 1]
    return math.sqrt(fmean(variances)) if variances else DEFAULT_NOISE


def stall_hazard(trees: Sequence[RecordedTree]) -> tuple[float, float]:
    """Return how often a small step advances a lineage with headroom: just advanced, and stalled 4 times.

    A lineage has headroom while its best is half a level below the tree's. Without hidden ceilings both would
    be equal.
    """
    results: tuple[list[bool], list[bool]] = ([], [])
    for tree in trees:
        stalled: dict[int, int] = {}
        for _, key, before, advances in _walk(tree):
            if before is not None and before < tree.top - 0.5 and stalled[key] in (0, 4, 5, 6, 7, 8, 9):
                results[stalled[key] > 0].append(advances)
            stalled[key] = 0 if advances else stalled.get(key, 0) + 1
    return tuple(fmean(part) if part else 0.0 for part in results)  # type: ignore[return-value]


def _walk(tree: RecordedTree) -> Iterator[tuple[RecordedStep, int, float | None, bool]]:
    """Yield each step, its lineage's first step, the lineage's best before it, and whether it is better."""
    founder = lineages((step.id, step.kind, step.parent_id) for step in tree.steps)
    best: dict[int, float] = {}
    for step in tree.steps:
        key = founder[step.id]
        before, level = best.get(key, -math.inf), step.level
        yield step, key, best.get(key), level is not None and level > before + ADVANCE
        if level is not None:
            best[key] = max(before, level)
