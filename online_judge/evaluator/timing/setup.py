"""Set up a timing: inputs that the candidate has never seen, places for outputs, the reference's blocks."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from online_judge.common.gradients import ForwardBackward
from online_judge.common.timing import Stopwatch, l2_bytes
from online_judge.common.trees import Slot, Tree, UnsupportedTree, put_together, take_apart
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import oracles
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, blaming
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.contents import Contents
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.shared_tensors import Parcel, Place, SharedTensors, lay_out

BLOCK_MS = 25.0
MAX_CALLS = 128
WARMUP_S = 0.03
SLOW_MS = 200.0
ALONE_ROUNDS = 3
_LATE = 0.25
"""Share of a block's calls that may be late, and one call more; their median is that of the others."""
_HARDLY_COVERED_MS = 15.0
"""Calls that take longer on the wall are hardly shorter after flushes that hide launches."""
_NO_COVER_MS = 0.2
# for calls with backward passes, whose launches take the host up to a millisecond
_NO_COVER_OF_PASSES_MS = 2.0
_NO_COVER_OF_WAITING_MS = 2.0  # for calls in which the device waits for the host
_COPIES = 16
_SHARE_OF_FREE_MEMORY = 0.3
_SHARE_OF_MEMORY = 0.1  # of all; others need the rest
_LEAST_CALLS = 4  # for which a share of the free memory alone is the limit
_DRAWS = 4
_FAILS = "forward() fails while it is timed"
_OTHER_SHAPES = "get_inputs() gives tensors of other shapes under other seeds"
_OTHER_NUMBERS = "get_inputs() gives other numbers each time, beside tensors that fill the GPU's memory"
_QUICK_DRAW_S = 0.5
_DRAWS_S = 0.1
_FRESH = 1 / 16
"""Share of each floating tensor that :meth:`InputPool.refresh` replaces."""

Call = Callable[..., object]


