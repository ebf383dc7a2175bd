"""Context of a step: the pool of a large step, the refinement chain of a small one."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence

from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.tree import Node, Tree, best_correct


def small_chain(selected: Node, max_memory_round: int) -> tuple[Node, ...]:
    """Return the last ``max_memory_round`` nodes of the refinement chain, oldest first, if they have code."""
    return tuple(node for node in selected.chain()[-max_memory_round:] if node.has_code)


def large_pool(tree: Tree, selected: Node, knobs: SearchKnobs, rng: random.Random) -> tuple[Node, ...]:
    """Select at most ``pool_size`` correct kernels, at most one per small-step lineage.

    First the best of every lineage that the path to ``selected`` passes, from the root down; then
    up to ``pool_size_extra_max`` extras of other lineages, in the order in which they were drawn.

    Draws: a uniform sample if the path has more than ``pool_size``. Otherwise, if the pool has space
    and there are candidates, one draw for the number of extras; if that is not 0, one draw per
    candidate (softmax over the speedup).
    """
    path = selected.path()
    pool = _best_of_lineages([node for node in path if node.starts_lineage])
    if len(pool) > knobs.pool_size:
        return tuple(rng.sample(pool, knobs.pool_size))
    space = min(knobs.pool_size - len(pool), knobs.pool_size_extra_max)
    on_path = {node.id for node in path}
    others = [node for node in tree if node.starts_lineage and node.id not in on_path]
    candidates = _best_of_lineages(others) if space > 0 else []
    if not candidates:
        return tuple(pool)
    count = truncated_geometric(rng, knobs.geometric_p, space)
    return (*pool, *softmax_sample(rng, candidates, knobs.softmax_temperature, count))


def softmax_sample(rng: random.Random, nodes: list[Node], temperature: float, count: int) -> tuple[Node, ...]:
    """Sample up to ``count`` of ``nodes`` without replacement, by softmax over their speedup.

    Takes one draw per node, none when ``count`` is 0 or there are no nodes.
    """
    if count <= 0:
        return ()
    order = softmax_order(rng, [node.score.speedup for node in nodes], temperature)
    return tuple(nodes[index] for index in order[:count])


def _best_of_lineages(starts: list[Node]) -> list[Node]:
    """Return the best correct node of each large step's lineage; skip lineages without one."""
    return [best for start in starts if (best := best_correct(start.component())) is not None]


def truncated_geometric(rng: random.Random, p: float, upper: int) -> int:
    """Draw k from 0 .. upper with P(k) proportional to (1 - p)^k; takes one draw."""
    return rng.choices(range(upper + 1), weights=[(1 - p) ** k for k in range(upper + 1)])[0]


def softmax_order(rng: random.Random, values: Sequence[float], temperature: float) -> list[int]:
    """Return the indices of ``values`` in the order of softmax sampling without replacement.

    Each draw takes one of the remaining indices with probability proportional to
    exp(value / temperature). The Gumbel trick gives exactly this distribution. Logarithms of weights
    never underflow, so the order stays defined if one value dwarfs the rest.
    Takes one draw per value, in the order of ``values``.
    """
    keys = [value / temperature - math.log(max(rng.expovariate(1.0), sys.float_info.min)) for value in values]
    return sorted(range(len(keys)), key=lambda index: keys[index], reverse=True)
