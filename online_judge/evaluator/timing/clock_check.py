"""Check the times that a candidate process claims against the evaluator's own clock.

The evaluator measures a block's wall time, from the order to the answer. The claimed times must fill it: the
rest, and the gaps between calls, must be as long as in the reference's blocks, which run the same code with
the same flushes and copies. So work cannot hide: outputs must be copied before the next call, and the whole
block must be done before the answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from online_judge.common.timing import Block

RATIO = 1.3
"""Two clocks may disagree by this factor."""
SLACK_MS = 0.8
"""Unexplained time that a block may have: messages, a descheduled process."""
TAIL_SLACK_MS = 0.3
LAUNCH_SLACK_MS = 0.03
GRAPH_SLACK_MS = 0.008
COPY_SLACK = 0.25
HOST_MS = 3.0
"""What a slow host can add to a replayed block; 0.4 ms are usual, 2 ms were seen."""


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
    """Both clocks' times of the candidate's blocks; medians in milliseconds.

    Attributes:
        claimed_ms: of the calls of a block, by their events.
        wall_ms: of the same calls, by the evaluator's clock, less the time that the reference's blocks
            take besides calls.
        tail_ms: how much longer the device works after a block than after the reference's.
    """

    claimed_ms: float
    wall_ms: float
    tail_ms: float

    @classmethod
    def of(
        cls, candidate: Sequence[Observed], reference: Sequence[Observed], copy_extra_ms: float = 0.0
    ) -> Clocks:
        """Compare the claims of marked blocks with the wall clock.

        The reference's blocks, with the same flushes and output sizes, show the time besides calls;
        ``copy_extra_ms`` is how much longer it takes to copy the candidate's outputs of one call.
        """
        open_ms = statistics.median(seen.open_ms for seen in reference)
        gaps = [gap for seen in reference for gap in seen.block.gaps]
        gap_ms = statistics.median(gaps or [0.0])
        return cls(
            claimed_ms=statistics.median(sum(seen.block.calls) for seen in candidate),
            wall_ms=statistics.median(
                seen.wall_ms - open_ms - gap_ms * len(seen.block.gaps) - copy_extra_ms * len(seen.block.calls)
                for seen in candidate
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
        """Whether the device works on after the timed stream is done."""
        return self.tail_ms > max((RATIO - 1) * self.claimed_ms, TAIL_SLACK_MS)


def fastest_ms(
    candidate: Sequence[Observed], reference: Sequence[Observed], copy_extra_ms: float = 0.0
) -> float:
    """Return the time of the fastest of the candidate's blocks of one call, by the clock that counts."""
    found = []
    for seen in candidate:
        clocks = Clocks.of([seen], reference, copy_extra_ms)
        found.append(clocks.wall_ms if clocks.disagree else clocks.claimed_ms)
    return min(found)


def launch_bound(gpu_ms: float, wall_ms: float, copy_ms: float = 0.0) -> bool:
    """Return True if calls, with copied outputs, take longer on the wall than their GPU time explains.

    ``copy_ms``, the time to copy the outputs of a call, is not exact beside other work.
    """
    return wall_ms - copy_ms > RATIO * gpu_ms + COPY_SLACK * copy_ms + LAUNCH_SLACK_MS


def confirmed(gpu_ms: float, graph_ms: float, copy_ms: float = 0.0, slack_ms: float = 0.0) -> bool:
    """Return True if the wall time of a call in a replayed graph confirms its GPU time.

    ``slack_ms`` is a call's share of what the block may take besides.
    """
    return graph_ms - copy_ms <= RATIO * gpu_ms + COPY_SLACK * copy_ms + max(slack_ms, GRAPH_SLACK_MS)
