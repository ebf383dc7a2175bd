"""Setup of a timing: shared inputs with fresh contents, places for outputs, the reference's blocks."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch

from online_judge.common import modules
from online_judge.common.timing import Stopwatch, l2_bytes
from online_judge.common.trees import Slot
from online_judge.evaluator import costs
from online_judge.evaluator.reference import Reference, blaming
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.input_pool import InputPool, repeated, rows
from online_judge.protocol.shared_tensors import Parcel, Place, SharedTensors, lay_out

BLOCK_MS = 25.0
MAX_CALLS = 128
WARMUP_S = 0.03
SLOW_MS = 200.0
ALONE_ROUNDS = 5
_NO_COVER_MS = 0.2
_COPIES = 16
_SHARE_OF_MEMORY = 0.3
_MOST_BYTES = 16 * 2**30

Call = Callable[..., object]


class TimingSetup:
    """Inputs and outputs for blocks of up to ``count`` calls on the current GPU."""

    def __init__(
        self,
        reference: Reference,
        name: str,
        call: Call,
        stopwatch: Stopwatch,
        expected: Sequence[torch.Tensor],
        rng: random.Random,
        *,
        shared: bool,
    ) -> None:
        """Draw hidden inputs under ``name`` with ``rng``, and allocate outputs of the form of ``expected``.

        ``call`` is the reference as it is to be timed; ``shared`` says whether a candidate process writes
        outputs too, into memory of its own.

        Raises:
            ReferenceFailed: the inputs cannot be drawn.
            DriverError: there is too little memory.
        """
        self.reference = reference
        self._expected = expected
        self.name = name
        self._call = call
        self._stopwatch = stopwatch
        bytes_in = costs.nbytes(costs.leaves_of(reference.inputs(f"{name}:size")))
        places, self.output_bytes = lay_out(expected, contiguous=True)
        free, _ = torch.cuda.mem_get_info()
        space = min(free * _SHARE_OF_MEMORY, _MOST_BYTES)
        self.count = max(1, min(MAX_CALLS, int(space / max(bytes_in + 2 * self.output_bytes, 1))))
        self.outputs: Parcel | None = None
        self._received: SharedTensors | None = None
        self._kept: SharedTensors | None = None
        self.pool = InputPool(reference, name, self.count, rng)
        self.shared_tensors = [self.pool.shared]
        try:
            self._lay_out(places, shared=shared)
        except BaseException:
            self.free()  # nobody else has them yet
            raise

    def _lay_out(self, places: tuple[Place, ...], *, shared: bool) -> None:
        """Allocate outputs of both sides, or of the reference alone."""
        kept = self._kept = SharedTensors(self.count * self.output_bytes, cuda=True)
        if shared:
            self._received = SharedTensors(self.count * self.output_bytes, cuda=True)
            self.shared_tensors.append(self._received)
            self.received_rows = rows(self._received, places, self.count, self.output_bytes)
            shape = [Slot(leaf) for leaf in range(len(places))]
            self.outputs = repeated(self._received, shape, places, self.count, self.output_bytes)
        self.own_rows = rows(kept, places, self.count, self.output_bytes)
        self._own = [
            [kept.view(place.moved(row * self.output_bytes)) for place in places] for row in range(self.count)
        ]

    def warm_up(self) -> tuple[int, float]:
        """Warm the reference up; return how many calls that took, and the fastest one's wall milliseconds."""
        self.reference.begin(self.name)
        with blaming("forward() fails while it is timed"):
            return self._stopwatch.warm_up(self._call, self.pool.sets, WARMUP_S)

    def flushes(self, fastest_ms: float, slowest_ms: float) -> int:
        """Return how many L2 flushes precede each call, to empty the cache and cover launches of short calls.

        Both times are of one call on the wall, launches included.
        """
        if fastest_ms >= _NO_COVER_MS:
            return 1 if self.pool.set_bytes * self.count < 3 * l2_bytes() else 0
        return self._stopwatch.cover(slowest_ms)

    def block_calls(self, call_ms: float, flushes: int) -> int:
        """Return how many calls of that length make a block."""
        each_ms = max(call_ms + flushes * self._stopwatch.flush_ms, 1e-3)
        return max(1, min(int(BLOCK_MS / each_ms), self.count))

    def poison(self, calls: int) -> None:
        """Fill the places that a candidate process is to write in so many calls with NaN."""
        assert self._received is not None
        self._received.fill(0xFF, calls * self.output_bytes)

    def reference_block(self, sets: Sequence[int], flushes: int, *, marked: bool = True) -> Observed:
        """Run the reference on these argument lists; output ``i`` goes to row ``i`` of ``own_rows``."""
        reseed = partial(modules.seed_everything, self.reference.call_seed(self.name))
        self.reference.begin(self.name)
        with blaming("forward() fails while it is timed"):
            run = self._stopwatch.block(
                self._call,
                [self.pool.sets[place] for place in sets],
                self._own[: len(sets)],
                flushes=flushes,
                marked=marked,
                reseed=reseed if self.reference.stochastic else None,
            )
            begin = time.perf_counter()
            run.go()
            wall_ms = (time.perf_counter() - begin) * 1e3
        return Observed(wall_ms, run.times())

    def alone_ms(self) -> float:
        """Return the reference's median GPU milliseconds while nobody else uses the device."""
        _, best_ms = self.warm_up()
        flushes = self.flushes(best_ms, best_ms)
        sets = range(self.block_calls(best_ms, flushes))
        samples: list[float] = []
        for number in range(ALONE_ROUNDS):
            samples += self.reference_block(sets, flushes).block.calls
            if number >= 1 and best_ms > SLOW_MS:
                break
        return statistics.median(samples)

    def copy_ms(self) -> float:
        """Return wall milliseconds of copying the outputs of a call, laid out as the reference's."""
        count = min(self.count, _COPIES)
        pairs = [
            (held[row].view(leaf.shape), _laid_out_as(leaf, own[row]))
            for row in range(count)
            for held, own, leaf in zip(self.received_rows, self.own_rows, self._expected, strict=True)
        ]
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for held, own in pairs:
            held.copy_(own)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / count

    def free(self) -> None:
        """Give the memory back; the candidate process, if there is one, must be gone."""
        for shared in (*self.shared_tensors, self._kept):
            if shared is not None:
                shared.free()
        self.shared_tensors.clear()


def _laid_out_as(leaf: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape of ``leaf``, and with its strides where they fit into ``memory``."""
    last = sum((size - 1) * stride for size, stride in zip(leaf.shape, leaf.stride(), strict=True))
    if not 0 <= last < memory.numel():
        return memory.view(leaf.shape)
    return memory.as_strided(leaf.shape, leaf.stride(), memory.storage_offset())


def clean_ms(
    reference: Reference, call: Call, stopwatch: Stopwatch, expected: Sequence[torch.Tensor]
) -> float:
    """Return the reference's median GPU milliseconds with no candidate around and the device held alone."""
    rng = random.Random(reference.seeds.of("clean"))
    setup = TimingSetup(reference, "clean", call, stopwatch, expected, rng, shared=False)
    try:
        return setup.alone_ms()
    finally:
        setup.free()
