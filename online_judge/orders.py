"""What a referee asks of its player; the answers are JSON objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from adaexplore.core.wire import DtypeName, Tf32Policy
from online_judge.evaluation.arenas import Parcel

ForwardMode = Literal["plain", "counted", "repeated", "ghost", "profiled"]


@dataclass(frozen=True)
class Load:
    """Import the candidate.

    Attributes:
        source: its text.
        tf32: precision policy.
        build_dir: where CUDA extensions are built; None is the player's own folder.
    """

    source: bytes
    tf32: Tf32Policy
    build_dir: str | None = None


@dataclass(frozen=True)
class Construct:
    """Build ``ModelNew``; the weights, a flat dict, come in one arena.

    With ``load`` they are copied into the module where every name and shape is the same.
    """

    load: bool
    init_inputs: Any
    weights: Parcel
    seed: int
    dtype: DtypeName


@dataclass(frozen=True)
class Reweigh:
    """Copy other weights into the module, in place."""

    weights: Parcel


@dataclass(frozen=True)
class Forward:
    """Call the model and copy its outputs into the second arena, leaf by leaf.

    Modes: ``counted`` tells which kernels of its own the candidate launches; ``repeated`` calls twice and
    gives the second outputs; ``ghost`` leaves those launches out; ``profiled`` tells the kernels' times.
    """

    inputs: Parcel
    outputs: Parcel
    seed: int
    mode: ForwardMode = "plain"


@dataclass(frozen=True)
class Observe:
    """Tell what the candidate changed in its process."""


@dataclass(frozen=True)
class Prepare:
    """Map what timing needs and warm up.

    Attributes:
        inputs: a list of argument lists, one a call of a block.
        outputs: a list of output lists, one a call of a block.
        seed: set before each block; before each call where ``reseed``.
        reseed: whether outputs depend on the random state.
        least_s: seconds of warm-up.
    """

    inputs: Parcel
    outputs: Parcel
    seed: int
    reseed: bool
    least_s: float


BlockKind = Literal["marked", "plain", "graph"]


@dataclass(frozen=True)
class Block:
    """Call with the first ``calls`` argument lists, one after another, in three steps.

    The player answers ``{"ready": bool}`` when all is prepared; to ``GO`` it answers with ``DONE`` when the
    block is done on the device; then come its times. ``marked`` calls are timed one by one, with ``flushes``
    L2 flushes before each; ``plain`` ones are not; a ``graph`` is captured the first time, and replayed.
    """

    calls: int
    flushes: int = 0
    kind: BlockKind = "marked"


GO = b"go"
DONE = b"done"
Order = Load | Construct | Reweigh | Forward | Observe | Prepare | Block
