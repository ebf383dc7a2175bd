"""What is in flight: plans whose nodes have not been observed yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.tree import Node, Tree


class Pending:
    """Visits and children that plans in flight are going to add, by node.

    Every plan counts as one visit of its parent and of all nodes above it, and as one child of its
    parent, as it will once it is observed. Its reward is not guessed at.

    Args:
        tree: the tree under which the plans will hang.
        plans: decisions that were not observed yet.

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
        """Visits of ``node``, those on their way included."""
        return node.visits + self._visits[node.id]

    def children(self, node: Node) -> int:
        """Children of ``node``, those on their way included."""
        coming = self._children[node.id, StepKind.LARGE] + self._children[node.id, StepKind.SMALL]
        return len(node.children) + coming

    def children_by(self, node: Node, kind: StepKind) -> int:
        """Children of ``node`` that steps of ``kind`` make, those on their way included."""
        return len(node.children_by(kind)) + self._children[node.id, kind]
