import random

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.mcts import Mcts, step_kind
from adaexplore.search.pending import Pending
from adaexplore.search.selection import select


def small(step, parent):
    return Plan(step, StepKind.SMALL, parent, (parent,))


def test_pending_plan_visits_parent_and_ancestors(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0), (0, "large", 1.0))
    counts = Pending(tree, [small(4, 2), small(5, 1)])
    assert [counts.visits(node) - node.visits for node in tree] == [2, 2, 1, 0]


def test_pending_plan_counts_as_child_of_kind(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0))
    counts = Pending(tree, [small(3, 1), Plan(4, StepKind.LARGE, 1)])
    assert counts.children(tree[1]) == 3
    assert counts.children_by(tree[1], StepKind.SMALL) == 2
    assert counts.children_by(tree[1], StepKind.LARGE) == 1


def test_pending_plans_move_next_step_elsewhere(grow):
    tree = grow((0, "large", 1.0), (0, "large", 1.0))
    knobs = SearchKnobs(expand_exploration_ratio=0)
    assert select(tree, knobs).id == 1
    assert select(tree, knobs, Pending(tree, [small(3, 1)])).id == 2


def test_pending_child_lowers_score_of_another_one(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0))
    knobs = SearchKnobs()
    assert select(tree, knobs).id == 0
    assert select(tree, knobs, Pending(tree, [Plan(3, StepKind.LARGE, 0)])).id != 0


def test_small_steps_in_flight_count_towards_the_limit(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0))
    rng = random.Random(1)
    knobs = SearchKnobs(p_large=0.0)
    assert step_kind(tree[1], knobs, rng) is StepKind.SMALL
    assert step_kind(tree[1], knobs, rng, Pending(tree, [small(3, 1)])) is StepKind.LARGE


def test_unobserved_root_plans_differ_only_in_number():
    policy = Mcts(SearchKnobs())
    plans: list[Plan] = []
    for step in (1, 2, 3):
        plans.append(policy.plan(step, random.Random(step), plans))
    assert plans == [Plan(step, StepKind.LARGE, 0) for step in (1, 2, 3)]


def test_plan_under_unknown_node_is_an_error(grow):
    with pytest.raises(KeyError):
        Pending(grow(), [small(2, 7)])
