"""Whether the times that a candidate process claims fit the evaluator's own clock.

A block's wall time, from the order to the answer, is the evaluator's. The claimed times must fill it: what
they leave open, and what lies between the calls, must be what it is for the reference, which goes through the
same code with the same flushes and copies. Hidden work has nowhere to go: its outputs must have been copied
before the next call, and the whole block must be done before the answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from online_judge.common.timing import Block

RATIO = 1.3
"""Two clocks may disagree by this factor."""
SLACK_MS = 0.8
"""Open time of a block that needs no explanation: messages, a descheduled process."""
TAIL_SLACK_MS = 0.3
LAUNCH_SLACK_MS = 0.03
GRAPH_SLACK_MS = 0.008
COPY_SLACK = 0.25


@dataclass(frozen=True)
class Observed:
    """One block: the evaluator's wall milliseconds and the times claimed for it."""

    wall_ms: float
    block: Block

    @property
    def open_ms(self) -> float:
        return self.wall_ms - self.block.span


@dataclass(frozen=True)
class Clocks:
    """What both clocks say of the candidate's blocks; medians in milliseconds.

    Attributes:
        claimed_ms: the calls of a block by their events.
        wall_ms: the same by the evaluator's clock, less what the reference's blocks take besides calls.
        tail_ms: how much longer the device works after a block than after the reference's.
    """

    claimed_ms: float
    wall_ms: float
    tail_ms: float

    @classmethod
    def of(
        cls, candidate: Sequence[Observed], reference: Sequence[Observed], copy_extra_ms: float = 0.0
    ) -> Clocks:
        """Compare what marked blocks claim with the wall clock.

        The reference's blocks, of the same flushes and output sizes, are the measure; ``copy_extra_ms`` is
        how much longer copying the candidate's outputs of one call takes.
        """
        open_ms = statistics.median(seen.open_ms for seen in reference)
        gaps = [gap for seen in reference for gap in seen.block.gaps]
        gap_ms = statistics.median(gaps or [0.0]) + copy_extra_ms
        return cls(
            claimed_ms=statistics.median(sum(seen.block.calls) for seen in candidate),
            wall_ms=statistics.median(
                seen.wall_ms - open_ms - gap_ms * len(seen.block.gaps) for seen in candidate
            ),
            tail_ms=statistics.median(seen.block.tail for seen in candidate)
            - statistics.median(seen.block.tail for seen in reference),
        )

    @property
    def disagree(self) -> bool:
        """Whether blocks take longer than the claimed times explain: the host is slow, or work is hidden."""
        return self.wall_ms > RATIO * self.claimed_ms and self.wall_ms - self.claimed_ms > SLACK_MS

    @property
    def runs_on(self) -> bool:
        """Whether the device works on when the timed stream is done."""
        return self.tail_ms > max((RATIO - 1) * self.claimed_ms, TAIL_SLACK_MS)


def launch_bound(gpu_ms: float, wall_ms: float, copy_ms: float = 0.0) -> bool:
    """Say whether calls, with copied outputs, take longer on the wall than their GPU time explains.

    ``copy_ms``, of copying the outputs of a call, is not known exactly beside other work.
    """
    return wall_ms - copy_ms > RATIO * gpu_ms + COPY_SLACK * copy_ms + LAUNCH_SLACK_MS


def confirmed(gpu_ms: float, graph_ms: float, copy_ms: float = 0.0) -> bool:
    """Say whether the wall time in a replayed graph, in which the host has no part, confirms the GPU time."""
    return graph_ms - copy_ms <= RATIO * gpu_ms + COPY_SLACK * copy_ms + GRAPH_SLACK_MS
