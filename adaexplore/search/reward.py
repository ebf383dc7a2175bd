"""What a node's score is worth to the tree."""

from __future__ import annotations

from adaexplore.core.verdict import Score

WRONG_REWARD = 0.05
CORRECT_REWARD = 0.4
TOP_REWARD = 1.6
SLOWEST = 0.1
FASTEST = 10.0


def paper_reward(score: Score) -> float:
    """The paper's reward: linear in the speedup, clipped to 0.1x .. 10x.

    0 when the module did not import, 0.05 when it is wrong, else from 0.4 to 1.6: 0.509 at 1x,
    0.630 at 2x, 1.6 from 10x on. The order of operations is part of the definition: it reproduces
    the rewards of recorded runs to the last bit.
    """
    if not score.compiled:
        return 0.0
    if not score.correct:
        return WRONG_REWARD
    clipped = min(max(score.speedup, SLOWEST), FASTEST)
    return CORRECT_REWARD + (TOP_REWARD - CORRECT_REWARD) * (clipped - SLOWEST) / (FASTEST - SLOWEST)
