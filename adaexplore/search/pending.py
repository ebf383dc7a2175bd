"""Plans in flight: their nodes have not been observed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.tree import Node, Tree


class Pending:
    """Visits and children that plans in flight will add, by node.

    Every plan counts as one visit of its parent and of all nodes above it, and as one child of its
    parent, as it will after its observation. Its reward is not estimated.

    Raises:
        KeyError: a plan's parent is not in ``tree``.
    """

    def __init__(self, tree: Tree, plans: Sequence[Plan] = ()) -> None:
        self._visits: Counter[int] = Counter()
        self._children: Counter[tuple[int, StepKind]] = Counter()
        for plan in plans:
            self._children[plan.parent_id, plan.kind] += 1
            self._visits.update(node.id for node in tree[plan.parent_id].path())

    def visits(self, node: Node) -> int:
        return node.visits + self._visits[node.id]

    def children(self, node: Node) -> int:
        return len(node.children) + sum(self._children[node.id, kind] for kind in StepKind)

    def children_by(self, node: Node, kind: StepKind) -> int:
        return len(node.children_by(kind)) + self._children[node.id, kind]
