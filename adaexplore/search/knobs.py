"""The numbers that steer a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adaexplore.core.errors import ConfigError

Selection = Literal["uct", "lineages"]


@dataclass(frozen=True)
class SearchKnobs:
    """Search settings under their names in a run's YAML, with the reference's code defaults.

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

    Raises:
        ConfigError: a value outside its range.
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

    def __post_init__(self) -> None:
        for name in ("reward_alpha", "p_large", "geometric_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: give a value from 0 to 1")
        for name in ("small_step_limit", "pool_size", "pool_size_extra_max", "lineage_patience"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: give 0 or more")
        if not self.softmax_temperature > 0:
            raise ConfigError(f"softmax_temperature is {self.softmax_temperature}: give a value above 0")
        if not self.lineage_reach > 0:
            raise ConfigError(f"lineage_reach is {self.lineage_reach}: give a value above 0")
        if self.max_memory_round < 1:
            raise ConfigError(f"max_memory_round is {self.max_memory_round}: give 1 or more")
