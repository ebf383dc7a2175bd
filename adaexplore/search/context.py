"""What a step gets to see: the pool of a large step, the refinement chain of a small one."""

from __future__ import annotations

import random

from adaexplore.core.plan import StepKind
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.sampling import softmax_order, truncated_geometric
from adaexplore.search.tree import Node, Tree, best_correct


def small_chain(selected: Node, max_memory_round: int) -> tuple[Node, ...]:
    """The last ``max_memory_round`` nodes of the refinement chain, oldest first, less those without code."""
    return tuple(node for node in selected.chain()[-max_memory_round:] if node.has_code)


def large_pool(tree: Tree, selected: Node, knobs: SearchKnobs, rng: random.Random) -> tuple[Node, ...]:
    """At most ``pool_size`` correct kernels, at most one of each small-step lineage.

    First the best of every lineage that the path to ``selected`` passes, from the root down; then
    up to ``pool_size_extra_max`` extras of other lineages, in the order in which they were drawn.

    Draws: a uniform sample only if the path has more than ``pool_size``; else, only if there is
    room and there are candidates, the number of extras (one draw), then, only if it is not 0, one
    draw per candidate (softmax over the speedup).
    """
    path = selected.path()
    pool = _best_of_lineages([node for node in path if node.plan.kind is StepKind.LARGE])
    if len(pool) > knobs.pool_size:
        return tuple(rng.sample(pool, knobs.pool_size))
    room = min(knobs.pool_size - len(pool), knobs.pool_size_extra_max)
    on_path = {node.id for node in path}
    others = [node for node in tree if node.plan.kind is StepKind.LARGE and node.id not in on_path]
    candidates = _best_of_lineages(others) if room > 0 else []
    if not candidates:
        return tuple(pool)
    count = truncated_geometric(rng, knobs.geometric_p, room)
    return (*pool, *softmax_sample(rng, candidates, knobs.softmax_temperature, count))


def softmax_sample(rng: random.Random, nodes: list[Node], temperature: float, count: int) -> tuple[Node, ...]:
    """Up to ``count`` of ``nodes`` without replacement, by softmax over their speedup.

    Takes one draw per node, none when ``count`` is 0 or there are no nodes.
    """
    if count <= 0:
        return ()
    order = softmax_order(rng, [node.score.speedup for node in nodes], temperature)
    return tuple(nodes[index] for index in order[:count])


def _best_of_lineages(starts: list[Node]) -> list[Node]:
    """The best correct node of each large step's lineage, lineages without one left out."""
    return [best for start in starts if (best := best_correct(start.component())) is not None]
