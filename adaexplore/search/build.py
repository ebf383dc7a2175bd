"""Build the policy of an agent type."""

from __future__ import annotations

from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.lineages import LineageSearch
from adaexplore.search.linear import (
    ElitePool,
    IndependentSampling,
    IterativeRefinement,
    MixedPool,
    RecentPool,
)
from adaexplore.search.mcts import Mcts
from adaexplore.search.policy import Policy

POLICIES: dict[str, type[Policy]] = {
    "MCTS": Mcts,
    "IRS": IterativeRefinement,
    "IRL": RecentPool,
    "IRB": ElitePool,
    "IRLE": MixedPool,
    "PS": IndependentSampling,
}


def build_policy(agent_type: str, knobs: SearchKnobs) -> Policy:
    """Build the policy that ``agent_type`` names, a key of :data:`POLICIES`."""
    if agent_type == "MCTS" and knobs.selection == "lineages":
        return LineageSearch(knobs)
    return POLICIES[agent_type](knobs)
