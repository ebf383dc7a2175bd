import pytest

from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.summary import describe_tree, measure_tree


def test_a_tree_reads_as_indented_lines(grow):
    tree = grow((0, "large", 2.0), (1, "small", "wrong"), (0, "large", "broken"))
    assert describe_tree(tree, SearchKnobs()).splitlines() == [
        "[0] dummy_root - compiled=False, correctness=False, speedup=0x | "
        "node_reward=0.0000, max_reward=0.6303, visits=3, ucb=-, context=[]",
        # .6303 + .25 * sqrt(ln 3 / 2)
        "  [1] large_step - compiled=True, correctness=True, speedup=2x | "
        "node_reward=0.6303, max_reward=0.6303, visits=2, ucb=0.8156, context=[]",
        # .05 + .25 * sqrt(ln 2)
        "    [2] small_step - compiled=True, correctness=False, speedup=0x | "
        "node_reward=0.0500, max_reward=0.0500, visits=1, ucb=0.2581, context=[]",
        "  [3] large_step - compiled=False, correctness=False, speedup=0x | "
        "node_reward=0.0000, max_reward=0.0000, visits=1, ucb=0.2620, context=[]",
    ]


def test_a_failed_edit_is_marked_in_the_tree(grow):
    tree = grow((0, "large", 2.0), (1, "small", 2.0))
    lines = describe_tree(tree, SearchKnobs(), {2: "edit failed (unchanged)"}).splitlines()
    assert lines[2].endswith(", context=[], result=edit failed (unchanged)")
    assert "result" not in lines[0] + lines[1]


def test_a_tree_in_numbers(grow):
    tree = grow((0, "large", 2.0), (1, "small", "wrong"), (0, "large", "broken"))
    statistics = measure_tree(tree)
    kept = statistics.as_keys()
    assert (kept["total_nodes"], kept["large_step_nodes"], kept["small_step_nodes"]) == (4, 2, 1)
    assert (statistics.max_depth, statistics.avg_depth) == (2, 1.0)
    assert (statistics.total_visits, statistics.avg_visits) == (7, 1.75)
    two = tree[1].reward
    assert statistics.avg_reward == pytest.approx(((two + 0.05) / 3 + (two + 0.05) / 2 + 0.05 + 0.0) / 4)


def test_a_root_alone_has_numbers_too(grow):
    statistics = measure_tree(grow())
    assert (statistics.total_nodes, statistics.max_depth, statistics.avg_reward) == (1, 0, 0.0)
