"""Orders of an evaluator to its candidate process; the answers are JSON objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from adaexplore.core.wire import DtypeName, Tf32Policy
from online_judge.protocol.shared_tensors import Parcel

ForwardMode = Literal["plain", "repeated", "skipping", "profiled"]


@dataclass(frozen=True)
class Load:
    """Import the candidate."""

    source: bytes
    tf32: Tf32Policy
    build_dir: str | None = None  # where CUDA extensions are built; None: the process's own folder


@dataclass(frozen=True)
class Construct:
    """Build ``ModelNew``; the weights, a flat dict, come in shared memory."""

    load: bool  # whether to copy the weights into the module where every name and shape is the same
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
    """Call the model and copy its outputs into the second shared memory, leaf by leaf.

    Modes: ``repeated`` calls twice, gives the second outputs and reports which kernels of its own the
    candidate launches; ``skipping`` leaves those launches out; ``profiled`` reports the kernels' times.
    """

    inputs: Parcel
    outputs: Parcel
    seed: int
    mode: ForwardMode = "plain"


@dataclass(frozen=True)
class Observe:
    """Report what the candidate changed in its process."""


@dataclass(frozen=True)
class Prepare:
    """Map what timing needs and warm up."""

    inputs: Parcel  # a list of argument lists, one a call of a block
    outputs: Parcel  # a list of output lists, one a call of a block
    seed: int  # set before each block; before each call where ``reseed``
    reseed: bool  # whether outputs depend on the random state
    least_s: float  # seconds of warm-up
    cores: tuple[int, ...] = ()  # of the CPU to run on until the next :class:`Observe`; empty for any


BlockKind = Literal["marked", "plain", "graph"]


@dataclass(frozen=True)
class Block:
    """Call with the first ``calls`` argument lists in turn.

    The candidate answers ``{"ready": bool}`` when all is prepared, ``DONE`` to ``GO`` when the block is done
    on the device, then its times. ``marked`` calls are timed one by one after ``flushes`` L2 flushes each;
    ``plain`` ones are not; a ``graph`` is captured the first time, and replayed.
    """

    calls: int
    flushes: int = 0
    kind: BlockKind = "marked"


@dataclass(frozen=True)
class Inspect:
    """Report where a call spends its time and what its kernels occupy."""

    inputs: Parcel  # an argument list for all calls
    seed: int  # set before each call


@dataclass(frozen=True)
class Equip:
    """Get ready to compare configurations of one candidate; takes the place of ``Load``."""

    inputs: Parcel  # an argument list, for all calls until the end, in the first shared memory
    weights: Parcel  # a flat dict, in the second one
    init_inputs: Any
    construct_seed: int  # set before each construction
    call_seed: int  # set before each call
    dtype: DtypeName  # of weights and floating inputs
    tf32: Tf32Policy
    build_dir: str | None = None  # as in ``Load``


@dataclass(frozen=True)
class Enter:
    """Load, construct and call configurations, by number; answer how long a second call took.

    With several threads first calls run side by side for ``limit_s``; what is late then, or long after most
    others, is left out.
    """

    sources: tuple[tuple[int, bytes], ...]
    threads: int
    limit_s: float


@dataclass(frozen=True)
class Rate:
    """Time these configurations in turns, each in ``rounds`` blocks of so many calls."""

    calls: tuple[tuple[int, int], ...]
    rounds: int


@dataclass(frozen=True)
class Choose:
    """Let the configuration of this number be the candidate that ``Forward`` calls."""

    number: int


GO = b"go"
DONE = b"done"
Order = (
    Load | Construct | Reweigh | Forward | Observe | Prepare | Block | Inspect | Equip | Enter | Rate | Choose
)
