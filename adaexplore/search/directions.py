"""Directions: sibling steps see the same kernels, so each gets a different direction to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from adaexplore.core.directions import FREE, Directions
from adaexplore.core.plan import Plan
from adaexplore.search.tree import Tree


def directed(plan: Plan, tree: Tree, pending: Sequence[Plan], offered: Directions) -> Plan:
    """Return ``plan`` with a direction.

    All steps of one kind that writes whole files are siblings; so are edits of equal kernels. The first
    sibling gets no direction. Each later one gets the direction with the fewest plans in flight, then the
    least tried, then the first.
    """
    edits, edited = plan.kind.edits, tree[plan.parent_id]
    names = offered.large
    if edits:
        names = offered.small if edited.score.correct else offered.repair

    def beside(plans: Sequence[Plan]) -> Counter[str]:
        return Counter(
            each.direction
            for each in plans
            if each.kind is plan.kind and (not edits or tree[each.parent_id].source == edited.source)
        )

    now, before = beside(pending), beside([node.plan for node in tree])
    chosen = min((FREE, *names), key=lambda name: (now[name], now[name] + before[name]))
    return replace(plan, direction=chosen)
