"""The compared policies, including two simple ones that a tree search must beat."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from adaexplore.core.plan import Plan, StepKind
from adaexplore.run.build import search_knobs
from adaexplore.search.build import build_policy
from adaexplore.search.context import small_chain
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.policy import Policy
from adaexplore.search.tree import Node
from adaexplore.settings.config import RunConfig

PAPER_L2 = SearchKnobs(
    exploration_weight=0.3, reward_alpha=0.0, p_large=0.2, pool_size_extra_max=0, geometric_p=0.6
)
"""The knobs of the released configuration for KernelBench level 2; others have the reference's defaults."""
PAPER_L3 = replace(PAPER_L2, expand_exploration_ratio=0.5)
"""Those for level 3."""
DEFAULT, L2, L3 = "default", "paper_l2", "paper_l3"
ISLANDS = 4
MIGRATION = 10

Maker = Callable[[], Policy]


def policies() -> Mapping[str, Maker]:
    """Return a function that makes a new policy, by name."""
    knobs = search_knobs(RunConfig(preset="default"))
    return {
        "best_of_n": lambda: build_policy("PS", PAPER_L2),
        "greedy": lambda: Greedy(PAPER_L2),
        "islands": lambda: Islands(PAPER_L2),
        L2: lambda: build_policy("MCTS", PAPER_L2),
        L3: lambda: build_policy("MCTS", PAPER_L3),
        DEFAULT: lambda: build_policy("MCTS", knobs),
    }


class Greedy(Policy):
    """Edits the best kernel so far; draws new ones until one is correct."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        return _refine(self, step, self.tree.best)


class Islands(Policy):
    """Four greedy searches in turn; every tenth step of each starts anew with all their bests in view."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        mine = step % ISLANDS
        best: dict[int, Node] = {}
        for node in self.tree:
            island = node.id % ISLANDS
            if node.score.correct and (island not in best or node.score > best[island].score):
                best[island] = node
        if mine not in best or (step // ISLANDS) % MIGRATION == MIGRATION - 1:
            return Plan(step, StepKind.LARGE, 0, tuple(sorted(node.id for node in best.values())))
        return _refine(self, step, best[mine])


def _refine(policy: Policy, step: int, node: Node) -> Plan:
    if not node.score.correct:
        return Plan(step, StepKind.LARGE, 0)
    chain = small_chain(node, policy.knobs.max_memory_round)
    return Plan(step, StepKind.SMALL, node.id, tuple(item.id for item in chain))
