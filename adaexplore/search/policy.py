"""The one interface between the loop and every search policy."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence

from adaexplore.core.plan import Plan
from adaexplore.core.step import NodeState
from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.reward import paper_reward
from adaexplore.search.summary import TreeStatistics, describe_tree, measure_tree
from adaexplore.search.tree import Tree


class Policy(ABC):
    """A search over one task: says what it wants next, and is told what came of it.

    All state is the tree, and :meth:`observe` is the only thing that changes it; plans in flight may be
    observed in any order. A stopped search therefore continues from its records: hand every recorded
    (plan, source, score) to the ``observe`` of a fresh policy, in the order in which they were observed.
    """

    def __init__(self, knobs: SearchKnobs) -> None:
        self.knobs = knobs
        self.tree = Tree()

    @abstractmethod
    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Decide on step number ``step``.

        Args:
            step: its number, and the id of the node that it will make.
            rng: where all randomness is drawn from.
            pending: this policy's plans that were not observed yet. Without any, decisions are
                those of a search with one step at a time.
        """

    def observe(self, plan: Plan, source: str, score: Score) -> NodeState:
        """Add node ``plan.step`` and return its state.

        Args:
            plan: a decision of this policy, or a recorded one.
            source: the candidate; "" where the model gave none, which counts as no score.
            score: the judge's finding about ``source``.

        Raises:
            ValueError: the step was observed already, or its parent was not.
        """
        counted = score if source.strip() else NO_SCORE
        return self.tree.state(self.tree.add(plan, source, counted, paper_reward(counted)))

    def root_state(self) -> NodeState:
        """The state of node 0; before the first step it is what step 0's files hold."""
        return self.tree.state(self.tree.root)

    def describe(self) -> str:
        """The tree as indented text, one line a node (``tree_structure.txt``)."""
        return describe_tree(self.tree, self.knobs)

    def statistics(self) -> TreeStatistics:
        """The tree in numbers (``tree_stats.json``)."""
        return measure_tree(self.tree)
