import random

import pytest

from adaexplore.search.context import large_pool, small_chain
from adaexplore.search.knobs import SearchKnobs


def ids(nodes):
    return [node.id for node in nodes]


def no_draws(call):
    rng = random.Random(0)
    before = rng.getstate()
    result = call(rng)
    assert rng.getstate() == before
    return result


def test_small_step_sees_last_kernels_of_chain(grow):
    tree = grow((0, "large", 1.0), (1, "large", 1.0), (2, "small", 1.0), (3, "small", 1.0), (4, "small", 1.0))
    assert ids(small_chain(tree[5], 5)) == [2, 3, 4, 5]
    assert ids(small_chain(tree[5], 3)) == [3, 4, 5]
    assert ids(small_chain(tree[2], 5)) == [2]


def test_kernels_without_code_are_dropped_after_cutting(grow):
    tree = grow((0, "large", 1.0), (1, "small", "empty"), (2, "small", "empty"))
    assert ids(small_chain(tree[3], 5)) == [1]
    assert small_chain(tree[3], 2) == ()


def test_pool_holds_best_kernel_of_each_path_lineage(grow):
    tree = grow(
        (0, "large", 1.0),
        (1, "small", 3.0),
        (1, "small", "wrong"),
        (3, "large", "wrong"),
        (4, "small", "wrong"),
        (5, "large", 2.0),
        (6, "small", 1.5),
    )
    knobs = SearchKnobs(pool_size_extra_max=0)
    assert ids(no_draws(lambda rng: large_pool(tree, tree[7], knobs, rng))) == [2, 6]
    assert ids(no_draws(lambda rng: large_pool(tree, tree.root, knobs, rng))) == []


def test_path_of_pool_size_needs_no_draw(grow):
    tree = grow((0, "large", 1.0), (1, "large", 1.0), (0, "large", 9.0))
    pool = no_draws(lambda rng: large_pool(tree, tree[2], SearchKnobs(pool_size=2), rng))
    assert ids(pool) == [1, 2]


def test_a_longer_path_is_sampled_uniformly(grow):
    tree = grow(*[(parent, "large", 1.0) for parent in range(7)])
    knobs = SearchKnobs(pool_size=3)
    pools = [ids(large_pool(tree, tree[7], knobs, random.Random(seed))) for seed in range(300)]
    assert all(len(set(pool)) == 3 for pool in pools)
    assert {node for pool in pools for node in pool} == set(range(1, 8))


def test_a_pool_of_size_zero_is_empty(grow):
    tree = grow((0, "large", 1.0), (1, "large", 1.0), (0, "large", 1.0))
    assert large_pool(tree, tree[2], SearchKnobs(pool_size=0), random.Random(1)) == ()


def test_extras_from_other_lineages_come_last(grow):
    tree = grow(
        (0, "large", 1.0), (0, "large", 2.0), (2, "small", 4.0), (0, "large", "wrong"), (0, "large", 3.0)
    )
    knobs = SearchKnobs(geometric_p=0.0)
    pools = {tuple(ids(large_pool(tree, tree[1], knobs, random.Random(seed)))) for seed in range(200)}
    assert pools == {(1,), (1, 3), (1, 5), (1, 3, 5), (1, 5, 3)}


@pytest.mark.parametrize(("pool_size", "extra_max", "most"), [(5, 1, 1), (5, 3, 2), (2, 3, 1), (1, 3, 0)])
def test_extras_are_limited_by_space_maximum_and_candidates(grow, pool_size, extra_max, most):
    tree = grow((0, "large", 1.0), (0, "large", 2.0), (0, "large", 3.0))
    knobs = SearchKnobs(pool_size=pool_size, pool_size_extra_max=extra_max, geometric_p=0.0)
    pools = [large_pool(tree, tree[1], knobs, random.Random(seed)) for seed in range(200)]
    assert max(map(len, pools)) == 1 + most


def test_a_geometric_p_of_one_draws_no_extras(grow):
    tree = grow((0, "large", 1.0), (0, "large", 2.0))
    assert ids(large_pool(tree, tree[1], SearchKnobs(geometric_p=1.0), random.Random(1))) == [1]


def test_the_faster_lineage_is_the_likelier_extra(grow):
    tree = grow((0, "large", 1.0), (0, "large", 1.0), (0, "large", 3.0))
    knobs = SearchKnobs(pool_size_extra_max=1, geometric_p=0.0)
    drawn = [ids(large_pool(tree, tree[1], knobs, random.Random(seed)))[1:] for seed in range(4000)]
    some = [extra[0] for extra in drawn if extra]
    assert len(some) / len(drawn) == pytest.approx(0.5, abs=0.03)
    assert some.count(3) / len(some) == pytest.approx(0.8808, abs=0.03)  # e^2 / (1 + e^2)
