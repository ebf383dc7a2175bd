"""Selection by lineages."""

import random
from dataclasses import replace

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


def test_first_step_starts_a_lineage():
    assert LineageSearch(KNOBS).plan(1, random.Random(0)) == Plan(1, StepKind.LARGE, 0)


def test_leading_lineage_is_refined_at_best_kernel(grow):
    tree = grow((0, "large", 1.0), (0, "large", 2.0), (2, "small", 3.0), (3, "small", 2.5))
    assert planned(tree) == Plan(5, StepKind.SMALL, 3, (2, 3))


def test_stalled_leader_yields_to_large_step(grow):
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


def test_close_new_lineage_precedes_stalled_leader(grow):
    leader = [(0, "large", 2.0), (1, "small", "wrong"), (1, "small", "wrong")]
    assert planned(grow(*leader, (1, "large", 1.9))).parent_id == 4
    assert planned(grow(*leader, (1, "large", 1.05))).parent_id == 1  # too far behind


def test_kernels_as_fast_as_the_best_take_turns(grow):
    assert planned(grow((0, "large", 2.02), (1, "small", 2.0))).parent_id == 2
    assert planned(grow((0, "large", 2.02), (1, "small", 2.0), (2, "small", 1.2))).parent_id == 1


def test_large_step_sees_best_kernels_fastest_first(grow):
    rest = [(1, "small", "wrong")] * 3
    tree = grow((0, "large", 0.4), (0, "large", 0.5), (0, "large", 3.0), *[(3, "small", "wrong")] * 3)
    assert planned(tree) == Plan(7, StepKind.LARGE, 3, (3, 2))
    tree = grow((0, "large", 3.0), *rest, (1, "large", 0.2), (1, "large", 0.5), *[(6, "small", "wrong")] * 3)
    assert planned(tree) == Plan(10, StepKind.LARGE, 1, (1, 6))


def large(step, shown):
    return Plan(step, StepKind.LARGE, 0, shown)


def pool_after(*shown, pending=()):
    """Return the pool of lineages 1 to 4, the last the fastest, after large steps that saw ``shown``."""
    policy = LineageSearch(SearchKnobs(selection="lineages", lineage_patience=0, pool_size=4))
    for step in range(1, 5):
        policy.observe(large(step, ()), "source", Score(True, True, 1.0 + step))
    for step, ids in enumerate(shown, 5):
        policy.observe(large(step, ids), "source", Score(True, False, 0.0))
    plan = policy.plan(5 + len(shown) + len(pending), random.Random(0), pending)
    assert plan.kind is StepKind.LARGE
    return plan.context_ids


def test_pool_starts_like_a_recent_steps_kernels():
    assert pool_after() == (4, 3, 2, 1)
    assert pool_after((2, 1)) == (2, 1, 4, 3)
    assert pool_after((2, 9, 1)) == (2, 4, 3, 1)  # 9 is not in the pool: the cached prefix ends there
    assert pool_after((2, 1), (3, 1)) == (3, 1, 4, 2)  # the later one of two
    assert pool_after((2, 1, 3), (4, 1)) == (2, 1, 3, 4)  # the longer one


def test_pool_order_ignores_old_steps_but_not_pending():
    assert pool_after((2, 1), (), (), ()) == (2, 1, 4, 3)
    assert pool_after((2, 1), (), (), (), ()) == (4, 3, 2, 1)
    assert pool_after((2, 1), pending=[Plan(6, StepKind.SMALL, 2, (3, 2))]) == (3, 2, 4, 1)


def test_wrong_lineage_is_repaired_twice_then_replaced(grow):
    assert planned(grow((0, "large", "wrong"))) == Plan(2, StepKind.SMALL, 1, (1,))
    assert planned(grow((0, "large", "wrong"), (1, "small", "wrong"))) == Plan(3, StepKind.SMALL, 2, (1, 2))
    twice = grow((0, "large", "wrong"), (1, "small", "wrong"), (2, "small", "wrong"))
    assert planned(twice) == Plan(4, StepKind.LARGE, 0)


def test_first_kernel_without_code_is_not_repaired(grow):
    assert planned(grow((0, "large", "empty"))) == Plan(2, StepKind.LARGE, 0)


def test_attempts_in_flight_count_as_attempts_without_progress(grow):
    tree = grow((0, "large", 2.0), (0, "large", 1.9))
    first = planned(tree)
    second = policy_on(tree).plan(4, random.Random(0), [first])
    assert (first.parent_id, second.parent_id) == (1, 2)


