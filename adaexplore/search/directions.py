"""Directions: sibling steps see the same kernels, so each gets a different direction to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from adaexplore.core.directions import FREE, Directions
from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.tree import Tree


def directed(plan: Plan, tree: Tree, pending: Sequence[Plan], offered: Directions) -> Plan:
    """Return ``plan`` with a direction.

    All large steps of the tree are siblings; so are edits of equal kernels. The first sibling gets no
    direction. Each later one gets the direction with the fewest plans in flight, then the least tried, then
    the first.
    """
    large, edited = plan.kind is StepKind.LARGE, tree[plan.parent_id]
    names = offered.large if large else offered.small
    if not large and not edited.score.correct:
        names = offered.repair

    def beside(plans: Sequence[Plan]) -> Counter[str]:
        return Counter(
            each.direction
            for each in plans
            if each.kind is plan.kind and (large or tree[each.parent_id].source == edited.source)
        )

    now, before = beside(pending), beside([node.plan for node in tree])
    chosen = min((FREE, *names), key=lambda name: (now[name], now[name] + before[name]))
    return replace(plan, direction=chosen)
