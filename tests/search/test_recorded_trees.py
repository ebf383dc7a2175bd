"""This search reproduces recorded trees of the release, decision by decision."""

import json
import random
from pathlib import Path

import pytest

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.verdict import Score
from adaexplore.search.build import build_policy
from adaexplore.search.context import large_pool, small_chain
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.selection import select

TRACES = sorted((Path(__file__).parents[3] / "shared" / "data" / "traces").glob("*.json"))
KB_L2 = SearchKnobs(
    exploration_weight=0.3,
    expand_exploration_ratio=1,
    reward_alpha=0,
    small_step_limit=2,
    p_large=0.2,
    pool_size=5,
    pool_size_extra_max=0,
    softmax_temperature=1,
    geometric_p=0.6,
    max_memory_round=5,
)

pytestmark = pytest.mark.skipif(not TRACES, reason="no recorded trees beside the repository")


@pytest.fixture(scope="module", params=TRACES, ids=lambda path: path.stem)
def steps(request):
    return json.loads(request.param.read_text(encoding="utf-8"))["steps"][1:]


def replay(steps):
    """Yield the policy before each recorded step, and the step."""
    policy = build_policy("MCTS", KB_L2)
    for step in steps:
        yield policy, step
        plan = Plan(
            step["node_id"],
            StepKind(step["created_by"]),
            step["parent_node_id"],
            tuple(step["context_node_ids"]),
        )
        score = Score(step["score"]["compiled"], step["score"]["correct"], step["score"]["fast_p"])
        state = policy.observe(plan, step["code"], score)
        assert (state.depth, state.visits) == (step["depth"], step["visits"])
        assert (state.total_reward, state.max_reward) == (step["total_reward"], step["max_reward"])
        assert state.global_best_node_id == step["global_best_node_id"]
        assert state.global_best_score.speedup == step["global_best_fast_p"]


def test_every_recorded_parent_is_the_selected_node(steps):
    for policy, step in replay(steps):
        assert select(policy.tree, KB_L2).id == step["parent_node_id"]


def test_every_recorded_step_sees_the_recorded_kernels(steps):
    for policy, step in replay(steps):
        parent = policy.tree[step["parent_node_id"]]
        if step["created_by"] == "small_step":
            shown = small_chain(parent, KB_L2.max_memory_round)
        else:
            shown = large_pool(policy.tree, parent, KB_L2, random.Random(0))
        assert [node.id for node in shown] == step["context_node_ids"]


def test_the_recorded_kinds_follow_the_rules(steps):
    free = []
    for policy, step in replay(steps):
        parent = policy.tree[step["parent_node_id"]]
        if parent.parent is None or len(parent.children_by(StepKind.SMALL)) >= KB_L2.small_step_limit:
            assert step["created_by"] == "large_step"
        else:
            free.append(step["created_by"] == "large_step")
    assert sum(free) / len(free) == pytest.approx(KB_L2.p_large, abs=0.1)