class InputPool:
    """``count`` argument lists of one structure, for the reference.

    The candidate process has copies of them, see :meth:`share`; whatever it writes there reaches nobody else.
    Their contents come from a few draws of ``get_inputs`` under hidden seeds (:class:`Contents`). A single
    argument list that ``fills`` the memory is drawn anew each time instead, if that is quick: then the memory
    holds no other draws, and :attr:`redraws` is True.
    """

    def __init__(
        self, reference: Reference, name: str, count: int, rng: random.Random, *, fills: bool = False
    ) -> None:
        """Draw inputs named ``name``.

        Raises:
            ReferenceFailed: the inputs cannot be drawn, or differ in form.
            DriverError: there is too little memory.
        """
        self._reference = reference
        self._name = name
        begin = time.perf_counter()
        trees = [self._draw(0)]
        torch.cuda.synchronize()
        quick = time.perf_counter() - begin < _QUICK_DRAW_S
        self.redraws = fills and count == 1 and quick and not reference.writes_inputs
        number_of_draws = 1 if self.redraws else max(2, min(count, _DRAWS))
        trees += [self._draw(number) for number in range(1, number_of_draws)]
        self._last_draw = number_of_draws - 1
        self._places, self.set_bytes = lay_out(trees[0].leaves)
        if any(lay_out(tree.leaves)[0] != self._places for tree in trees):
            raise ReferenceFailed(_OTHER_SHAPES)
        self._shapes, self._all_places = repeated(trees[0].shape, self._places, count, self.set_bytes)
        self._signature = trees[0].signature()
        self._alike = all(tree.signature() == self._signature for tree in trees)
        self._drawn_lists = 0  # so many argument lists are drawn anew each time, beside ``redraws``
        self._contents: Contents | None = None
        self._memory: SharedTensors | None = None
        self._shared: SharedTensors | None = None
        self._shared_rows: list[torch.Tensor] = []
        self.rows: list[torch.Tensor] = []
        self.sets: list[list[object]] = []
        drawn = [self._in_order(tree) for tree in trees]
        del trees
        if self.redraws:
            self._hold(drawn[0])
            return
        # numbers beside the tensors, such as the largest of some lengths, are those of the first draw
        self._contents = Contents(list(zip(*drawn, strict=True)), rng, one_draw=not self._alike)
        self._memory = SharedTensors(count * self.set_bytes, cuda=True)
        self.rows = rows(self._memory, self._places, count, self.set_bytes)
        self.sets = put_together(self._shapes, tuple(self._memory.view(place) for place in self._all_places))
        try:
            self.refresh(whole=True)
        except BaseException:
            self._memory.free()
            raise

    def _hold(self, leaves: Sequence[torch.Tensor]) -> None:
        """Take a draw as the only argument list."""
        self.rows = [leaf[None] for leaf in leaves]
        views = [
            leaf.as_strided(place.shape, place.strides, leaf.storage_offset())
            for leaf, place in zip(leaves, self._places, strict=True)
        ]
        self.sets = put_together(self._shapes, tuple(views))

    def share(self) -> tuple[SharedTensors, Parcel]:
        """Return copies of the argument lists for a candidate process; :meth:`refresh` renews them too.

        Raises:
            DriverError: there is too little memory.
        """
        count = len(self.sets)
        self._shared = SharedTensors(count * self.set_bytes, cuda=True)
        self._shared_rows = rows(self._shared, self._places, count, self.set_bytes)
        self._share_again()
        return self._shared, self._shared.parcel(self._shapes, self._all_places)

    def _share_again(self) -> None:
        if self._shared is None:
            return
        if self._memory is not None:
            self._shared.copy_from(self._memory)
            return
        for row, own in zip(self._shared_rows, self.rows, strict=True):
            row.copy_(own)

    def _draw(self, number: int) -> Tree:
        try:
            return take_apart(self._reference.inputs(f"{self._name}:{number}"))
        except UnsupportedTree as error:
            raise ReferenceFailed(f"get_inputs() gives {error}, which cannot be judged") from error

    def refresh(self, *, whole: bool = False) -> None:
        """Give every argument list contents that it never had before, in part or as a ``whole``."""
        for number in range(self._drawn_lists):
            for row, leaf in zip(self.rows, self._next_draw(), strict=True):
                row[number].copy_(leaf)
        if self.redraws:
            self.rows, self.sets = [], []  # the memory may hold no more than one draw
            self._hold(self._next_draw())
        elif not self._drawn_lists:
            assert self._contents is not None
            self._contents.fill(self.rows, 1.0 if whole else _FRESH)
        self._share_again()
        torch.cuda.synchronize()

    def _next_draw(self) -> list[torch.Tensor]:
        """Return the tensors of another draw, flat, in memory order."""
        self._last_draw += 1
        tree = self._draw(self._last_draw)
        if lay_out(tree.leaves)[0] != self._places:
            raise ReferenceFailed(_OTHER_SHAPES)
        if tree.signature() != self._signature:
            raise ReferenceFailed(_OTHER_NUMBERS)
        return self._in_order(tree)

    def _in_order(self, tree: Tree) -> list[torch.Tensor]:
        return [_in_memory_order(*pair) for pair in zip(tree.leaves, self._places, strict=True)]

    def keep_structure(self) -> None:
        """From now on give every argument list contents with the structure of a draw."""
        if self._contents is not None:
            self._contents.keep_structure()
        self.refresh(whole=True)

    def draw_anew(self) -> int:
        """From now on give each of the first argument lists a draw of its own in each round.

        Returns:
            How many argument lists: as many as are drawn quickly; 0 if draws cannot be used so.
        """
        if self.redraws or not self._alike:
            return 0
        begin = time.perf_counter()
        self._next_draw()
        torch.cuda.synchronize()
        quickly = int(_DRAWS_S / max(time.perf_counter() - begin, 1e-6))
        self._drawn_lists = min(quickly, len(self.sets))
        return self._drawn_lists

    def close(self) -> None:
        """Free the argument lists and draws, but not what is shared."""
        self._contents = self._shared = None
        self.rows, self.sets, self._shared_rows = [], [], []
        if self._memory is not None:
            self._memory.free()

    def copy_of(self, number: int) -> list[object]:
        """Return tensors with the contents of one argument list."""
        return oracles.copied(self.sets[number])

    def put_back(self, copies: Mapping[int, list[object]]) -> None:
        """Write the contents that argument lists had when :meth:`copy_of` was called."""
        for number, copy in copies.items():
            for held, leaf in zip(take_apart(self.sets[number]).leaves, take_apart(copy).leaves, strict=True):
                held.copy_(leaf)

    def is_unchanged(self, number: int) -> bool:
        """Return True if a candidate process's copy of an argument list equals the list, to the bit."""
        return all(
            costs.same_bits(row[number], own[number])
            for row, own in zip(self._shared_rows, self.rows, strict=True)
        )


