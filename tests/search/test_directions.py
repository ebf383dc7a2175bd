from __future__ import annotations

from adaexplore.core.directions import FREE, Directions
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.directions import directed
from adaexplore.search.tree import Tree

OFFERED = Directions(("a", "b"), ("x", "y"), ("mend",))
RIGHT = Score(True, True, 2.0)


def large(step: int, direction: str = FREE) -> Plan:
    return Plan(step, StepKind.LARGE, 0, direction=direction)


def small(step: int, parent: int, direction: str = FREE) -> Plan:
    return Plan(step, StepKind.SMALL, parent, (parent,), direction=direction)


def tree_of(*plans: Plan, score: Score = RIGHT, source: str = "") -> Tree:
    tree = Tree()
    for plan in plans:
        tree.add(plan, source or f"x = {plan.step}", score, 0.0)
    return tree


def given(tree: Tree, plan: Plan, *pending: Plan, offered: Directions = OFFERED) -> str:
    return directed(plan, tree, pending, offered).direction


def test_first_sibling_is_free_others_differ() -> None:
    plans: list[Plan] = []
    for step in range(1, 4):
        plans.append(directed(large(step), Tree(), plans, OFFERED))
    assert [plan.direction for plan in plans] == [FREE, "a", "b"]


def test_direction_repeats_only_after_all_are_used() -> None:
    assert given(tree_of(large(1), large(2, "a")), large(4), large(3)) == "b"
    assert given(tree_of(large(1), large(2, "a"), large(3, "b")), large(4)) == FREE
    assert given(tree_of(large(1)), large(4), large(2, "b"), large(3, "a")) == FREE


def test_directions_in_flight_count_before_tried_ones() -> None:
    tree = tree_of(large(1), large(2), large(3, "a"), large(4, "b"))
    assert given(tree, large(7), large(5, "a"), large(6, "b")) == FREE


def test_edits_share_directions_only_per_kernel() -> None:
    tree = tree_of(large(1), large(2), small(3, 1))
    assert given(tree, small(4, 1)) == "x"
    assert given(tree, small(4, 2)) == FREE
    assert given(tree, small(5, 1), small(4, 1, "x")) == "y"


def test_edits_of_equal_kernels_share_directions() -> None:
    assert given(tree_of(large(1), large(2), small(3, 1), source="x"), small(4, 2)) == "x"


def test_a_wrong_kernel_is_repaired() -> None:
    tree = tree_of(large(1), small(2, 1), score=NO_SCORE)
    assert given(tree, small(3, 1)) == "mend"


def test_without_directions_all_steps_are_free() -> None:
    plan = large(2)
    assert directed(plan, tree_of(large(1)), (), Directions()) == plan
