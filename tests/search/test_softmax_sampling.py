import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.search.context import softmax_order, truncated_geometric

DRAWS = 20_000


def test_truncated_geometric_has_its_probabilities():
    rng = random.Random(1)
    counts = Counter(truncated_geometric(rng, 0.6, 3) for _ in range(DRAWS))
    # weights 1, .4, .16, .064; their sum is 1.624
    for k, probability in enumerate([0.6158, 0.2463, 0.0985, 0.0394]):
        assert counts[k] / DRAWS == pytest.approx(probability, abs=0.015)


def test_truncated_geometric_at_its_edges():
    rng = random.Random(2)
    assert {truncated_geometric(rng, 1.0, 5) for _ in range(50)} == {0}
    assert {truncated_geometric(rng, 0.0, 2) for _ in range(50)} == {0, 1, 2}
    assert truncated_geometric(rng, 0.5, 0) == 0


def test_truncated_geometric_takes_one_draw():
    rng, other = random.Random(3), random.Random(3)
    truncated_geometric(rng, 0.5, 3)
    other.random()
    assert rng.getstate() == other.getstate()


def test_softmax_order_draws_without_replacement_by_weight():
    rng = random.Random(4)
    counts = Counter(tuple(softmax_order(rng, [0.0, 1.0, 2.0], 2.0)) for _ in range(DRAWS))
    # weights 1, 1.6487, 2.7183 (sum 5.3670)
    first = Counter[int]()
    for order, count in counts.items():
        first[order[0]] += count
    for index, probability in enumerate([0.1863, 0.3072, 0.5065]):
        assert first[index] / DRAWS == pytest.approx(probability, abs=0.015)
    # 2 first, then 1 of the remaining two: .5065 * 1.6487 / 2.6487
    assert counts[2, 1, 0] / DRAWS == pytest.approx(0.3153, abs=0.015)


def test_dominant_speedup_is_first_and_order_stays_defined():
    rng = random.Random(5)
    orders = [softmax_order(rng, [1.0, 1e9, 1.0, 1.0], 1e-3) for _ in range(200)]
    assert {order[0] for order in orders} == {1}
    assert {order[1] for order in orders} == {0, 2, 3}


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1e12), max_size=12),
    st.floats(1e-6, 1e6),
    st.integers(0, 2**32),
)
def test_softmax_order_is_a_permutation_whatever_the_values(values, temperature, seed):
    order = softmax_order(random.Random(seed), values, temperature)
    assert sorted(order) == list(range(len(values)))


def test_a_draw_of_zero_is_survived():
    class Zero(random.Random):
        def random(self):
            return 0.0

    assert softmax_order(Zero(), [1.0, 2.0], 1.0) == [1, 0]
