"""One finished step of a search: its node in the tree, its draft, its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.draft import Draft
from adaexplore.core.plan import Plan
from adaexplore.core.verdict import Score, Verdict


@dataclass(frozen=True)
class NodeState:
    """A node right after it was observed; statistics as ``step_k_log.json`` stores them.

    The node's id is the step number; step 0 is the dummy root.
    """

    plan: Plan
    depth: int
    visits: int
    total_reward: float
    max_reward: float
    score: Score
    total_nodes: int
    global_best_node_id: int
    global_best_score: Score


@dataclass(frozen=True)
class StepRecord:
    """The record of one step.

    Attributes:
        verdict: the verdict; None if there was nothing to judge.
        evaluated: whether the judge was asked; False if a known verdict was reused.
        written: the source as the model wrote it, if a config sweep changed it; else None.
        pinned: whether the user chose the node that it edits.
    """

    node: NodeState
    draft: Draft
    verdict: Verdict | None
    evaluated: bool
    written: str | None = None
    pinned: bool = False
