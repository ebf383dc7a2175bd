import math

import pytest

from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.selection import child_score, expand_score, node_value, select
from adaexplore.search.tree import Tree

KNOBS = SearchKnobs(exploration_weight=0.3, expand_exploration_ratio=0.5, reward_alpha=0.25)


def stand(node, visits, total, best):
    node.visits, node.total_reward, node.max_reward = visits, total, best
    return node


def test_value_mixes_maximum_and_mean(grow):
    node = stand(grow((0, "large", 1.0))[1], 4, 2.0, 0.9)
    assert node_value(node, KNOBS) == pytest.approx(0.25 * 0.9 + 0.75 * 0.5)
    assert node_value(node, SearchKnobs(reward_alpha=1)) == 0.9
    assert node_value(node, SearchKnobs(reward_alpha=0)) == 0.5
    assert node_value(stand(node, 0, 0.0, 0.8), KNOBS) == pytest.approx(0.2)


def test_child_score_adds_the_visit_term(grow):
    node = stand(grow((0, "large", 1.0))[1], 4, 2.0, 0.9)
    # 0.6 + 0.3 * sqrt(ln 9 / 4) = 0.6 + 0.3 * 0.741152
    assert child_score(node, node.visits, 9, KNOBS) == pytest.approx(0.822346, abs=1e-6)


def test_child_score_without_visits(grow):
    node = stand(grow((0, "large", 1.0))[1], 4, 2.0, 0.9)
    assert child_score(node, node.visits, 0, KNOBS) == node_value(node, KNOBS)
    assert child_score(stand(node, 0, 0.0, 0.0), 0, 9, KNOBS) == math.inf


def test_expand_score_divides_by_the_number_of_children(grow):
    tree = grow((0, "large", 1.0), (0, "large", 1.0))
    stand(tree.root, 9, 4.0, 0.9)
    stand(tree[1], 4, 2.0, 0.9)
    stand(tree[2], 5, 1.0, 0.4)
    # best child 0.6; 0.3 * 0.5 * sqrt(ln 9) / 2 = 0.15 * 1.482304 / 2
    assert expand_score(tree.root, tree.root.visits, len(tree.root.children), KNOBS) == pytest.approx(
        0.6 + 0.111173, abs=1e-6
    )


def test_expand_score_at_its_edges(grow):
    tree = grow((0, "large", 1.0))
    value = node_value(tree[1], KNOBS)
    assert expand_score(tree[1], 1, 0, KNOBS) == math.inf
    assert (
        expand_score(tree.root, tree.root.visits, len(tree.root.children), SearchKnobs(exploration_weight=0))
        == -math.inf
    )
    assert (
        expand_score(
            tree.root, tree.root.visits, len(tree.root.children), SearchKnobs(expand_exploration_ratio=0)
        )
        == -math.inf
    )
    assert (
        expand_score(
            tree.root, tree.root.visits, len(tree.root.children), SearchKnobs(expand_exploration_ratio=-1)
        )
        == -math.inf
    )
    assert expand_score(tree.root, tree.root.visits, len(tree.root.children), KNOBS) == value  # ln 1 = 0
    assert expand_score(stand(tree.root, 0, 0.0, 0.0), 0, 1, KNOBS) == value


def test_an_empty_tree_grows_at_the_root():
    tree = Tree()
    assert select(tree, SearchKnobs()) is tree.root


def test_equal_scores_descend(grow):
    # N = 1 and one child: expand = U = R(child), and stopping needs strictly more
    assert select(grow((0, "large", 1.0)), SearchKnobs()).id == 1


def test_ties_go_to_the_first_child(grow):
    tree = grow((0, "large", 1.0), (0, "large", 1.0))
    assert select(tree, SearchKnobs(expand_exploration_ratio=0)).id == 1


def test_a_better_child_wins_the_descent(grow):
    tree = grow((0, "large", "wrong"), (0, "large", 5.0))
    assert select(tree, SearchKnobs(expand_exploration_ratio=0)).id == 2


def test_root_widens_when_only_child_has_more_visits(grow):
    # N_root = 2, one child with N = 2: expand = R + w sqrt(ln 2) > U = R + w sqrt(ln 2 / 2)
    tree = grow((0, "large", 1.0), (1, "small", 1.0))
    assert select(tree, SearchKnobs()).id == 0
    assert select(tree, SearchKnobs(expand_exploration_ratio=0.5)).id == 2


def test_selection_descends_through_several_levels_and_stops_within(grow):
    tree = grow((0, "large", 2.0), (1, "small", 2.0), (0, "large", "wrong"), (2, "small", 2.0))
    knobs = SearchKnobs(exploration_weight=0.3, reward_alpha=0)
    # root: N=4, k=2, R(1)=.630: expand = .630 + .3*1.1774/2 = .807, U(1) = .630 + .3*.6798 = .834: descend
    # node 1: N=3, k=1, U(2) = .630 + .3*.7412 = .852 < expand = .630 + .3*1.0481 = .944: stop
    assert select(tree, knobs).id == 1


def test_failures_are_not_pruned(grow):
    tree = grow((0, "large", "broken"))
    assert select(tree, SearchKnobs()).id == 1
