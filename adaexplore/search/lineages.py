"""Preset ``default``: work on the lineage that is most likely to produce the next best kernel.

A lineage is a large step and all small steps after it: one structure and its refinements. Two values
predict whether its next attempt beats the best kernel so far: how far behind the lineage is, and for
how many attempts it has not improved. Every structure has an unknown limit; the longer a lineage stalls,
the more likely it has reached that limit. Let d be its distance (the logarithm of the missing speedup, in
units of the gain so far) and s its attempts without improvement. Its chance is taken as

    exp(-d / reach) / (1 + s)

and that of a large step, which sees the best kernels, as 1 / (1 + patience). So the leading lineage is
refined ``patience`` times without success before a new lineage starts; a slower one is given up sooner.

With several steps in flight three things differ. Attempts in flight count as attempts without improvement;
only for the leading lineage's patience they do not count. A failed edit of a kernel that was overtaken
meanwhile says nothing about the faster kernel. The first lineages start in parallel, and none sees another:
early speed says little about final speed, so each is refined before speeds count. A clearly slower one gets
an edit only while each faster one has an edit in flight.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from adaexplore.core.plan import Plan, StepKind
from adaexplore.search.context import small_chain
from adaexplore.search.pending import Pending
from adaexplore.search.policy import Policy
from adaexplore.search.tree import Node, Tree, ids

REPAIRS = 2
"""Small steps that a lineage has to become correct while no other one is."""
NOISE = 0.02
"""Relative difference of speedups that counts as noise."""
RECENT = 4
"""Steps after which a service may have dropped a prompt from its cache: prefixes stay for five minutes."""
SMALLEST_GAIN = 0.4
"""Minimum unit of distance (1.5x); the unit is the best level. Below this, all kernels count as alike."""
TRIAL = 3
"""Successive attempts without progress that a lineage started in parallel has before its speed counts."""


class Lineage:
    """One structure: its nodes in order, its best correct node, and its number of stalled attempts."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.best: Node | None = None
        self.stalled = 0

    def add(self, node: Node) -> None:
        """Add a node; a correct one that beats the lineage's best by more than noise ends a stall.

        An edit of a kernel that was overtaken while the edit was in flight does not count as stalled.
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
        """Whether its first kernel was written without seeing another one, and was correct."""
        first = self.nodes[0]
        return first.starts_lineage and not first.plan.context_ids and first.score.correct

    def is_front(self, node: Node) -> bool:
        """Return whether no kernel of the lineage is faster than ``node`` by more than noise."""
        if self.best is None:
            return True
        return node.score.correct and node.score.speedup >= self.best.score.speedup / (1 + NOISE)

    def is_behind(self, other: Lineage) -> bool:
        """Return whether its best is slower than that of ``other`` by more than noise."""
        return (
            self.best is not None
            and other.best is not None
            and other.best.score.speedup > self.best.score.speedup * (1 + NOISE)
        )

    def next_to_edit(self, pending: Pending) -> Node:
        """Return the least edited node among the fastest ones; the latest node while none is correct."""
        if self.best is None:
            return self.nodes[-1]
        front = [node for node in self.nodes if self.is_front(node)]
        return min(front, key=lambda node: (pending.children(node), -node.score.speedup))


class LineageSearch(Policy):
    """Refine the most promising lineage, or start a new one that sees the best kernels. Draws nothing."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        """Choose between the lineages' next attempts and a large step."""
        lineages = lineages_of(self.tree)
        arms = list(dict.fromkeys(lineages.values()))
        best = self.tree.best if self.tree.best.score.correct else None
        patience = self.knobs.lineage_patience if best is not None else REPAIRS
        leader = None if best is None else lineages[best.id]
        advancing = leader is not None and leader.stalled < patience
        edits = Counter(lineages[plan.parent_id] for plan in pending if plan.kind.edits)
        for arm in edits:
            arm.stalled += edits[arm]
        side_by_side = [arm for arm in arms if arm.blind][: len(pending) + 1] if pending else []
        trials = [arm for arm in side_by_side if arm.stalled < TRIAL]
        promises = {arm: self._promise(arm, None if arm in trials else best) for arm in arms}
        found = -math.log(1 + patience)
        likelier = [arm for arm in arms if promises[arm] > found or (advancing and arm is leader)]
        unedited = [arm for arm in likelier if not edits[arm]]
        likelier = [
            arm
            for arm in likelier
            if arm not in trials or not any(arm.is_behind(other) for other in unedited)
        ]
        if likelier:
            edited = max(likelier, key=promises.__getitem__).next_to_edit(Pending(self.tree, pending))
            chain = small_chain(edited, self.knobs.max_memory_round)
            if chain:
                return Plan(step, StepKind.SMALL, edited.id, ids(chain))
        pool = sorted(
            (arm.best for arm in arms if arm.best is not None),
            key=lambda node: node.score.speedup,
            reverse=True,
        )[: self.knobs.pool_size]
        parent = self.tree.root if best is None else best
        return Plan(step, StepKind.LARGE, parent.id, self._as_shown_before(ids(pool), pending))

    def _as_shown_before(self, pool: tuple[int, ...], pending: Sequence[Plan]) -> tuple[int, ...]:
        """Reorder ``pool`` so that it starts with the kernels of a recent step, in the same order.

        Services with a prompt cache then need not read those kernels again. The others follow, the fastest
        first: they stay in the pool longest.
        """
        shown = [node.plan.context_ids for node in self.tree] + [plan.context_ids for plan in pending]
        beginnings = [tuple(takewhile(pool.__contains__, each)) for each in shown[: -RECENT - 1 : -1]]
        begun = max(beginnings, key=len)
        return (*begun, *(node for node in pool if node not in begun))

    def _promise(self, lineage: Lineage, best: Node | None) -> float:
        """Return the logarithm of the chance that the lineage's next attempt is a new best."""
        distance = 0.0
        if best is not None:
            top = level(best)
            own = min(0.0, top) if lineage.best is None else level(lineage.best)
            distance = (top - own) / max(top, SMALLEST_GAIN)
        return -distance / self.knobs.lineage_reach - math.log(1 + lineage.stalled)


def level(node: Node) -> float:
    """Return the logarithm of a correct node's speedup."""
    return math.log(min(max(node.score.speedup, 1e-3), 1e6))


def lineages_of(tree: Tree) -> dict[int, Lineage]:
    """Return the lineage of each node except the root, by node id, in the order in which lineages started."""
    found: dict[int, Lineage] = {}
    for node in tree:
        if node.parent is None:
            continue
        started = node.starts_lineage or node.parent.parent is None
        found[node.id] = Lineage() if started else found[node.parent.id]
        found[node.id].add(node)
    return found
