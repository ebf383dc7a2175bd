"""The paper's baselines: no selection, one attempt after the other.

Their nodes form a chain: each node is a child of the attempt before it. Nodes of PS, which sees no earlier
attempt, are children of the root. Attempts without code are not shown. Plans in flight change
nothing: plans made before the next observation have the same parent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.context import softmax_sample
from adaexplore.search.policy import Policy
from adaexplore.search.tree import Node, ids


class IterativeRefinement(Policy):
    """IRS: one large step, then small steps that always edit the latest attempt, even if another is better.

    Draws nothing. Until an attempt has code, steps are large.
    """

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Edit the latest attempt and show the last ``max_memory_round``."""
        recent = _last(self.tree.attempts(), self.knobs.max_memory_round)
        kind = StepKind.SMALL if recent else StepKind.LARGE
        return Plan(step, kind, self.tree.latest.id, ids(recent))


class RecentPool(Policy):
    """IRL: large steps that see the latest attempts. Draws nothing."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Show the last ``pool_size`` attempts."""
        recent = _last(self.tree.attempts(), self.knobs.pool_size)
        return Plan(step, StepKind.LARGE, self.tree.latest.id, ids(recent))


class ElitePool(Policy):
    """IRB: large steps that see the best attempts. Draws nothing."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Show the ``pool_size`` greatest scores, wrong ones included, the earlier first on ties."""
        ranked = sorted(self.tree.attempts(), key=lambda node: node.score, reverse=True)
        elite = ranked[: self.knobs.pool_size]
        return Plan(step, StepKind.LARGE, self.tree.latest.id, elite_ids=ids(elite))


class MixedPool(Policy):
    """IRLE: large steps that see the latest attempts and sampled elites, the elites first.

    Takes one draw per correct attempt that is not among the recent ones; none if no space is left.
    """

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Fill half of the pool with the latest attempts, the rest with correct ones by softmax."""
        attempts = self.tree.attempts()
        recent = _last(attempts, self.knobs.pool_size // 2)
        others = [node for node in attempts[: len(attempts) - len(recent)] if node.score.correct]
        space = self.knobs.pool_size - len(recent)
        elite = softmax_sample(rng, others, self.knobs.softmax_temperature, space)
        return Plan(step, StepKind.LARGE, self.tree.latest.id, ids(recent), ids(elite))


class IndependentSampling(Policy):
    """PS: large steps that see nothing. Draws nothing."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        return Plan(step, StepKind.LARGE, self.tree.root.id)


def _last(nodes: list[Node], count: int) -> list[Node]:
    return nodes[max(len(nodes) - count, 0) :]
