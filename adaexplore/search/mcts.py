"""The paper's search: a tree of large and small steps."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.context import large_pool, small_chain
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.pending import Pending
from adaexplore.search.policy import Policy
from adaexplore.search.selection import select
from adaexplore.search.tree import Node, ids


class Mcts(Policy):
    """Select a node, choose a large or a small step, add the child under that node.

    Draws, in this order: the step's kind if no rule decides it, then the pool if the
    step is large (:func:`~adaexplore.search.context.large_pool`).
    """

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Choose the next child of the selected node.

        A small step becomes large if no node of its chain has code to edit.
        """
        counts = Pending(self.tree, pending)
        selected = select(self.tree, self.knobs, counts)
        if step_kind(selected, self.knobs, rng, counts) is StepKind.SMALL:
            chain = small_chain(selected, self.knobs.max_memory_round)
            if chain:
                return Plan(step, StepKind.SMALL, selected.id, ids(chain))
        pool = large_pool(self.tree, selected, self.knobs, rng)
        return Plan(step, StepKind.LARGE, selected.id, ids(pool))


def step_kind(
    selected: Node, knobs: SearchKnobs, rng: random.Random, pending: Pending | None = None
) -> StepKind:
    """Choose large at the root and at ``small_step_limit`` small children, else with probability ``p_large``.

    Small children in flight count. Takes one draw, only if neither rule decides.
    """
    small = len(selected.children_by(StepKind.SMALL))
    if pending is not None:
        small = pending.children_by(selected, StepKind.SMALL)
    if selected.parent is None or small >= knobs.small_step_limit:
        return StepKind.LARGE
    return StepKind.LARGE if rng.random() < knobs.p_large else StepKind.SMALL
