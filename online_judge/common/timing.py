"""Timed blocks of calls on a GPU, the same code for reference and candidate.

For each of its calls a block queues L2 flushes, an event, the call, an event, and a copy of the outputs into
their own place. Nothing waits in between, so the launches of a call are hidden behind the work before it
(those of the first call behind flushes, however long the calls are), and each output is copied before the
next call begins. Seeded calls are the exception: each begins when the device is idle.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch

from online_judge.common import modules, trees
from online_judge.common.gradients import ForwardBackward

STEADY_CALLS = 3
MAX_WARMUP_CALLS = 20_000
_SLOW_WARMUP_S = 2.0
_QUIET_S = 1.0
_QUIET_TIMES = 2
_FEW_FLUSHES, _CALIBRATIONS = 5, 10
_QUIET_FLUSHES = 60
_QUIET_RATIO = 1.25
_MOST_MS = 1e9  # tolerance of a claim
_RESOLUTION_MS = 0.0005  # of events, by the CUDA documentation
_FALLBACK_L2_BYTES = 64 * 2**20
_LAUNCH_COVER_MS = 0.1
_LAUNCH_COVER = 2.0
_MOST_COVER_MS = 0.8
_LONGEST_COVER_MS = 2.0
_LAUNCH_COVER_OF_PASSES = 3.0, _LONGEST_COVER_MS  # times the call, and at most this many milliseconds
_FIRST_COVER_MS = 0.3

Call = Callable[..., object]


@dataclass(frozen=True)
class Block:
    """Times of one block in milliseconds."""

    starts: tuple[float, ...]  # of each call, from the first one's start; empty unless marked
    ends: tuple[float, ...]  # likewise
    tail: float  # from the end of the timed stream's work to the end of all work on the device
    middles: tuple[float, ...] = ()  # likewise, of the ends of forward passes; empty without backward passes
    late: int = 0  # marked calls after the first that the device began before all their launches
    seeding: float = 0.0  # CPU time of seeding before a call

    @property
    def forwards(self) -> list[float]:
        return [middle - start for start, middle in zip(self.starts, self.middles, strict=False)]

    @property
    def calls(self) -> list[float]:
        return [max(end - start, _RESOLUTION_MS) for start, end in zip(self.starts, self.ends, strict=True)]

    @property
    def span(self) -> float:
        return self.ends[-1] if self.ends else 0.0

    @property
    def gaps(self) -> list[float]:
        return [start - end for start, end in zip(self.starts[1:], self.ends[:-1], strict=True)]

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_claim(cls, claim: object, calls: int, *, passes: bool = True) -> Block:
        """Read a candidate process's claim about ``calls`` marked calls; raises ValueError for other data.

        Forward passes count only if there are backward ``passes`` too.
        """
        data = claim if isinstance(claim, dict) else {}
        starts, ends, tail = data.get("starts"), data.get("ends"), data.get("tail")
        if not (isinstance(starts, list) and isinstance(ends, list) and len(starts) == len(ends) == calls):
            raise ValueError(f"{calls} calls need as many times")
        middles = data.get("middles", []) if passes else []
        if not (isinstance(middles, list) and len(middles) in (0, calls)):
            raise ValueError("forward passes without times")
        late = data.get("late", 0)
        if not isinstance(late, int) or not 0 <= late <= calls:
            raise ValueError("a number of late calls that cannot be")
        times = [*starts, *ends, *middles, tail]
        if not all(isinstance(ms, float) and 0 <= ms < _MOST_MS for ms in times):
            raise ValueError("times that cannot be")
        block = cls(tuple(starts), tuple(ends), float(times[-1]), tuple(middles), late)
        longer = all(end >= start for start, end in zip(starts, ends, strict=True))
        if not all(0 <= forward <= call for forward, call in zip(block.forwards, block.calls, strict=False)):
            raise ValueError("forward passes that take longer than the calls")
        if calls and (not longer or min(block.gaps, default=0.0) < 0):
            raise ValueError("calls that end before they begin")
        return block


def l2_bytes() -> int:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return int(getattr(properties, "L2_cache_size", 0) or _FALLBACK_L2_BYTES)


def _flushes_lasting(ms: float, flush_ms: float) -> int:
    return max(1, math.ceil(ms / max(flush_ms, 1e-3)))


class BlockRun:
    def __init__(
        self,
        go: Callable[[], Block],
        marks: Sequence[tuple[torch.cuda.Event, torch.cuda.Event]],
        middles: Sequence[torch.cuda.Event] = (),
    ) -> None:
        self._go = go
        self._marks = marks
        self._middles = middles
        self._seen = Block((), (), 0.0)

    def go(self) -> None:
        """Run it; return when the device has finished all of it."""
        self._seen = self._go()

    def times(self) -> Block:
        if not self._marks:
            return self._seen
        first = self._marks[0][0]
        starts = tuple(float(first.elapsed_time(start)) for start, _ in self._marks)
        ends = tuple(float(first.elapsed_time(end)) for _, end in self._marks)
        middles = tuple(float(first.elapsed_time(middle)) for middle in self._middles)
        return replace(self._seen, starts=starts, ends=ends, middles=middles)


class Stopwatch:
    """Times calls on the current GPU; made before a candidate is imported, it holds the real clocks."""

    def __init__(self) -> None:
        torch.cuda.init()
        self._flush = torch.zeros(2 * l2_bytes(), dtype=torch.uint8, device="cuda")
        self._stream = torch.cuda.default_stream()
        self._set_stream = torch._C._cuda_setStream
        self._event = torch._C._CudaEventBase
        self._synchronize = torch._C._cuda_synchronize
        self._zero, self._copy = torch.Tensor.zero_, torch.Tensor.copy_
        self._no_grad = torch.no_grad
        self._now, self._cpu_now = time.perf_counter, time.thread_time
        self._seed = modules.seed_everything
        self._take_apart = trees.take_apart
        self.flush_ms = min(self._time_flush(_FEW_FLUSHES) for _ in range(_CALIBRATIONS))  # others may work
        self._first_flushes = _flushes_lasting(_FIRST_COVER_MS, self.flush_ms)

    def warm_up(self, call: Call, arguments: Sequence[Sequence[object]], least_s: float) -> tuple[int, float]:
        """Call until ``least_s`` have passed and the last calls took about as long as the fastest.

        Returns the number of calls and the wall milliseconds of the fastest.
        """
        self._use_default_stream()
        best = math.inf
        last: list[float] = []
        begin = self._now()
        with self._no_grad():
            for number in range(MAX_WARMUP_CALLS):
                since = self._now()
                call(*arguments[number % len(arguments)])
                self._synchronize()
                now = self._now()
                last = [*last[1 - STEADY_CALLS :], now - since]
                best = min(best, now - since)
                steady = len(last) == STEADY_CALLS and max(last) < 2 * best + 1e-4
                enough = steady or (len(last) == STEADY_CALLS and now - begin >= 5 * least_s)
                if now - begin >= least_s and (enough or now - begin >= _SLOW_WARMUP_S):
                    break
        return number + 1, best * 1e3

    def block(
        self,
        call: Call,
        arguments: Sequence[Sequence[object]],
        places: Sequence[Sequence[torch.Tensor]],
        *,
        flushes: int = 0,
        marked: bool = True,
        seeds: Sequence[int] = (),
    ) -> BlockRun:
        """Prepare a block: call ``i`` gets ``arguments[i]``, its outputs go to the tensors ``places[i]``.

        Before each call come ``flushes`` L2 flushes; it is timed if ``marked``. With ``seeds``, one for each
        call, it is seeded then, and its time includes its launches: no replay can confirm a shorter one.
        """
        self._use_default_stream()
        marks = [(self._new_event(), self._new_event()) for _ in places] if marked else []
        passes = call if marked and isinstance(call, ForwardBackward) else None
        middles = [self._new_event() for _ in marks] if passes is not None else []
        for event in (*(event for pair in marks for event in pair), *middles):
            event.record(self._stream)  # an event is created when it is first recorded
        done = self._new_event()
        self._synchronize()

        def go() -> Block:
            late = 0
            seedings: list[float] = []
            with self._no_grad():
                for number, (given, put) in enumerate(zip(arguments, places, strict=True)):
                    for _ in range(flushes if number else max(flushes, self._first_flushes)):
                        self._zero(self._flush)
                    if seeds:
                        self._synchronize()
                        begin = self._cpu_now()
                        self._seed(seeds[number])
                        seedings.append((self._cpu_now() - begin) * 1e3)
                    if passes is not None:
                        passes.between = partial(middles[number].record, self._stream)
                    if marked:
                        marks[number][0].record(self._stream)
                    result = call(*given)
                    if marked:
                        marks[number][1].record(self._stream)
                        late += number > 0 and marks[number][0].query()
                    self._keep(result, put)
                    del result
            if passes is not None:
                passes.between = None
            done.record(self._stream)
            done.synchronize()
            since = self._now()
            self._synchronize()
            tail = (self._now() - since) * 1e3
            return Block((), (), tail, late=late, seeding=statistics.median(seedings or [0.0]))

        return BlockRun(go, marks, middles)

    def graph(
        self, call: Call, arguments: Sequence[Sequence[object]], places: Sequence[Sequence[torch.Tensor]]
    ) -> BlockRun:
        """Capture the same calls and copies as one CUDA graph; raises RuntimeError if that fails."""
        graph = torch.cuda.CUDAGraph()
        self._synchronize()
        with self._no_grad(), torch.cuda.graph(graph):
            for given, put in zip(arguments, places, strict=True):
                self._keep(call(*given), put)
        self._synchronize()

        def go() -> Block:
            graph.replay()
            self._synchronize()
            return Block((), (), 0.0)

        return BlockRun(go, [])

    def _keep(self, result: object, places: Sequence[torch.Tensor]) -> None:
        """Copy outputs to their places; outputs of another form are skipped, and the evaluator sees that."""
        for place, leaf in zip(places, self._take_apart(result).leaves, strict=False):
            if place.shape == leaf.shape and place.dtype == leaf.dtype:
                self._copy(place, leaf)

    def cover(self, call_ms: float, *, passes: bool = False) -> int:
        """Return how many L2 flushes empty the cache and hide the launches of a call of ``call_ms``.

        ``passes`` is True if it runs forward and backward; another thread launches the backward pass.
        """
        share, most_ms = _LAUNCH_COVER_OF_PASSES if passes else (_LAUNCH_COVER, _MOST_COVER_MS)
        cover_ms = max(_LAUNCH_COVER_MS, min(share * call_ms, most_ms))
        return _flushes_lasting(cover_ms, self.flush_ms)

    def longer_cover(self, flushes: int) -> int:
        """Return how many L2 flushes to try if so many did not hide the launches; no fewer."""
        return max(flushes, min(2 * flushes, _flushes_lasting(_LONGEST_COVER_MS, self.flush_ms)))

    def flush(self) -> None:
        """Empty the L2 cache; return when that is done."""
        self._zero(self._flush)
        self._synchronize()

    def wait_for_quiet(self) -> bool:
        """Wait, a second at most, until nobody else uses the GPU; return False if somebody still does.

        Alone, flushes take as long as the fastest ones: other processes' work shares the GPU's time.
        """
        deadline = self._now() + _QUIET_S
        quiet = 0
        while quiet < _QUIET_TIMES and self._now() < deadline:
            flush_ms = self._time_flush(_QUIET_FLUSHES)
            quiet = quiet + 1 if flush_ms < _QUIET_RATIO * self.flush_ms else 0
            self.flush_ms = min(self.flush_ms, flush_ms)
        return quiet == _QUIET_TIMES

    def _time_flush(self, count: int = 20) -> float:
        """Return the milliseconds of one flush among ``count``, without the first ones."""
        begin, end = self._new_event(), self._new_event()
        for _ in range(5):
            self._zero(self._flush)
        begin.record(self._stream)
        for _ in range(count):
            self._zero(self._flush)
        end.record(self._stream)
        self._synchronize()
        return float(begin.elapsed_time(end)) / count

    def _use_default_stream(self) -> None:
        """Undo a candidate's ``set_stream``."""
        stream = self._stream
        self._set_stream(
            stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
        )

    def _new_event(self) -> torch.cuda.Event:
        return self._event(enable_timing=True, blocking=False, interprocess=False)
