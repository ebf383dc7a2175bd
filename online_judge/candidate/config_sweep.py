"""The candidate process's side of a sweep: configurations of one candidate, side by side in one process."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import torch

from adaexplore.core.verdict import Status
from online_judge.candidate import classification
from online_judge.common import modules
from online_judge.common.timing import BlockRun
from online_judge.protocol.findings import Failure, Stage
from online_judge.protocol.orders import Equip
from online_judge.protocol.shared_tensors import MappedTensors

Result = TypeVar("Result")

_MODULE = "candidate"
_MAX_REASON = 200
_SHORT_MS = 1.0
LATE = "its kernels were not compiled in time"
SLOW = "the time was up before it was constructed"
_CONSTRUCT_SHARE = 0.5
"""Of the time for entering."""
_LOOK_S = 0.05
_MOST = 0.75
_PATIENCE = 2.0
_LEAST_S = 2.0
_LOST = (Status.ILLEGAL_ACCESS,)
"""Failures after which the process's GPU context is of no use to anybody."""


class Clock(Protocol):
    """What times blocks of calls."""

    def block(
        self, call: Any, arguments: Sequence[Any], places: Sequence[Any], *, flushes: int = 0
    ) -> BlockRun:
        """See :class:`online_judge.common.timing.Stopwatch`."""

    def cover(self, call_ms: float) -> int:
        """L2 flushes that hide the launches of a call of that length."""


