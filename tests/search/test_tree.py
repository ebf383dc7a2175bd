import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import Score
from adaexplore.search.tree import Tree, best_correct


def ids(nodes):
    return [node.id for node in nodes]


def test_reward_is_added_up_to_the_root(grow):
    tree = grow((0, "large", 2.0), (1, "small", "wrong"), (2, "small", 5.0), (0, "large", "broken"))
    two, five = tree[1].reward, tree[3].reward
    assert [node.visits for node in tree] == [4, 3, 2, 1, 1]
    assert tree.root.total_reward == pytest.approx(two + 0.05 + five)
    assert tree[2].total_reward == pytest.approx(0.05 + five)
    assert [node.max_reward for node in tree] == [five, five, five, five, 0.0]
    assert tree[1].mean_reward == pytest.approx((two + 0.05 + five) / 3)
    assert Tree().root.mean_reward == 0.0


def test_depth_and_path_count_from_the_root(grow):
    tree = grow((0, "large", 1.0), (1, "large", 1.0), (2, "small", 1.0))
    assert [node.depth for node in tree] == [0, 1, 2, 3]
    assert ids(tree[3].path()) == [0, 1, 2, 3]


def test_component_follows_small_steps_breadth_first(grow):
    tree = grow(
        (0, "large", 1.0),
        (1, "small", 1.0),
        (2, "small", 1.0),
        (1, "small", 1.0),
        (2, "large", 1.0),
        (5, "small", 1.0),
    )
    assert ids(tree[1].component()) == [1, 2, 4, 3]
    assert ids(tree[5].component()) == [5, 6]


def test_chain_starts_at_nearest_large_step(grow):
    tree = grow((0, "large", 1.0), (1, "small", 1.0), (2, "large", 1.0), (3, "small", 1.0), (4, "small", 1.0))
    assert ids(tree[5].chain()) == [3, 4, 5]
    assert ids(tree[3].chain()) == [3]
    assert ids(tree[2].chain()) == [1, 2]


def test_best_changes_only_to_strictly_greater_score(grow):
    assert grow().best.id == 0
    assert grow((0, "large", "broken")).best.id == 0
    assert grow((0, "large", "wrong"), (0, "large", "wrong")).best.id == 1
    assert grow((0, "large", 0.5), (0, "large", 0.5), (0, "large", "wrong")).best.id == 1
    assert grow((0, "large", 0.5), (0, "large", 0.6)).best.id == 2


def test_best_correct_takes_first_correct_on_ties(grow):
    tree = grow((0, "large", "wrong"), (0, "large", 2.0), (0, "large", 2.0))
    assert best_correct(tree).id == 2
    assert best_correct([tree[1]]) is None


def test_step_is_added_once_under_existing_node():
    tree = Tree()
    tree.add(Plan(1, StepKind.LARGE, 0), "kernel", Score(True, True, 1.0), 0.5)
    with pytest.raises(ValueError, match="step 1 is in the tree already"):
        tree.add(Plan(1, StepKind.LARGE, 0), "kernel", Score(True, True, 1.0), 0.5)
    with pytest.raises(ValueError, match="node 7, which does not exist"):
        tree.add(Plan(2, StepKind.LARGE, 7), "kernel", Score(True, True, 1.0), 0.5)
    assert len(tree) == 2
    assert tree.root.visits == 1


def test_attempts_have_code(grow):
    tree = grow((0, "large", "empty"), (0, "large", "broken"), (0, "large", 1.0))
    assert ids(tree.attempts()) == [2, 3]
    assert tree.latest.id == 3
