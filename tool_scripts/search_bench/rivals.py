"""Policies that only the benchmark has: what a search tree must beat."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.context import small_chain
from adaexplore.search.policy import Policy
from adaexplore.search.tree import Node

ISLANDS = 4
MIGRATION = 10


class Greedy(Policy):
    """Edits the best kernel so far; draws new ones until one is correct."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """One more edit of the best."""
        return _refine(self, step, self.tree.best)


class Islands(Policy):
    """Four greedy searches in turn; every tenth step of each begins anew in sight of all their bests."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """The next step of the island whose turn it is."""
        mine = step % ISLANDS
        best: dict[int, Node] = {}
        for node in self.tree:
            island = node.id % ISLANDS
            if node.score.correct and (island not in best or node.score > best[island].score):
                best[island] = node
        if mine not in best or (step // ISLANDS) % MIGRATION == MIGRATION - 1:
            bests = sorted(node.id for node in best.values())
            return Plan(step, StepKind.LARGE, 0, tuple(bests))
        return _refine(self, step, best[mine])


def _refine(policy: Policy, step: int, node: Node) -> Plan:
    if not node.score.correct:
        return Plan(step, StepKind.LARGE, 0)
    chain = small_chain(node, policy.knobs.max_memory_round)
    return Plan(step, StepKind.SMALL, node.id, tuple(item.id for item in chain))
