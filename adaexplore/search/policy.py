"""The interface between the loop and every search policy."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from adaexplore.core.plan import Plan
from adaexplore.core.step import NodeState
from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.summary import TreeStatistics, describe_tree, measure_tree
from adaexplore.search.tree import Tree

WRONG_REWARD = 0.05
CORRECT_REWARD = 0.4
TOP_REWARD = 1.6
SLOWEST = 0.1
FASTEST = 10.0


class Policy(ABC):
    """A search over one task: plans the next step and observes its result.

    All state is the tree, and :meth:`observe` is the only thing that changes it; plans in flight may be
    observed in any order. A stopped search therefore continues from its records: call ``observe`` of a
    new policy with every recorded (plan, source, score), in the order of observation.
    """

    def __init__(self, knobs: SearchKnobs) -> None:
        self.knobs = knobs
        self.tree = Tree()

    @abstractmethod
    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Plan step number ``step``, which is the id of its node; all randomness is from ``rng``.

        ``pending`` are plans of this policy that were not observed yet. Without any, the plan is that of a
        search with one step at a time.
        """

    def observe(self, plan: Plan, source: str, score: Score) -> NodeState:
        """Add node ``plan.step`` of a plan of this policy, or of a recorded one, and return its state.

        The source is "" if the model gave none, which counts as no score.

        Raises:
            ValueError: the step was observed already, or its parent was not.
        """
        counted = score if source.strip() else NO_SCORE
        return self.tree.state(self.tree.add(plan, source, counted, paper_reward(counted)))

    def root_state(self) -> NodeState:
        """Return the state of node 0; before the first step, step 0's files hold it."""
        return self.tree.state(self.tree.root)

    def describe(self, edits_failed: Mapping[int, str] | None = None) -> str:
        """Return the tree as indented text, one line per node (``tree_structure.txt``).

        ``edits_failed`` are the results of steps whose edits failed.
        """
        return describe_tree(self.tree, self.knobs, edits_failed)

    def statistics(self) -> TreeStatistics:
        """Return the tree's statistics (``tree_stats.json``)."""
        return measure_tree(self.tree)


def paper_reward(score: Score) -> float:
    """Return the paper's reward: linear in the speedup, clipped to 0.1x .. 10x.

    0 when the module did not import, 0.05 when it is wrong, else from 0.4 to 1.6: 0.509 at 1x,
    0.630 at 2x, 1.6 from 10x on. The order of operations is part of the definition: it reproduces
    the rewards of recorded runs to the last bit.
    """
    if not score.compiled:
        return 0.0
    if not score.correct:
        return WRONG_REWARD
    clipped = min(max(score.speedup, SLOWEST), FASTEST)
    return CORRECT_REWARD + (TOP_REWARD - CORRECT_REWARD) * (clipped - SLOWEST) / (FASTEST - SLOWEST)
