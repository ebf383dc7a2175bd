"""A tree as text and as statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from adaexplore.core.plan import StepKind
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.selection import child_score
from adaexplore.search.tree import Node, Tree


@dataclass(frozen=True)
class TreeStatistics:
    """Statistics over all nodes including the root.

    ``nodes`` counts the steps of each kind. ``total_visits`` sums the visits of every node, so a reward
    counts once per level. ``avg_*`` are means over nodes; the reward of a node in them is the mean reward of
    its subtree.
    """

    total_nodes: int
    max_depth: int
    avg_depth: float
    total_visits: int
    avg_visits: float
    avg_reward: float
    nodes: Mapping[StepKind, int]

    def as_keys(self) -> dict[str, float]:
        """Return the content of ``tree_stats.json``."""
        return {
            **{name: value for name, value in vars(self).items() if name != "nodes"},
            **{f"{kind.value}_nodes": number for kind, number in self.nodes.items()},
        }


def measure_tree(tree: Tree) -> TreeStatistics:
    nodes = list(tree)
    kinds = [node.plan.kind for node in nodes]
    return TreeStatistics(
        total_nodes=len(nodes),
        max_depth=max(node.depth for node in nodes),
        avg_depth=fmean(node.depth for node in nodes),
        total_visits=sum(node.visits for node in nodes),
        avg_visits=fmean(node.visits for node in nodes),
        avg_reward=fmean(node.mean_reward for node in nodes),
        nodes={kind: kinds.count(kind) for kind in StepKind if kind is not StepKind.DUMMY_ROOT},
    )


def describe_tree(tree: Tree, knobs: SearchKnobs, edits_failed: Mapping[int, str] | None = None) -> str:
    """Write ``tree`` as indented text, depth first, children in the order in which they were added.

    A line is ``[id] created_by - compiled, correctness, speedup | node_reward, max_reward, visits,
    ucb, context``, and for a step of ``edits_failed`` its result: correctness and speedup of an unchanged
    program are those of its parent. The search does not know run times, so the line has the speedup instead.
    """
    results = edits_failed or {}
    lines: list[str] = []
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        result = f", result={results[node.id]}" if node.id in results else ""
        lines.append("  " * node.depth + _line(node, knobs) + result)
        waiting.extend(reversed(node.children))
    return "\n".join(lines) + "\n"


def _line(node: Node, knobs: SearchKnobs) -> str:
    ucb = "-" if node.parent is None else f"{child_score(node, node.visits, node.parent.visits, knobs):.4f}"
    context = [*node.plan.elite_ids, *node.plan.context_ids]
    return (
        f"[{node.id}] {node.plan.kind.value} - compiled={node.score.compiled}, "
        f"correctness={node.score.correct}, speedup={node.score.speedup:.4g}x | "
        f"node_reward={node.reward:.4f}, max_reward={node.max_reward:.4f}, visits={node.visits}, "
        f"ucb={ucb}, context={context}"
    )
