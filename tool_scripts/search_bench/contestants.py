"""The policies that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from adaexplore.search.build import build_policy
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.policy import Policy
from adaexplore.settings.config import RunConfig
from tool_scripts.search_bench.rivals import Greedy, Islands

PAPER_L2 = SearchKnobs(
    exploration_weight=0.3,
    expand_exploration_ratio=1.0,
    reward_alpha=0.0,
    small_step_limit=2,
    p_large=0.2,
    pool_size=5,
    pool_size_extra_max=0,
    softmax_temperature=1.0,
    geometric_p=0.6,
    max_memory_round=5,
)
"""The knobs of the released configuration for KernelBench level 2."""
PAPER_L3 = replace(PAPER_L2, expand_exploration_ratio=0.5)
"""Those for level 3."""

DEFAULT, L2, L3 = "default", "paper_l2", "paper_l3"


def default_knobs() -> SearchKnobs:
    """Those of preset ``default``."""
    config = RunConfig(preset="default")
    return SearchKnobs(**{field.name: getattr(config, field.name) for field in fields(SearchKnobs)})


def contestants() -> Mapping[str, Callable[[], Policy]]:
    """A maker of a fresh policy for each name."""
    knobs = default_knobs()
    return {
        "best_of_n": lambda: build_policy("PS", PAPER_L2),
        "greedy": lambda: Greedy(PAPER_L2),
        "islands": lambda: Islands(PAPER_L2),
        L2: lambda: build_policy("MCTS", PAPER_L2),
        L3: lambda: build_policy("MCTS", PAPER_L3),
        DEFAULT: lambda: build_policy("MCTS", knobs),
    }