class ContextLost(Exception):
    """A configuration broke the process for all of them."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class _Entrant:
    """One configuration.

    Attributes:
        model: its module, in the GPU's memory but for the weights, which all share.
        buffers: as they were when it was constructed.
        wall_ms: of its second call, by the host's clock.
    """

    model: Any
    buffers: dict[str, Any]
    wall_ms: float = math.inf


class ConfigSweep:
    """Holds the configurations; nothing here is more than a claim."""

    def __init__(self, folder: Path, order: Equip, fds: list[int], clock: Clock, *, cuda: bool) -> None:
        """Map the inputs and weights that all configurations share."""
        self._folder = folder
        self._order = order
        self._clock = clock
        self._cuda = cuda
        self._arguments: list[Any] = MappedTensors(order.inputs, fds[:1]).tree()
        dtype = modules.DTYPES[order.dtype]
        given: dict[str, Any] = MappedTensors(order.weights, fds[1:]).tree()
        self._weights = {name: modules.cast_floating(value, dtype) for name, value in given.items()}
        self._entrants: dict[int, _Entrant] = {}

    def enter(self, sources: Sequence[tuple[int, bytes]], threads: int, limit_s: float) -> dict[str, Any]:
        """Admit configurations: each is loaded, constructed, called, and called once more against the clock.

        Raises:
            ContextLost: the process is of no use any more.
        """
        refused: dict[int, str] = {}
        fresh: dict[int, _Entrant] = {}
        begin = time.thread_time()  # this process may be stopped meanwhile
        for number, source in sources:
            if fresh and time.thread_time() - begin > _CONSTRUCT_SHARE * limit_s:
                refused[number] = SLOW
                continue
            made = self._attempt(number, Stage.CONSTRUCT, partial(self._construct, number, source))
            if isinstance(made, str):
                refused[number] = made
            else:
                fresh[number] = made
        left_s = limit_s - (time.thread_time() - begin)
        late = self._compile_all(fresh, threads, left_s) if threads > 1 else set()
        ready = []
        for number, entrant in fresh.items():
            if number in late:
                refused[number] = LATE
                continue
            wall_ms = self._attempt(number, Stage.FORWARD, partial(self._second_call, entrant))
            if isinstance(wall_ms, str):
                refused[number] = wall_ms
            else:
                entrant.wall_ms = wall_ms
                self._entrants[number] = entrant
                ready.append([number, wall_ms])
        if self._cuda:
            torch.cuda.empty_cache()
        return {"ready": ready, "refused": [list(item) for item in refused.items()]}

    def rate(self, calls: Sequence[tuple[int, int]], rounds: int) -> dict[str, Any]:
        """Median milliseconds of a call of each, taken in turns; None for one that fails.

        Raises:
            ContextLost: as :meth:`enter`.
        """
        samples: dict[int, list[float]] = {number: [] for number, _ in calls}
        for _ in range(rounds):
            for number, count in calls:
                entrant = self._entrants.get(number)
                if entrant is None:
                    continue
                taken = self._attempt(number, Stage.TIMING, partial(self._block, entrant, count))
                if isinstance(taken, str):
                    del self._entrants[number]
                else:
                    samples[number] += taken
        return {
            "ms": [
                [number, statistics.median(taken) if number in self._entrants and taken else None]
                for number, taken in samples.items()
            ]
        }

    def chosen(self, number: int) -> Any:
        """The model of a configuration, its buffers as constructed."""
        entrant = self._entrants[number]
        modules.restore_buffers(entrant.model, entrant.buffers)
        return entrant.model

    def _call(self, entrant: _Entrant) -> None:
        """One call; returns when the GPU is done."""
        modules.seed_everything(self._order.call_seed)
        with torch.no_grad():
            entrant.model(*self._arguments)
        if self._cuda:
            torch.cuda.synchronize()

    def _compile_all(self, fresh: Mapping[int, _Entrant], threads: int, limit_s: float) -> set[int]:
        """First calls side by side, the compiler being a process of its own for most of its time.

        Returns:
            Those that are not done after ``limit_s``, or when :data:`_MOST` have been done for as long as it
            took them; their threads go on, and end with this process.
        """
        pool = ThreadPoolExecutor(threads)
        waiting = {pool.submit(self._compile, entrant): number for number, entrant in fresh.items()}
        enough = math.floor((1 - _MOST) * len(waiting))
        spent_s = 0.0
        while waiting and spent_s < limit_s:
            begin = time.perf_counter()
            done, _ = wait(waiting, timeout=_LOOK_S)
            spent_s += min(time.perf_counter() - begin, 2 * _LOOK_S)  # this process may have been stopped
            for future in done:
                del waiting[future]
            if waiting and len(waiting) <= enough:
                limit_s = min(limit_s, max(_PATIENCE * spent_s, _LEAST_S))
                enough = -1
        pool.shutdown(wait=False, cancel_futures=True)
        return set(waiting.values())

    def _compile(self, entrant: _Entrant) -> None:
        """A first call, to have kernels compiled; what is wrong with it shows in the next, made alone."""
        with contextlib.suppress(Exception, SystemExit), torch.no_grad():
            entrant.model(*self._arguments)

    def _second_call(self, entrant: _Entrant) -> float:
        """Wall milliseconds of a call after another one."""
        self._call(entrant)
        begin = time.perf_counter()
        self._call(entrant)
        return (time.perf_counter() - begin) * 1e3

    def _block(self, entrant: _Entrant, count: int) -> list[float]:
        modules.seed_everything(self._order.call_seed)
        run = self._clock.block(
            entrant.model,
            [self._arguments] * count,
            [()] * count,
            flushes=self._clock.cover(entrant.wall_ms) if entrant.wall_ms < _SHORT_MS else 1,
        )
        run.go()
        return run.times().calls

    def _construct(self, number: int, source: bytes) -> _Entrant:
        file = self._file(number)
        file.write_bytes(source)
        module = modules.load_file(file, _MODULE)
        model, shares = None, False
        if self._cuda:  # millions of random weights that nobody needs are drawn in no time there
            with contextlib.suppress(Exception), torch.device("cuda"):
                model = self._made(module)
                shares = self._shares_weights(model)
        if not shares:
            model = None  # may hold much memory
            model = self._made(module)
            self._shares_weights(model)
        if isinstance(model, torch.nn.Module) and self._cuda:
            model = model.cuda()
        return _Entrant(model, modules.buffers_of(model))

    def _made(self, module: ModuleType) -> Any:
        modules.seed_everything(self._order.construct_seed)
        model = module.ModelNew(*self._order.init_inputs)
        return model.to(modules.DTYPES[self._order.dtype]) if isinstance(model, torch.nn.Module) else model

    def _shares_weights(self, model: Any) -> bool:
        """Let a model use the reference's weights where they lie; False if names or shapes differ."""
        if not isinstance(model, torch.nn.Module):
            return False
        own = model.state_dict()
        given = self._weights
        if own.keys() != given.keys() or any(own[name].shape != given[name].shape for name in own):
            return False
        parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        model.load_state_dict(
            {name: value if name in parameters else value.clone() for name, value in given.items()},
            assign=True,
        )
        return True

    def _attempt(self, number: int, stage: Stage, work: Callable[[], Result]) -> Result | str:
        """The result, or in one line why a configuration is out."""
        try:
            return work()
        except (Exception, SystemExit) as error:
            failure = classification.describe(error, stage, str(self._file(number)), cuda=self._cuda)
            if failure.status in _LOST:
                raise ContextLost(failure) from error
        lines = failure.message.strip().splitlines() or [""]
        told = lines[-1 if failure.status is Status.COMPILE else 0].strip()
        return f"{failure.name.rpartition('.')[2]}: {told}"[:_MAX_REASON]

    def _file(self, number: int) -> Path:
        return self._folder / f"candidate_{number}.py"
