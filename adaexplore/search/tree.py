"""The tree of candidates under a dummy root."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState
from adaexplore.core.verdict import NO_SCORE, Score


@dataclass(eq=False)
class Node:
    """One candidate and the statistics of the subtree under it.

    Attributes:
        plan: the plan that made the node; ``plan.step`` is its id.
        source: the candidate, "" if the step has none.
        score: the judge's score.
        reward: the reward of the score, 0 for the root.
        parent: None for the root.
        depth: 0 for the root.
        children: in the order in which they were added.
        visits: number of nodes of the subtree whose reward was added here.
        total_reward: sum of these rewards.
        max_reward: their maximum, 0 before the first.
    """

    plan: Plan
    source: str
    score: Score
    reward: float
    parent: Node | None = field(repr=False)
    depth: int
    children: list[Node] = field(default_factory=list, repr=False)
    visits: int = 0
    total_reward: float = 0.0
    max_reward: float = 0.0

    @property
    def id(self) -> int:
        return self.plan.step

    @property
    def has_code(self) -> bool:
        """Whether there is anything to show or edit."""
        return bool(self.source.strip())

    @property
    def mean_reward(self) -> float:
        """Mean reward of the subtree, 0 before the first visit."""
        return self.total_reward / self.visits if self.visits else 0.0

    @property
    def starts_lineage(self) -> bool:
        """Whether it is a step that wrote a whole file."""
        return self.parent is not None and not self.plan.kind.edits

    def children_by(self, kind: StepKind) -> list[Node]:
        return [child for child in self.children if child.plan.kind is kind]

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one, both included."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def chain(self) -> list[Node]:
        """Return the refinement chain: from the nearest whole file above to this node, oldest first."""
        path = self.path()
        starts = [index for index, node in enumerate(path) if not node.plan.kind.edits]
        return path[starts[-1] :]

    def component(self) -> list[Node]:
        """Return this node and all nodes that edits connect to it, breadth first."""
        found: list[Node] = []
        waiting = deque([self])
        while waiting:
            node = waiting.popleft()
            found.append(node)
            waiting.extend(child for child in node.children if child.plan.kind.edits)
        return found


class Tree:
    def __init__(self) -> None:
        self.root = Node(Plan(0, StepKind.DUMMY_ROOT, 0), "", NO_SCORE, 0.0, None, 0)
        self.best = self.root
        self._nodes = {0: self.root}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        """Iterate over all nodes in the order in which they were added, the root first."""
        return iter(self._nodes.values())

    def __getitem__(self, node_id: int) -> Node:
        return self._nodes[node_id]

    @property
    def latest(self) -> Node:
        return next(reversed(self._nodes.values()))

    def attempts(self) -> list[Node]:
        """Return the nodes with code, oldest first."""
        return [node for node in self if node.has_code]

    def add(self, plan: Plan, source: str, score: Score, reward: float) -> Node:
        """Add a node under ``plan.parent_id`` and add ``reward`` to all nodes up to the root.

        The global best changes only to a strictly greater score.

        Raises:
            ValueError: the step is in the tree already, or its parent is not.
        """
        if plan.step in self._nodes:
            raise ValueError(f"step {plan.step} is in the tree already")
        if plan.parent_id not in self._nodes:
            raise ValueError(f"step {plan.step} has parent node {plan.parent_id}, which does not exist")
        parent = self._nodes[plan.parent_id]
        node = Node(plan, source, score, reward, parent, parent.depth + 1)
        self._nodes[node.id] = node
        parent.children.append(node)
        for above in reversed(node.path()):
            above.visits += 1
            above.total_reward += reward
            above.max_reward = max(above.max_reward, reward)
        if score > self.best.score:
            self.best = node
        return node

    def state(self, node: Node) -> NodeState:
        """Return the current state of ``node`` for its step's record."""
        return NodeState(
            plan=node.plan,
            depth=node.depth,
            visits=node.visits,
            total_reward=node.total_reward,
            max_reward=node.max_reward,
            score=node.score,
            total_nodes=len(self),
            global_best_node_id=self.best.id,
            global_best_score=self.best.score,
        )


def ids(nodes: Iterable[Node]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)


def best_correct(nodes: Iterable[Node]) -> Node | None:
    """Return the correct node of the greatest score, the first on ties; None if all are wrong."""
    return max((node for node in nodes if node.score.correct), key=lambda node: node.score, default=None)
