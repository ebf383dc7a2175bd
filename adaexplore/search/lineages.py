"""Preset ``default``: work on the lineage that is likeliest to bring the next best kernel.

A lineage is a large step and all small steps after it: one structure and its refinements. Two things
tell how likely its next attempt is to beat the best kernel so far: how far behind it is, and for how
many attempts it has not improved. A structure has a limit that nobody sees; the longer it stalls, the
likelier it has met it. With a distance d (the logarithm of the speedup that is missing, in units of the
gain so far) and s attempts without improvement the chance is taken as

    exp(-d / reach) / (1 + s)

and a large step, in sight of the best kernels, as 1 / (1 + patience): a lineage that leads is refined
``patience`` times without success before another one is founded, one that lags behind is given up sooner.

With several steps in flight three things differ. Attempts in flight count as attempts that did not improve,
but the patience with the lineage that leads is spent by answers alone. An edit of a kernel that was overtaken
before it failed tells nothing about the kernel that overtook it. And the first lineages are founded side by
side, none in sight of another: which starts fastest says little about which goes furthest, so each is tried
before speeds count.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from itertools import takewhile

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.context import small_chain
from adaexplore.search.pending import Pending
from adaexplore.search.policy import Policy
from adaexplore.search.tree import Node, Tree

REPAIRS = 2
"""Small steps that a lineage gets to become correct while no other one is."""
NOISE = 0.02
"""Relative difference of speedups that counts as none."""
RECENT = 4
"""Steps after which services may have forgotten a prompt: they keep its beginning for five minutes."""
SMALLEST_GAIN = 0.4
"""Distances are in units of the best level, at least of this one (1.5x): below, all kernels are alike."""
TRIAL = 3
"""Attempts in a row without progress that a lineage founded side by side gets before its speed counts."""


class Lineage:
    """One structure: its nodes in order, its best correct one, and for how many attempts it has stalled."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.best: Node | None = None
        self.stalled = 0

    def add(self, node: Node) -> None:
        """Take in a node; a correct one that beats the lineage's best by more than noise ends a stall.

        An edit of a kernel that was overtaken while the edit was in flight prolongs none.
        """
        leads = node.score.correct and (self.best is None or node.score > self.best.score)
        if leads and (self.best is None or node.score.speedup > self.best.score.speedup * (1 + NOISE)):
            self.stalled = 0
        elif self.nodes and node.parent is not None and self.is_front(node.parent):
            self.stalled += 1
        if leads:
            self.best = node
        self.nodes.append(node)

    @property
    def blind(self) -> bool:
        """Whether its first kernel was written in sight of no other one, and was right."""
        first = self.nodes[0]
        return first.plan.kind is StepKind.LARGE and not first.plan.context_ids and first.score.correct

    def is_front(self, node: Node) -> bool:
        """Whether none of its kernels is faster than ``node`` by more than noise."""
        if self.best is None:
            return True
        return node.score.correct and node.score.speedup >= self.best.score.speedup / (1 + NOISE)

    def next_to_edit(self, pending: Pending) -> Node:
        """Of those as fast as the best the least edited one; the latest while none is correct."""
        if self.best is None:
            return self.nodes[-1]
        front = [node for node in self.nodes if self.is_front(node)]
        return min(front, key=lambda node: (pending.children(node), -node.score.speedup))


class LineageSearch(Policy):
    """Refine the likeliest lineage, or found one in sight of the best kernels. Draws nothing."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Decide between the lineages' next attempts and a large step."""
        lineages = lineages_of(self.tree)
        arms = list(dict.fromkeys(lineages.values()))
        best = self.tree.best if self.tree.best.score.correct else None
        patience = self.knobs.lineage_patience if best is not None else REPAIRS
        leader = None if best is None else lineages[best.id]
        advancing = leader is not None and leader.stalled < patience
        for plan in pending:
            if plan.kind is StepKind.SMALL:
                lineages[plan.parent_id].stalled += 1
        side_by_side = [arm for arm in arms if arm.blind][: len(pending) + 1] if pending else []
        trials = [arm for arm in side_by_side if arm.stalled < TRIAL]
        promises = {arm: self._promise(arm, None if arm in trials else best) for arm in arms}
        found = -math.log(1 + patience)
        likelier = [arm for arm in arms if promises[arm] > found or (advancing and arm is leader)]
        if likelier:
            edited = max(likelier, key=promises.__getitem__).next_to_edit(Pending(self.tree, pending))
            chain = small_chain(edited, self.knobs.max_memory_round)
            if chain:
                return Plan(step, StepKind.SMALL, edited.id, _ids(chain))
        pool = sorted(
            (arm.best for arm in arms if arm.best is not None),
            key=lambda node: node.score.speedup,
            reverse=True,
        )[: self.knobs.pool_size]
        parent = self.tree.root if best is None else best
        return Plan(step, StepKind.LARGE, parent.id, self._as_shown_before(_ids(pool), pending))

    def _as_shown_before(self, pool: tuple[int, ...], pending: Sequence[Plan]) -> tuple[int, ...]:
        """``pool`` so that it begins as the kernels of a recent step did, as far as these are in it.

        Services that keep the beginnings of prompts need not read those kernels anew. The others follow as
        they come, the fastest first: they stay in the pool longest.
        """
        shown = [node.plan.context_ids for node in self.tree] + [plan.context_ids for plan in pending]
        beginnings = [tuple(takewhile(pool.__contains__, each)) for each in shown[: -RECENT - 1 : -1]]
        begun = max(beginnings, key=len)
        return (*begun, *(node for node in pool if node not in begun))

    def _promise(self, lineage: Lineage, best: Node | None) -> float:
        """Logarithm of the chance that the lineage's next attempt is a new best."""
        distance = 0.0
        if best is not None:
            top = level(best)
            own = min(0.0, top) if lineage.best is None else level(lineage.best)
            distance = (top - own) / max(top, SMALLEST_GAIN)
        return -distance / self.knobs.lineage_reach - math.log(1 + lineage.stalled)


def level(node: Node) -> float:
    """Logarithm of a correct node's speedup."""
    return math.log(min(max(node.score.speedup, 1e-3), 1e6))


def lineages_of(tree: Tree) -> dict[int, Lineage]:
    """The lineage of every node but the root, by the node's id, in the order in which they were founded."""
    found: dict[int, Lineage] = {}
    for node in tree:
        if node.parent is None:
            continue
        started = node.plan.kind is StepKind.LARGE or node.parent.parent is None
        found[node.id] = Lineage() if started else found[node.parent.id]
        found[node.id].add(node)
    return found


def _ids(nodes: Iterable[Node]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)
