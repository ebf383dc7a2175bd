"""The two random choices of pools, stable for every input."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence


def truncated_geometric(rng: random.Random, p: float, upper: int) -> int:
    """A k of 0 .. upper with P(k) proportional to (1 - p)^k; takes one draw."""
    return rng.choices(range(upper + 1), weights=[(1 - p) ** k for k in range(upper + 1)])[0]


def softmax_order(rng: random.Random, values: Sequence[float], temperature: float) -> list[int]:
    """The indices of ``values`` in the order in which softmax sampling without replacement draws them.

    Each draw takes one of the remaining indices with probability proportional to
    exp(value / temperature). Done by the Gumbel trick, whose order has exactly this distribution:
    logarithms of weights never underflow, so one value that dwarfs the rest leaves them a defined
    order. Takes one draw per value, in the order of ``values``.
    """
    keys = [value / temperature - math.log(max(rng.expovariate(1.0), sys.float_info.min)) for value in values]
    return sorted(range(len(keys)), key=lambda index: keys[index], reverse=True)
