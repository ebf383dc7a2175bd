"""Properties of every policy for any verdicts."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.streams import stream
from adaexplore.core.verdict import NO_SCORE, Score
from adaexplore.search.build import POLICIES, build_policy
from adaexplore.search.knobs import SearchKnobs

AGENTS = st.sampled_from(sorted(POLICIES))
SPEEDUPS = st.one_of(st.floats(0, 50), st.sampled_from([0.0, 1e-9, 1.0, 1.0, 2.0, 1e9, 1e308, float("inf")]))
OUTCOMES = st.one_of(
    st.tuples(st.just(""), st.just(NO_SCORE)),
    st.tuples(st.just("code"), st.just(NO_SCORE)),
    st.tuples(st.just("code"), st.just(Score(True, False, 0.0))),
    st.tuples(st.just("code"), st.builds(Score, st.just(True), st.just(True), SPEEDUPS)),
)
KNOBS = st.builds(
    SearchKnobs,
    exploration_weight=st.floats(0, 2),
    expand_exploration_ratio=st.floats(-1, 2),
    reward_alpha=st.floats(0, 1),
    small_step_limit=st.integers(0, 3),
    p_large=st.floats(0, 1),
    pool_size=st.integers(0, 5),
    pool_size_extra_max=st.integers(0, 5),
    softmax_temperature=st.floats(1e-3, 10),
    geometric_p=st.floats(0, 1),
    max_memory_round=st.integers(1, 5),
)
ANY_KNOBS = st.one_of(KNOBS, KNOBS.map(lambda knobs: dataclasses.replace(knobs, selection="lineages")))
RUNS = st.lists(OUTCOMES, min_size=1, max_size=40)


def search(agent_type, knobs, outcomes, seed):
    """Play a live run: return the policy, and every (plan, source, score, state) of it."""
    policy = build_policy(agent_type, knobs)
    steps = []
    for step, (source, score) in enumerate(outcomes, start=1):
        plan = policy.plan(step, stream(seed, step))
        steps.append((plan, source, score, policy.observe(plan, source, score)))
    return policy, steps


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99))
def test_the_same_seed_makes_the_same_search(agent_type, knobs, outcomes, seed):
    first, steps = search(agent_type, knobs, outcomes, seed)
    second, again = search(agent_type, knobs, outcomes, seed)
    assert steps == again
    assert first.describe() == second.describe()


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99), st.data())
def test_replayed_run_continues_like_the_live_one(agent_type, knobs, outcomes, seed, data):
    _, steps = search(agent_type, knobs, outcomes, seed)
    stopped = data.draw(st.integers(0, len(steps)))
    policy = build_policy(agent_type, knobs)
    for plan, source, score, state in steps[:stopped]:
        assert policy.observe(plan, source, score) == state
    for plan, source, score, state in steps[stopped:]:
        assert policy.plan(plan.step, stream(seed, plan.step)) == plan
        assert policy.observe(plan, source, score) == state


def check_statistics(tree):
    for node in tree:
        own = 0 if node is tree.root else 1
        assert node.visits == own + sum(child.visits for child in node.children)
        assert node.total_reward == pytest.approx(node.reward + sum(c.total_reward for c in node.children))
        assert node.max_reward == max([node.reward, *(child.max_reward for child in node.children)])
        assert 0 <= node.mean_reward <= node.max_reward + 1e-12
    assert tree.best.score == max(node.score for node in tree)


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99))
def test_statistics_add_up_at_every_node(agent_type, knobs, outcomes, seed):
    policy, _ = search(agent_type, knobs, outcomes, seed)
    tree = policy.tree
    check_statistics(tree)
    assert tree.root.visits == len(outcomes)
    assert tree.best.id == min(node.id for node in tree if node.score == tree.best.score)


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99), st.integers(1, 5), st.data())
def test_plans_may_be_observed_in_any_order(agent_type, knobs, outcomes, seed, slots, data):
    policy, flying = build_policy(agent_type, knobs), []
    for step, outcome in enumerate(outcomes, start=1):
        before = policy.describe()
        plan = policy.plan(step, stream(seed, step), tuple(item[0] for item in flying))
        assert policy.describe() == before
        assert plan.parent_id in [node.id for node in policy.tree]
        flying.append((plan, *outcome))
        while flying and (len(flying) >= slots or step == len(outcomes)):
            done = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
            assert policy.observe(*done).plan == done[0]
    assert len(policy.tree) == len(outcomes) + 1
    check_statistics(policy.tree)


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99))
def test_plans_show_each_kernel_with_code_once(agent_type, knobs, outcomes, seed):
    policy, steps = search(agent_type, knobs, outcomes, seed)
    for plan, _, _, _ in steps:
        shown = [*plan.elite_ids, *plan.context_ids]
        assert len(shown) == len(set(shown))
        assert all(policy.tree[node].has_code and node < plan.step for node in shown)
        assert plan.parent_id < plan.step
        if plan.kind is StepKind.SMALL:
            assert 1 <= len(shown) <= knobs.max_memory_round
        else:
            assert len(shown) <= knobs.pool_size


@settings(deadline=None)
@given(KNOBS, RUNS, st.integers(0, 99))
def test_tree_pools_hold_one_correct_kernel_per_lineage(knobs, outcomes, seed):
    policy, steps = search("MCTS", knobs, outcomes, seed)
    for plan, _, _, _ in steps:
        shown = [policy.tree[node] for node in plan.context_ids]
        if plan.kind is StepKind.LARGE:
            assert all(node.score.correct for node in shown)
            lineages = [node.chain()[0].id for node in shown]
            assert len(lineages) == len(set(lineages))
        else:
            assert len({node.chain()[0].id for node in shown}) == 1


@settings(deadline=None)
@given(KNOBS, RUNS, st.integers(0, 99))
def test_a_lineage_never_exceeds_the_small_step_limit(knobs, outcomes, seed):
    policy, _ = search("MCTS", knobs, outcomes, seed)
    assert all(len(node.children_by(StepKind.SMALL)) <= knobs.small_step_limit for node in policy.tree)
    assert all(child.plan.kind is StepKind.LARGE for child in policy.tree.root.children)


@settings(deadline=None)
@given(AGENTS, ANY_KNOBS, RUNS, st.integers(0, 99))
def test_text_and_numbers_cover_every_node(agent_type, knobs, outcomes, seed):
    policy, _ = search(agent_type, knobs, outcomes, seed)
    statistics = policy.statistics()
    assert statistics.total_nodes == len(policy.describe().splitlines()) == len(outcomes) + 1
    assert sum(statistics.nodes.values()) == len(outcomes)


@pytest.mark.parametrize("agent_type", sorted(POLICIES))
def test_a_node_without_code_has_no_score(agent_type):
    policy = build_policy(agent_type, SearchKnobs())
    state = policy.observe(Plan(1, StepKind.LARGE, 0), " \n", Score(True, True, 9.0))
    assert state.score == NO_SCORE
    assert (state.total_reward, state.global_best_node_id) == (0.0, 0)


def test_the_root_before_the_first_step():
    state = build_policy("MCTS", SearchKnobs()).root_state()
    assert state.plan == Plan(0, StepKind.DUMMY_ROOT, 0)
    assert (state.depth, state.visits, state.total_reward, state.max_reward) == (0, 0, 0.0, 0.0)
    assert (state.total_nodes, state.global_best_node_id) == (1, 0)
    assert state.score == state.global_best_score == NO_SCORE


def test_state_is_that_at_observation_time():
    policy = build_policy("MCTS", SearchKnobs())
    first = policy.observe(Plan(1, StepKind.LARGE, 0), "code", Score(True, True, 1.0))
    copy = dataclasses.replace(first)
    policy.observe(Plan(2, StepKind.SMALL, 1, (1,)), "better", Score(True, True, 10.0))
    assert first == copy
    assert (first.visits, first.depth, first.total_nodes, first.global_best_node_id) == (1, 1, 2, 1)
