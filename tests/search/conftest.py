"""Handmade trees."""

from collections.abc import Callable

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.policy import paper_reward
from adaexplore.search.tree import Tree

Outcome = float | str
Grow = Callable[..., Tree]


def score_of(outcome: Outcome) -> Score:
    """Return the score of a speedup, or of "wrong", "broken" (does not import), "empty" (no code)."""
    if isinstance(outcome, str):
        return Score(True, False, 0.0) if outcome == "wrong" else NO_SCORE
    return Score(True, True, float(outcome))


@pytest.fixture(scope="session")
def grow() -> Grow:
    """Build a tree from (parent id, "large" or "small", outcome), ids counted from 1."""

    def build(*nodes: tuple[int, str, Outcome]) -> Tree:
        tree = Tree()
        for step, (parent, kind, outcome) in enumerate(nodes, start=1):
            score = score_of(outcome)
            source = "" if outcome == "empty" else f"kernel {step}"
            tree.add(Plan(step, StepKind(f"{kind}_step"), parent), source, score, paper_reward(score))
        return tree

    return build
