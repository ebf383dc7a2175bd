"""Named random streams: all randomness of a run comes from one seed.

A stream depends only on the seed and a name such as ``("2_63", "search", 7)``. So a resumed run draws the
same numbers as an uninterrupted one, in whatever order steps finish.
"""

import hashlib
import random


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a 64-bit seed for the stream ``names`` of the run with ``seed``."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def stream(seed: int, *names: str | int) -> random.Random:
    """Return the generator of the stream ``names`` of the run with ``seed``."""
    return random.Random(derive_seed(seed, *names))
