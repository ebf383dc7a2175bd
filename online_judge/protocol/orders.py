"""Orders of an evaluator to its candidate process, each with the JSON object that answers it.

The type of an answer is what an honest process sends. To the evaluator an answer is a claim: it reads fields
with ``get`` and checks each. A process that cannot obey answers ``{"failed": ...}``, see
:meth:`online_judge.checks.facts.findings.Failure.from_claim`, and exits.
"""

from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import torch

from adaexplore.core.dialects.arguments import Arguments
from adaexplore.core.wire import Direction, DtypeName, Tf32Policy
from online_judge.protocol.shared_tensors import Parcel

ForwardMode = Literal["plain", "repeated", "skipping", "profiled"]
Answer = TypeVar("Answer")


class Order(Generic[Answer]):
    """An order that is answered by an ``Answer``."""


class Done(TypedDict):
    pass


@dataclass(frozen=True)
class Load(Order[Done]):
    """Import the candidate."""

    source: bytes
    tf32: Tf32Policy
    default_dtype: torch.dtype = torch.float32  # torch's, as the reference sets it
    build_dir: str | None = None  # where CUDA extensions are built; None: the process's own folder


class Constructed(TypedDict):
    changed: bool  # whether loading the weights changed those that the candidate constructed


@dataclass(frozen=True)
class Construct(Order[Constructed]):
    """Build ``ModelNew``; the weights, a flat dict, come in shared memory."""

    load: bool  # whether to copy the weights into the module if all names and shapes are equal
    init_inputs: Arguments | None  # None: the problem's ``Model`` is a function; ``ModelNew`` may be one too
    weights: Parcel
    seed: int
    dtype: DtypeName
    direction: Direction = "forward"  # for later calls
    names: tuple[str, ...] = ()  # of the last inputs of later calls, which are keyword arguments


class Reweighed(TypedDict):
    loaded: bool  # False where the module has no place for them
    shapes: NotRequired[list[list[int]]]  # of its own weights then


@dataclass(frozen=True)
class Reweigh(Order[Reweighed]):
    """Copy other weights into the module, in place."""

    weights: Parcel


class Seen(TypedDict):
    launches: NotRequired[dict[str, Any]]  # JSON form of ``kernels.Launches``; if ``repeated``
    aliases: NotRequired[bool]  # whether an output shares memory with an input; if ``repeated``
    reused: NotRequired[bool]  # whether both calls returned the same memory; if ``repeated``
    share: NotRequired[dict[str, Any] | None]  # JSON form of ``kernels.KernelShare``; if ``profiled``


class Forwarded(Seen):
    structure: Any  # see :meth:`online_judge.common.trees.Tree.signature`
    leaves: list[list[Any]]  # of each output: shape, dtype, kind of device, strides


@dataclass(frozen=True)
class Forward(Order[Forwarded]):
    """Call the model and copy its outputs into the second shared memory, leaf by leaf.

    Modes: ``repeated`` calls twice, returns the second outputs and reports launches of the candidate's own
        kernels; ``skipping`` skips those launches; ``profiled`` reports the kernels' times.
    """

    inputs: Parcel
    outputs: Parcel
    seed: int
    mode: ForwardMode = "plain"


class Changes(TypedDict):
    patched: list[str]
    global_flags: list[str]
    background: list[str]


@dataclass(frozen=True)
class Observe(Order[Changes]):
    """Report the candidate's changes in its process."""


class Prepared(TypedDict):
    calls: int  # of the warm-up
    best_ms: float  # wall time of the fastest one


@dataclass(frozen=True)
class Prepare(Order[Prepared]):
    """Map the memory for the timing and warm up."""

    inputs: Parcel  # a list of argument lists, one a call of a block
    outputs: Parcel  # a list of output lists, one a call of a block
    seed: int  # set before each block
    least_s: float  # seconds of warm-up
    cores: tuple[int, ...] = ()  # of the CPU to run on until the next :class:`Observe`; empty for any


BlockKind = Literal["marked", "plain", "graph"]


class BlockReady(TypedDict):
    ready: bool
    why: NotRequired[str]  # it is not


@dataclass(frozen=True)
class Block(Order[BlockReady]):
    """Call with the first ``calls`` argument lists in turn.

    The candidate answers when it is prepared, and after ``GO`` sends ``DONE`` when the block is done on the
    device, then its times, the JSON form of :class:`online_judge.common.timing.Block`. ``marked`` calls are
    timed one by one after ``flushes`` L2 flushes each; ``plain`` ones are not; a ``graph`` is captured the
    first time, and replayed. With a ``seed`` call ``i`` is seeded with ``seed + i``.
    """

    calls: int
    flushes: int = 0
    kind: BlockKind = "marked"
    seed: int | None = None


class Inspected(TypedDict):
    shares: list[dict[str, Any]]  # JSON forms of ``kernels.KernelShare``, of three calls with a cold cache
    resources: dict[str, dict[str, Any]]  # by kernel, JSON forms of ``kernels.Resources``
    wall_ms: float  # of a call in a row: the shortest of three


@dataclass(frozen=True)
class Inspect(Order[Inspected]):
    """Report where a call spends its time and the resources of its kernels."""

    inputs: Parcel  # an argument list for all calls
    seed: int  # set before each call


@dataclass(frozen=True)
class Equip(Order[Done]):
    """Prepare to compare configurations of one candidate; sent instead of ``Load``."""

    inputs: Parcel  # an argument list, for all calls until the end, in the first shared memory
    weights: Parcel  # a flat dict, in the second one
    init_inputs: Arguments | None  # as in ``Construct``
    construct_seed: int  # set before each construction
    call_seed: int  # set before each call
    dtype: DtypeName  # of weights and floating inputs
    tf32: Tf32Policy
    default_dtype: torch.dtype = torch.float32  # as in ``Load``
    build_dir: str | None = None  # as in ``Load``
    direction: Direction = "forward"  # of all calls
    names: tuple[str, ...] = ()  # as in ``Construct``


class Entered(TypedDict):
    ready: list[tuple[int, float]]  # by number, wall milliseconds of a second call
    refused: list[tuple[int, str]]  # by number, the reason why it did not run


@dataclass(frozen=True)
class Enter(Order[Entered]):
    """Load, construct and call configurations, by number.

    With several threads first calls run side by side for ``limit_s``; later ones, and those long after most
    others, are left out.
    """

    sources: tuple[tuple[int, bytes], ...]
    threads: int
    limit_s: float


class Rated(TypedDict):
    ms: list[tuple[int, float | None]]  # by number, median of a call; None for one that failed


@dataclass(frozen=True)
class Rate(Order[Rated]):
    """Time these configurations in turns, each in ``rounds`` blocks of so many calls."""

    calls: tuple[tuple[int, int], ...]
    rounds: int


@dataclass(frozen=True)
class Choose(Order[Done]):
    """Let the configuration of this number be the candidate that ``Forward`` calls."""

    number: int


GO = b"go"
DONE = b"done"
