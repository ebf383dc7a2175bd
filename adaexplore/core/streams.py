"""Named random streams: all randomness of a run comes from one seed.

A stream belongs to a name such as ``("2_63", "search", 7)`` and depends on nothing else, so a
resumed run draws what an uninterrupted one would have drawn, whatever order steps finish in.
"""

from __future__ import annotations

import hashlib
import random


def derive_seed(seed: int, *names: str | int) -> int:
    """A 64-bit seed for the stream ``names`` of the run with ``seed``."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def stream(seed: int, *names: str | int) -> random.Random:
    """The generator of the stream ``names`` of the run with ``seed``."""
    return random.Random(derive_seed(seed, *names))
