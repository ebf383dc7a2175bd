"""Selection by lineages: each test names what moves the next step."""

import random

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import Score
from adaexplore.search.build import build_policy
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.lineages import LineageSearch, lineages_of

KNOBS = SearchKnobs(selection="lineages", lineage_patience=3, lineage_reach=0.5, pool_size=2)


def policy_on(tree, knobs=KNOBS):
    policy = LineageSearch(knobs)
    policy.tree = tree
    return policy


def planned(tree, pending=()):
    return policy_on(tree).plan(len(tree), random.Random(0), pending)


def test_the_knob_chooses_the_policy():
    assert isinstance(build_policy("MCTS", KNOBS), LineageSearch)
    assert not isinstance(build_policy("MCTS", SearchKnobs()), LineageSearch)


def test_the_first_step_founds_a_lineage():
    assert LineageSearch(KNOBS).plan(1, random.Random(0)) == Plan(1, StepKind.LARGE, 0)


def test_the_leading_lineage_is_refined_at_its_best_kernel(grow):
    tree = grow((0, "large", 1.0), (0, "large", 2.0), (2, "small", 3.0), (3, "small", 2.5))
    assert planned(tree) == Plan(5, StepKind.SMALL, 3, (2, 3))


def test_a_lineage_that_stalls_for_patience_yields_to_a_large_step_in_sight_of_the_best(grow):
    stalled = [(1, "small", 1.5)] * 3
    tree = grow((0, "large", 2.0), *stalled)
    assert planned(tree) == Plan(5, StepKind.LARGE, 1, (1,))
    assert planned(grow((0, "large", 2.0), *stalled[:2])).kind is StepKind.SMALL


def test_failures_stall_a_lineage_like_slower_kernels(grow):
    assert planned(grow((0, "large", 2.0), *[(1, "small", "wrong")] * 3)).kind is StepKind.LARGE


def test_progress_ends_a_stall_and_noise_does_not(grow):
    tree = grow((0, "large", 2.0), (1, "small", "wrong"), (1, "small", 2.01), (1, "small", 2.4))
    assert lineages_of(tree)[1].stalled == 0
    tree = grow((0, "large", 2.0), (1, "small", "wrong"), (1, "small", 2.01))
    assert lineages_of(tree)[1].stalled == 2


def test_a_fresh_lineage_close_behind_is_tried_before_a_stalled_leader(grow):
    leader = [(0, "large", 2.0), (1, "small", "wrong"), (1, "small", "wrong")]
    assert planned(grow(*leader, (1, "large", 1.9))).parent_id == 4
    assert planned(grow(*leader, (1, "large", 1.05))).parent_id == 1  # too far behind


def test_kernels_as_fast_as_the_best_take_turns(grow):
    assert planned(grow((0, "large", 2.02), (1, "small", 2.0))).parent_id == 2
    assert planned(grow((0, "large", 2.02), (1, "small", 2.0), (2, "small", 1.2))).parent_id == 1


def test_a_large_step_sees_the_best_of_the_best_lineages_oldest_first(grow):
    rest = [(1, "small", "wrong")] * 3
    tree = grow((0, "large", 3.0), *rest, (1, "large", 0.2), (1, "large", 0.5), *[(6, "small", "wrong")] * 3)
    assert planned(tree) == Plan(10, StepKind.LARGE, 1, (1, 6))


def test_without_a_correct_kernel_a_lineage_is_repaired_twice_then_another_is_founded(grow):
    assert planned(grow((0, "large", "wrong"))) == Plan(2, StepKind.SMALL, 1, (1,))
    assert planned(grow((0, "large", "wrong"), (1, "small", "wrong"))) == Plan(3, StepKind.SMALL, 2, (1, 2))
    twice = grow((0, "large", "wrong"), (1, "small", "wrong"), (2, "small", "wrong"))
    assert planned(twice) == Plan(4, StepKind.LARGE, 0)


def test_a_founder_without_code_cannot_be_repaired(grow):
    assert planned(grow((0, "large", "empty"))) == Plan(2, StepKind.LARGE, 0)


def test_attempts_in_flight_count_as_attempts_without_progress(grow):
    tree = grow((0, "large", 2.0), (0, "large", 1.9))
    first = planned(tree)
    second = policy_on(tree).plan(4, random.Random(0), [first])
    assert (first.parent_id, second.parent_id) == (1, 2)
    alone = grow((0, "large", 2.0))
    in_flight = [Plan(step, StepKind.SMALL, 1, (1,)) for step in (2, 3, 4)]
    assert policy_on(alone).plan(5, random.Random(0), in_flight).kind is StepKind.LARGE


def test_planning_draws_nothing(grow):
    rng = random.Random(3)
    before = rng.getstate()
    policy_on(grow((0, "large", 2.0))).plan(2, rng)
    assert rng.getstate() == before


@pytest.mark.parametrize(
    ("score", "again"),
    [
        (Score(True, True, 2.1, 1.95, 2.3), True),
        (Score(True, True, 2.1, 2.05, 2.2), False),  # its interval excludes the best
        (Score(True, True, 1.9, 1.7, 2.1), False),  # no new best
        (Score(True, True, 2.01), True),  # no interval: 2 % is noise
        (Score(True, True, 2.2), False),
        (Score(True, False, 0.0), False),
    ],
)
def test_a_new_best_within_noise_is_timed_again(grow, score, again):
    assert policy_on(grow((0, "large", 2.0))).wants_retiming(score) is again


def test_the_first_correct_kernel_is_not_timed_again(grow):
    assert not policy_on(grow((0, "large", "wrong"))).wants_retiming(Score(True, True, 1.0))


def test_the_paper_takes_every_measurement_as_it_is(grow):
    policy = build_policy("MCTS", SearchKnobs())
    policy.tree = grow((0, "large", 2.0))
    assert not policy.wants_retiming(Score(True, True, 2.01, 1.9, 2.1))