def test_only_finished_attempts_use_up_leaders_patience(grow):
    in_flight = [Plan(step, StepKind.SMALL, 1, (1,)) for step in (20, 21, 22)]
    for failures, kind in ((2, StepKind.SMALL), (3, StepKind.LARGE)):
        tree = grow((0, "large", 2.0), *[(1, "small", "wrong")] * failures)
        assert policy_on(tree).plan(23, random.Random(0), in_flight).kind is kind


def test_pending_attempts_on_slower_lineage_favour_large_step(grow):
    tree = grow((0, "large", 2.0), *[(1, "small", "wrong")] * 3)
    tree.add(Plan(5, StepKind.LARGE, 1, (1,)), "kernel", Score(True, True, 1.9), 0.5)
    in_flight = [Plan(step, StepKind.SMALL, 5, (5,)) for step in (20, 21, 22)]
    assert policy_on(tree).plan(22, random.Random(0), in_flight[:2]).parent_id == 5
    assert policy_on(tree).plan(23, random.Random(0), in_flight).kind is StepKind.LARGE


def test_pending_large_steps_do_not_delay_another(grow):
    tree = grow((0, "large", 2.0), *[(1, "small", "wrong")] * 3)
    in_flight = [Plan(step, StepKind.LARGE, 1, (1,)) for step in (20, 21, 22)]
    assert policy_on(tree).plan(23, random.Random(0), in_flight).kind is StepKind.LARGE


def test_failed_edit_of_overtaken_kernel_does_not_count(grow):
    tree = grow((0, "large", 2.0), (1, "small", 3.0), *[(1, "small", "wrong")] * 3)
    assert lineages_of(tree)[1].stalled == 0
    tree = grow((0, "large", 2.0), (1, "small", 3.0), *[(2, "small", "wrong")] * 3)
    assert lineages_of(tree)[1].stalled == 3


FOUNDERS = ((0, "large", 3.0), (0, "large", 1.05), (0, "large", 1.04))


def test_parallel_lineages_are_tried_at_any_speed(grow):
    in_flight = [Plan(step, StepKind.SMALL, 1, (1,)) for step in (20, 21)]
    assert policy_on(grow(*FOUNDERS)).plan(22, random.Random(0), in_flight).parent_id == 2
    in_flight.append(Plan(22, StepKind.SMALL, 2, (2,)))
    assert policy_on(grow(*FOUNDERS)).plan(23, random.Random(0), in_flight).parent_id == 3


@pytest.mark.parametrize(("slower", "edited"), [(1.05, 1), (2.98, 2)])
def test_slower_first_kernel_waits_for_faster_edits(grow, slower, edited):
    tree = grow((0, "large", 3.0), (0, "large", slower), (1, "small", "wrong"))
    in_flight = [Plan(20, StepKind.LARGE, 0)]
    assert policy_on(tree).plan(21, random.Random(0), in_flight).parent_id == edited
    in_flight.append(Plan(21, StepKind.SMALL, 1, (1,)))
    assert policy_on(tree).plan(22, random.Random(0), in_flight).parent_id == 2


def test_later_lineage_is_compared_by_speed(grow):
    tree = grow(FOUNDERS[0])
    tree.add(Plan(2, StepKind.LARGE, 1, (1,)), "kernel", Score(True, True, 1.05), 0.5)
    in_flight = [Plan(20, StepKind.SMALL, 1, (1,))]
    assert policy_on(tree).plan(21, random.Random(0), in_flight).parent_id == 1


def test_sequential_search_compares_speed_from_start(grow):
    assert planned(grow(*FOUNDERS, (1, "small", "wrong"))).parent_id == 1


def test_trial_ends_after_three_attempts_without_progress(grow):
    in_flight = [Plan(step, StepKind.SMALL, 1, (1,)) for step in (20, 21)]
    for failures, edited in ((2, 2), (3, 1)):
        tries = [(2, "small", "wrong")] * failures
        tree = grow((0, "large", 3.0), (0, "large", 1.05), (1, "small", "wrong"), *tries)
        patient = policy_on(tree, replace(KNOBS, lineage_patience=5))
        assert patient.plan(22, random.Random(0), in_flight).parent_id == edited


def test_lineages_tried_are_limited_by_parallel_steps(grow):
    one = [Plan(20, StepKind.SMALL, 1, (1,))]
    tree = grow(*FOUNDERS, *[(2, "small", "wrong")] * 3)  # the second one's trial is over
    assert policy_on(tree).plan(21, random.Random(0), one).parent_id == 1
    two = [*one, Plan(21, StepKind.SMALL, 1, (1,))]
    assert policy_on(tree).plan(22, random.Random(0), two).parent_id == 3


def test_planning_draws_nothing(grow):
    rng = random.Random(3)
    before = rng.getstate()
    policy_on(grow((0, "large", 2.0))).plan(2, rng)
    assert rng.getstate() == before
