"""Select where the tree grows next: UCT that compares adding a child with descending to one.

R(n) = alpha M + (1 - alpha) W / N is a node's value, from the maximum M, the sum W and the number N
of the rewards in its subtree. Nothing here draws random numbers. Steps in flight count as visits and
children, but not in R: a branch that is being tried loses bonus, not value.
"""

from __future__ import annotations

import math

from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.pending import Pending
from adaexplore.search.tree import Node, Tree


def node_value(node: Node, knobs: SearchKnobs) -> float:
    """Return R(n); its mean part is 0 while N = 0."""
    alpha = knobs.reward_alpha
    return alpha * node.max_reward + (1 - alpha) * node.mean_reward


def child_score(child: Node, visits: int, parent_visits: int, knobs: SearchKnobs) -> float:
    """Return U(c) = R(c) + w sqrt(ln N_parent / N_c); infinite if N_c = 0, only R(c) if N_parent = 0."""
    if visits == 0:
        return math.inf
    if parent_visits == 0:
        return node_value(child, knobs)
    bonus = math.sqrt(math.log(parent_visits) / visits)
    return node_value(child, knobs) + knobs.exploration_weight * bonus


def expand_score(node: Node, visits: int, children: int, knobs: SearchKnobs) -> float:
    """Return the score of one more child of ``node``: max R(c) + w rho sqrt(ln N_n) / k for k children.

    Infinite without (observed) children; minus infinity if w rho is 0 or less; only max R(c) if N_n = 0.
    """
    if not node.children:
        return math.inf
    weight = knobs.exploration_weight * knobs.expand_exploration_ratio
    if weight <= 0:
        return -math.inf
    best = max(node_value(child, knobs) for child in node.children)
    if visits == 0:
        return best
    return best + weight * math.sqrt(math.log(visits) / children**2)


def select(tree: Tree, knobs: SearchKnobs, pending: Pending | None = None) -> Node:
    """Return the node that gets the next child.

    Start at the root. Stop if the score of adding a child is strictly greater than U of every child; else
    descend to the child of the greatest U, the first on ties. Depth, visits and failures set no limit.
    """
    counts = Pending(tree) if pending is None else pending
    node = tree.root
    while node.children:
        visits = counts.visits(node)
        scores = [child_score(child, counts.visits(child), visits, knobs) for child in node.children]
        best = max(scores)
        if expand_score(node, visits, counts.children(node), knobs) > best:
            break
        node = node.children[scores.index(best)]
    return node
