import random

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.build import build_policy
from adaexplore.search.knobs import SearchKnobs

NODES = [
    (0, "large", "wrong"),
    (1, "large", 2.0),
    (2, "large", "empty"),
    (3, "large", 5.0),
    (4, "large", 2.0),
    (5, "large", "broken"),
]


@pytest.fixture
def plan_after(grow):
    def plan(agent_type, nodes, seed=1, **knobs):
        policy = build_policy(agent_type, SearchKnobs(**knobs))
        policy.tree = grow(*nodes)
        return policy.plan(len(nodes) + 1, random.Random(seed))

    return plan


@pytest.mark.parametrize("agent_type", ["IRS", "IRL", "IRB", "IRLE", "PS"])
def test_policies_start_with_large_step_without_context(plan_after, agent_type):
    assert plan_after(agent_type, []) == Plan(1, StepKind.LARGE, 0)


def test_irs_edits_the_latest_attempt_not_the_best(plan_after):
    assert plan_after("IRS", NODES) == Plan(7, StepKind.SMALL, 6, (1, 2, 4, 5, 6))
    assert plan_after("IRS", NODES, max_memory_round=2) == Plan(7, StepKind.SMALL, 6, (5, 6))


def test_irs_takes_large_steps_until_code_exists(plan_after):
    assert plan_after("IRS", [(0, "large", "empty")]) == Plan(2, StepKind.LARGE, 1)
    after_empty = [(0, "large", 1.0), (1, "small", "empty")]
    assert plan_after("IRS", after_empty) == Plan(3, StepKind.SMALL, 2, (1,))


def test_irl_shows_the_latest_attempts(plan_after):
    assert plan_after("IRL", NODES, pool_size=3) == Plan(7, StepKind.LARGE, 6, (4, 5, 6))
    assert plan_after("IRL", NODES, pool_size=0) == Plan(7, StepKind.LARGE, 6)


def test_irb_shows_the_best_attempts_wrong_ones_included(plan_after):
    assert plan_after("IRB", NODES, pool_size=3) == Plan(7, StepKind.LARGE, 6, elite_ids=(4, 2, 5))
    assert plan_after("IRB", NODES, pool_size=9) == Plan(7, StepKind.LARGE, 6, elite_ids=(4, 2, 5, 1, 6))


def test_irle_fills_pool_with_correct_older_attempts(plan_after):
    plan = plan_after("IRLE", NODES, pool_size=5)
    assert plan.context_ids == (5, 6)
    assert set(plan.elite_ids) == {2, 4}
    assert plan.kind is StepKind.LARGE


def test_irle_samples_elites_by_softmax_over_the_speedup(plan_after):
    plans = [plan_after("IRLE", NODES, seed, pool_size=3) for seed in range(2000)]
    assert {plan.context_ids for plan in plans} == {(6,)}
    assert all(len(set(plan.elite_ids)) == 2 and set(plan.elite_ids) <= {2, 4, 5} for plan in plans)
    first = [plan.elite_ids[0] for plan in plans]
    # e^5 / (e^5 + 2 e^2) = 0.9094
    assert first.count(4) / len(first) == pytest.approx(0.9094, abs=0.03)


def test_irle_survives_one_speedup_that_dwarfs_the_rest(plan_after):
    nodes = [(0, "large", 1.0), (0, "large", 1e9), (0, "large", 1.0), (0, "large", "wrong")]
    plan = plan_after("IRLE", nodes, pool_size=4, softmax_temperature=1e-3)
    assert plan.context_ids == (3, 4)
    assert plan.elite_ids == (2, 1)


def test_ps_sees_nothing_under_the_root(plan_after):
    assert plan_after("PS", NODES) == Plan(7, StepKind.LARGE, 0)
