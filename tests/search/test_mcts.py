import random

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.mcts import Mcts, step_kind

SMALL_ONLY = SearchKnobs(p_large=0.0)
LARGE_ONLY = SearchKnobs(p_large=1.0)


def drawn(rng, call):
    """Return the result of ``call``, and whether it drew."""
    before = rng.getstate()
    return call(), rng.getstate() != before


def test_step_from_root_is_large_without_draw(grow):
    rng = random.Random(1)
    assert drawn(rng, lambda: step_kind(grow().root, SMALL_ONLY, rng)) == (StepKind.LARGE, False)


def test_step_at_limit_is_large_without_draw(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0), (1, "small", 1.0))
    rng = random.Random(1)
    assert drawn(rng, lambda: step_kind(tree[1], SMALL_ONLY, rng)) == (StepKind.LARGE, False)


def test_large_children_do_not_count_towards_the_limit(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0), (1, "large", 1.0), (1, "large", 1.0))
    rng = random.Random(1)
    assert drawn(rng, lambda: step_kind(tree[1], SMALL_ONLY, rng)) == (StepKind.SMALL, True)


def test_share_of_large_steps_below_limit(grow):
    node = grow((0, "large", 1.0))[1]
    rng = random.Random(1)
    kinds = [step_kind(node, SearchKnobs(p_large=0.2), rng) for _ in range(4000)]
    assert kinds.count(StepKind.LARGE) / 4000 == pytest.approx(0.2, abs=0.02)
    assert step_kind(node, LARGE_ONLY, rng) is StepKind.LARGE


def policy_on(tree, knobs):
    policy = Mcts(knobs)
    policy.tree = tree
    return policy


def test_first_step_is_large_with_empty_pool():
    assert Mcts(SMALL_ONLY).plan(1, random.Random(1)) == Plan(1, StepKind.LARGE, 0)


def test_small_step_edits_the_selected_node(grow):
    tree = grow((0, "large", 1.0))
    assert policy_on(tree, SMALL_ONLY).plan(2, random.Random(1)) == Plan(2, StepKind.SMALL, 1, (1,))


def test_large_step_is_child_of_selected_node(grow):
    tree = grow((0, "large", 1.0))
    assert policy_on(tree, LARGE_ONLY).plan(2, random.Random(1)) == Plan(2, StepKind.LARGE, 1, (1,))


def test_chain_without_code_gets_large_step(grow):
    tree = grow((0, "large", "empty"))
    assert policy_on(tree, SMALL_ONLY).plan(2, random.Random(1)) == Plan(2, StepKind.LARGE, 1)


def test_small_step_after_empty_one_edits_last_kernel(grow):
    tree = grow((0, "large", 1.0), (1, "small", "empty"))
    knobs = SearchKnobs(p_large=0.0, expand_exploration_ratio=0.0)
    assert policy_on(tree, knobs).plan(3, random.Random(1)) == Plan(3, StepKind.SMALL, 2, (1,))


def test_planning_changes_nothing(grow):
    policy = policy_on(grow((0, "large", 1.0), (1, "small", 2.0), (0, "large", 3.0)), SearchKnobs())
    before = policy.describe()
    assert policy.plan(4, random.Random(9)) == policy.plan(4, random.Random(9))
    assert policy.describe() == before