def rows(shared: SharedTensors, places: tuple[Place, ...], count: int, stride: int) -> list[torch.Tensor]:
    """Return each of ``places``, repeated every ``stride`` bytes, as one tensor ``(count, elements)``."""
    found = []
    for place in places:
        size = place.dtype.itemsize
        row = Place(place.offset, (count, place.nbytes // size), (stride // size, 1), place.dtype)
        found.append(shared.view(row))
    return found


def repeated(
    shape: object, places: tuple[Place, ...], count: int, stride: int
) -> tuple[object, tuple[Place, ...]]:
    """Return shape and places of ``count`` trees of one shape, one every ``stride`` bytes."""
    per = len(places)
    shapes = [
        put_together(shape, tuple(Slot(per * row + leaf) for leaf in range(per))) for row in range(count)
    ]
    return shapes, tuple(place.moved(row * stride) for row in range(count) for place in places)


def _in_memory_order(leaf: torch.Tensor, place: Place) -> torch.Tensor:
    """Return the elements in the memory order of ``place``; a view if the tensor already has that layout."""
    elements = place.nbytes // place.dtype.itemsize
    if leaf.stride() == place.strides and leaf.numel() == elements:
        return torch.as_strided(leaf, (elements,), (1,), leaf.storage_offset())
    laid = torch.empty_strided(place.shape, place.strides, dtype=place.dtype, device="cuda")
    laid.copy_(leaf)
    return torch.as_strided(laid, (elements,), (1,))


class TimingSetup:
    """Inputs and outputs for blocks of up to ``count`` calls on the current GPU.

    ``fastest_ms`` are the wall milliseconds of the reference's fastest call so far; those given are from
    before any candidate.
    """

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
        fastest_ms: float = math.inf,
    ) -> None:
        """Draw hidden inputs under ``name`` with ``rng``, and allocate outputs of the form of ``expected``.

        ``call`` is the reference's timed call; with ``shared`` a candidate process has copies of the inputs
        and a place for its outputs.

        Raises:
            ReferenceFailed: the inputs cannot be drawn.
            DriverError: there is too little memory.
        """
        self.reference = reference
        self.fastest_ms = self._known_ms = fastest_ms
        self._expected = expected
        self.name = name
        self._call = call
        self._eager = reference.call("eager")
        self._eager_ms = reference.fastest_s * 1e3
        self._stopwatch = stopwatch
        _, bytes_in = lay_out(costs.leaves_of(reference.inputs(f"{name}:size")))
        places, self.output_bytes = lay_out(expected, contiguous=True)
        each = max(2 * (bytes_in + self.output_bytes), 1)
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        space = min(free * _SHARE_OF_FREE_MEMORY, max(total * _SHARE_OF_MEMORY, _LEAST_CALLS * each))
        self.count = max(1, min(MAX_CALLS, int(space / each)))
        # inputs and both sides' outputs of two calls, whatever others hold
        fills = 2 * bytes_in + 4 * self.output_bytes > _SHARE_OF_FREE_MEMORY * total
        self.pool = InputPool(reference, name, self.count, rng, fills=fills)
        self.shared_tensors: list[SharedTensors] = []
        self._kept: SharedTensors | None = None
        try:
            if shared:
                sent, self.inputs = self.pool.share()
                self.shared_tensors.append(sent)
                self._received = SharedTensors(self.count * self.output_bytes, cuda=True)
                self.shared_tensors.append(self._received)
            kept = self._kept = SharedTensors(self.count * self.output_bytes, cuda=True)
        except BaseException:
            self.free()  # no other process uses it yet
            raise
        if shared:
            shape = [Slot(leaf) for leaf in range(len(places))]
            self.outputs = self._received.parcel(*repeated(shape, places, self.count, self.output_bytes))
            self.received_rows = rows(self._received, places, self.count, self.output_bytes)
        self.own_rows = rows(kept, places, self.count, self.output_bytes)
        self._own = [
            [kept.view(place.moved(row * self.output_bytes)) for place in places] for row in range(self.count)
        ]

    def warm_up(self) -> tuple[int, float]:
        """Warm the reference up; return the number of calls, and the fastest one's wall milliseconds.

        If it fails on mixed contents, these may lack a structure that it needs: switch to contents that keep
        it.
        """
        try:
            return self._warmed_up()
        except NotEnoughMemory:
            raise
        except ReferenceFailed:
            with blaming(_FAILS):  # its CUDA context may be lost
                self.pool.keep_structure()
        return self._warmed_up()

    def _warmed_up(self) -> tuple[int, float]:
        self.reference.begin(self.name)
        with blaming(_FAILS):
            calls, best_ms = self._stopwatch.warm_up(self._call, self.pool.sets, WARMUP_S)
        self.fastest_ms = min(self.fastest_ms, best_ms)
        return calls, best_ms

    def draw_anew(self) -> bool:
        """From now on draw the inputs of each call; return False if that takes too long."""
        calls = self.pool.draw_anew()
        if calls < min(_LEAST_CALLS, self.count):
            return False
        self.count = calls
        return True

    def wait_for_quiet(self) -> bool:
        """Wait until nobody else uses the GPU, see :meth:`Stopwatch.wait_for_quiet`."""
        return self._stopwatch.wait_for_quiet()

    def flushes(self, call_ms: float, slowest_ms: float) -> int:
        """Return how many L2 flushes precede each call, to empty the cache and hide launches of short calls.

        ``call_ms`` and the reference's fastest call decide whether calls are short. These times and that of
        the slowest one are on the wall, launches included.
        """
        if min(call_ms, self.fastest_ms) >= (_NO_COVER_OF_PASSES_MS if self._has_passes else _NO_COVER_MS):
            return 1 if self.pool.set_bytes * self.count < 3 * l2_bytes() else 0
        return self._cover(slowest_ms)

    def _cover(self, call_ms: float) -> int:
        return self._stopwatch.cover(call_ms, passes=self._has_passes)

    @property
    def _has_passes(self) -> bool:
        return isinstance(self._call, ForwardBackward)

    def flushes_once_seen(self, gpu_ms: float, flushes: int, slowest_ms: float) -> int:
        """Return how many flushes a call needs that took ``gpu_ms`` after ``flushes``; no fewer than these.

        They hid launches, so the call may prove to be short.
        """
        return max(flushes, self.flushes(gpu_ms + flushes * self._stopwatch.flush_ms, slowest_ms))

    def more_flushes(self, flushes: int, slowest_ms: float, *seen: Observed) -> int:
        """Return how many flushes hide the launches of calls that were ``seen`` after so many.

        If too many calls were late, the device waits for the host, and more flushes are needed. Calls of a
        long reference get no more, and those of a random one neither: flushes do not hide their launches.
        """
        late = any(each.block.late > max(1, _LATE * len(each.block.calls)) for each in seen)
        fastest_ms = self.fastest_ms if math.isinf(self._known_ms) else self._known_ms
        if not late or fastest_ms >= _NO_COVER_OF_WAITING_MS or self.reference.stochastic:
            return flushes
        return max(self._cover(slowest_ms), self._stopwatch.longer_cover(flushes))

    def long_cover(self, call_ms: float) -> int:
        """Return how many L2 flushes hide the launches of a call that finds the CPU's caches cold.

        ``call_ms`` is its time on the wall with warm ones.
        """
        return self._stopwatch.cover(call_ms, passes=True)

    def block_calls(self, call_ms: float, flushes: int) -> int:
        each_ms = max(call_ms + flushes * self._stopwatch.flush_ms, 1e-3)
        return max(1, min(int(BLOCK_MS / each_ms), self.count))

    def poison(self, calls: int) -> None:
        """Fill the places for a candidate process's outputs of so many calls with NaN."""
        self._received.fill(0xFF, calls * self.output_bytes)

    def reference_block(
        self, sets: Sequence[int], flushes: int, *, marked: bool = True, seed: int | None = None
    ) -> Observed:
        """Run the reference on these argument lists; output ``i`` goes to row ``i`` of ``own_rows``.

        If it is random, the call on argument list ``i`` has the seed ``seed + i``.
        """
        return self._block(self._call, sets, flushes, marked=marked, seed=seed)

    @property
    def is_eager(self) -> bool:
        """Whether the timed call gives the outputs that are expected; a compiled one rounds differently."""
        return self._call == self._eager

    @property
    def eager_calls(self) -> int:
        """How many calls of the eager reference take about as long as a block; at least one."""
        return max(1, int(BLOCK_MS / max(self._eager_ms, 1e-3)))

    def write_expected(self, sets: Sequence[int], seed: int | None) -> None:
        """Do as :meth:`reference_block`, with the eager reference."""
        seen = self._block(self._eager, sets, 0, marked=False, seed=seed)
        self._eager_ms = min(self._eager_ms, seen.wall_ms / len(sets))

    def _block(
        self, call: Call, sets: Sequence[int], flushes: int, *, marked: bool, seed: int | None
    ) -> Observed:
        first = self.reference.call_seed(self.name) if seed is None else seed
        self.reference.begin(self.name)
        with blaming(_FAILS):
            run = self._stopwatch.block(
                call,
                [self.pool.sets[place] for place in sets],
                self._own[: len(sets)],
                flushes=flushes,
                marked=marked,
                seeds=[first + place for place in sets] if self.reference.stochastic else (),
            )
            begin = time.perf_counter()
            run.go()
            wall_ms = (time.perf_counter() - begin) * 1e3
        return Observed(wall_ms, run.times())

    def clean_ms(self) -> CleanMs:
        """Time the reference while nobody else uses the device, as any timing beside a candidate may time it.

        Whether launches are hidden there depends on the candidate's time too.
        """
        _, best_ms = self.warm_up()
        flushes = self.flushes(best_ms, best_ms)
        gpu_ms = covered_ms = self._median_ms(best_ms, flushes)
        if flushes <= 1 and best_ms < _HARDLY_COVERED_MS:
            covered_ms = self._median_ms(best_ms, self._cover(best_ms))
        return CleanMs(gpu_ms, self.fastest_ms, covered_ms)

    def alone_ms(self, flushes: int) -> float:
        """Return the reference's median GPU milliseconds while nobody else uses the device.

        To be compared with another timing it needs as many ``flushes`` before each call, which hide launches;
        there are more only if the host has become too slow for these.
        """
        _, best_ms = self.warm_up()
        return self._median_ms(best_ms, flushes)

    def _median_ms(self, best_ms: float, flushes: int) -> float:
        """Return the median GPU milliseconds of a few blocks, with more flushes if these are too few."""
        sets = range(self.block_calls(best_ms, flushes))
        samples: list[float] = []
        for number in range(ALONE_ROUNDS):
            seen = self.reference_block(sets, flushes)
            more = self.more_flushes(flushes, best_ms, seen)
            if more > flushes:
                return self._median_ms(best_ms, more)
            samples += seen.block.calls
            if number >= 1 and best_ms > SLOW_MS:
                break
        return statistics.median(samples)

    def copy_ms(self) -> float:
        """Return wall milliseconds to copy the outputs of a call, laid out as the reference's."""
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

    def close(self) -> None:
        """Free what no other process uses, and torch's cache; no more blocks can be run."""
        self.pool.close()
        self.own_rows, self._own = [], []
        if self._kept is not None:
            self._kept.free()
        torch.cuda.empty_cache()

    def free(self) -> None:
        """Free the memory; the candidate process, if any, must be gone."""
        self.close()
        for shared in self.shared_tensors:
            shared.free()
        self.shared_tensors.clear()


def memory_beyond_share(call_bytes: int, total: int) -> float:
    """Return how many bytes a timing may take beyond the share of the memory that every timing may take.

    ``call_bytes`` are those of both sides' inputs and outputs of a call.
    """
    return max(min(_LEAST_CALLS * call_bytes, _SHARE_OF_FREE_MEMORY * total) - _SHARE_OF_MEMORY * total, 0.0)


def _laid_out_as(leaf: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the shape of ``leaf``, with its strides if they fit into ``memory``."""
    last = sum((size - 1) * stride for size, stride in zip(leaf.shape, leaf.stride(), strict=True))
    if not 0 <= last < memory.numel():
        return memory.view(leaf.shape)
    return memory.as_strided(leaf.shape, leaf.stride(), memory.storage_offset())


def without_data(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return tensors of the same shapes, strides and dtypes that need no memory."""
    return [
        torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta") for leaf in leaves
    ]
