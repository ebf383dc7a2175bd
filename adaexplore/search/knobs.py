"""The numbers that steer a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Selection = Literal["uct", "lineages"]


@dataclass(frozen=True)
class SearchKnobs:
    """Search settings under their names in a run's YAML, with the reference's code defaults.

    The configuration checks their ranges.

    Attributes:
        exploration_weight: weight w of the visit term when a child is chosen.
        expand_exploration_ratio: the share of w that counts when adding a child is considered.
        reward_alpha: 1 judges a node by its subtree's best reward, 0 by the mean.
        small_step_limit: small-step children after which a node gets large steps only.
        p_large: probability of a large step below that limit.
        pool_size: kernels shown to a large step (IRB, IRL, IRLE: to every step).
        pool_size_extra_max: at most this many of them from lineages off the selected path.
        softmax_temperature: in units of speedup; smaller prefers the fastest more sharply.
        geometric_p: larger draws fewer extras.
        max_memory_round: kernels of the refinement chain shown to a small step.
        selection: ``uct``, the paper's, or ``lineages``, for agent type MCTS.
        lineage_patience: attempts without improvement after which a leading lineage yields to a large step.
        lineage_reach: how far behind a lineage may be and still be refined, in units of the gain so far.
    """

    exploration_weight: float = 0.25
    expand_exploration_ratio: float = 1.0
    reward_alpha: float = 1.0
    small_step_limit: int = 2
    p_large: float = 0.25
    pool_size: int = 5
    pool_size_extra_max: int = 3
    softmax_temperature: float = 1.0
    geometric_p: float = 0.5
    max_memory_round: int = 5
    selection: Selection = "uct"
    lineage_patience: int = 5
    lineage_reach: float = 0.5
