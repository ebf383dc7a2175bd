"""Configurations that a sweep tries: spread out first, then neighbours of the fastest, none twice."""

import math
from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.tunables import Tunable, Values, combination, count
from online_judge.evaluator.timing.config_search import FIRST, MOST, ConfigSearch
from online_judge.protocol.config_sweep import DECLARED

BLOCKS = (16, 32, 64, 128)
MATMUL = (
    Tunable("BLOCK_M", 16, BLOCKS),
    Tunable("BLOCK_N", 256, (128, 64, 32, 256)),
    Tunable("BLOCK_K", 16, BLOCKS),
    Tunable("NUM_WARPS", 1, (1, 4, 8)),
    Tunable("NUM_STAGES", 1, (1, 2, 3, 4)),
)


def searched(
    tunables: tuple[Tunable, ...], cost: Callable[[Values], float | None]
) -> tuple[list[int], dict[int, float]]:
    """Return the tried configurations in order, and times; ``cost`` is None for one that does not run."""
    search = ConfigSearch(tunables)
    tried: list[int] = []
    ms: dict[int, float] = {}
    batch = search.first()
    while batch:
        tried += batch
        times = {number: cost(combination(tunables, number)) for number in batch}
        ms |= {number: time for number, time in times.items() if time is not None}
        batch = search.next(ms, 8)
    return tried, ms


def smooth(values: Values) -> float:
    """Least for blocks of 64 and 128, 4 warps, 3 stages; 1 there."""
    best = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_WARPS": 4, "NUM_STAGES": 3}
    return 1.0 + sum(abs(math.log2(float(values[name]) / number)) for name, number in best.items())


def test_first_batch_starts_with_declared_and_balances_choices() -> None:
    first = ConfigSearch(MATMUL).first()
    assert first[0] == DECLARED
    assert len(set(first)) == len(first) == FIRST
    for tunable in MATMUL:
        uses = Counter(combination(MATMUL, number)[tunable.name] for number in first)
        assert set(uses) == set(tunable.choices)
        assert all(abs(times - FIRST / len(tunable.choices)) <= 1 for times in uses.values())


def test_fastest_of_hundreds_is_found_in_few_steps() -> None:
    tried, ms = searched(MATMUL, smooth)
    best = combination(MATMUL, min(ms, key=lambda number: ms[number]))
    assert smooth(best) == 1.0
    assert len(tried) < 60 < count(MATMUL) == 768


def test_search_passes_failing_configurations() -> None:
    _, ms = searched(MATMUL, lambda values: None if values["NUM_STAGES"] == 4 else smooth(values))
    assert min(ms.values()) == 1.0
    none, times = searched(MATMUL, lambda values: None)
    assert (len(none), times) == (MOST - 1, {}), "the declared one has two numbers"


def test_unordered_choices_are_all_neighbours() -> None:
    tunables = (Tunable("PRECISION", "a", ("a", "b", "c", "d")), Tunable("FUSED", True, (True, False)))
    tried, _ = searched(tunables, lambda values: 1.0)
    assert {tuple(combination(tunables, number).values()) for number in tried} == {
        (letter, fused) for letter in "abcd" for fused in (True, False)
    }


@given(st.data())
def test_search_never_repeats_or_tries_excluded_configurations(data: st.DataObject) -> None:
    numbers = st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True)
    tunables = tuple(
        Tunable(name, data.draw(st.integers(1, 64)), tuple(data.draw(numbers)))
        for name in "ABC"[: data.draw(st.integers(1, 3))]
    )
    left_out = data.draw(st.lists(st.integers(0, count(tunables)), max_size=5, unique=True))
    search = ConfigSearch(tunables, left_out)
    tried = search.first()
    while batch := search.next({number: float(number + 1) for number in tried}, 8):
        tried += batch
    seen = [tuple(combination(tunables, number).values()) for number in tried]
    assert len(set(seen)) == len(seen) <= MOST
    assert not set(tried) & set(left_out)
