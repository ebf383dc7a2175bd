"""Hold the configurations of one candidate side by side in one process."""

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
from typing import Any, TypeVar

import torch

from adaexplore.core.dialects import arguments
from adaexplore.core.judging.status import Stage, Status
from online_judge.candidate import classification
from online_judge.candidate.loading import MODULE
from online_judge.checks.facts.findings import Failure
from online_judge.common import gradients, modules
from online_judge.common.timing import Stopwatch
from online_judge.protocol.orders import Entered, Equip, Rated
from online_judge.protocol.shared_tensors import MappedTensors

Result = TypeVar("Result")

_MAX_REASON = 200
_SHORT_MS = 1.0
_SHORT_PASSES_MS = 2.0
LATE = "its kernels were not compiled in time"
SLOW = "the time was up before it was constructed"
_CONSTRUCT_SHARE = 0.5  # share of the time for entering
_LOOK_S = 0.05
_MOST = 0.75
_PATIENCE = 2.0
_LEAST_S = 2.0


class ContextLost(Exception):
    """A configuration broke the process's GPU context, so no configuration can go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class _Configuration:
    """A model with one configuration, and its buffers as constructed; all models share the weights."""

    model: Callable[..., object]
    buffers: dict[str, torch.Tensor]
    wall_ms: float = math.inf  # its second call, by the host's clock


class ConfigSweep:
    """Holds the configurations with their shared inputs and weights; its answers are claims.

    :meth:`enter` and :meth:`rate` raise ContextLost.
    """

    def __init__(self, folder: Path, order: Equip, fds: list[int], clock: Stopwatch, *, cuda: bool) -> None:
        self._folder = folder
        self._order = order
        self._clock = clock
        self._cuda = cuda
        self._arguments: list[object] = MappedTensors(order.inputs, fds[:1]).tree()
        dtype = modules.DTYPES[order.dtype]
        given: dict[str, torch.Tensor] = MappedTensors(order.weights, fds[1:]).tree()
        self._weights = {name: modules.cast_floating(value, dtype) for name, value in given.items()}
        self._configurations: dict[int, _Configuration] = {}

    def enter(self, sources: Sequence[tuple[int, bytes]], threads: int, limit_s: float) -> Entered:
        """Load, construct and call configurations by number; time a second call of each."""
        refused: dict[int, str] = {}
        fresh: dict[int, _Configuration] = {}
        begin = time.thread_time()  # this process may be stopped in between
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
        for number, configuration in fresh.items():
            if number in late:
                refused[number] = LATE
                continue
            wall_ms = self._attempt(number, Stage.FORWARD, partial(self._second_call, configuration))
            if isinstance(wall_ms, str):
                refused[number] = wall_ms
            else:
                configuration.wall_ms = wall_ms
                self._configurations[number] = configuration
                ready.append((number, wall_ms))
        if self._cuda:
            torch.cuda.empty_cache()
        return {"ready": ready, "refused": list(refused.items())}

    def rate(self, calls: Sequence[tuple[int, int]], rounds: int) -> Rated:
        """Time calls of each in turns; return median milliseconds, None for a failing one."""
        samples: dict[int, list[float]] = {number: [] for number, _ in calls}
        for _ in range(rounds):
            for number, count in calls:
                if (configuration := self._configurations.get(number)) is None:
                    continue
                taken = self._attempt(number, Stage.TIMING, partial(self._block, configuration, count))
                if isinstance(taken, str):
                    del self._configurations[number]
                else:
                    samples[number] += taken
        timed = {
            number: taken for number, taken in samples.items() if taken and number in self._configurations
        }
        return {"ms": [(each, statistics.median(timed[each]) if each in timed else None) for each in samples]}

    def chosen(self, number: int) -> Callable[..., object]:
        configuration = self._configurations[number]
        modules.restore_buffers(configuration.model, configuration.buffers)
        return configuration.model

    def _run(self, configuration: _Configuration) -> arguments.Call:
        return self.calling(configuration.model)

    def _call(self, configuration: _Configuration) -> None:
        modules.seed_everything(self._order.call_seed)
        with torch.no_grad():
            self._run(configuration)(*self._arguments)
        if self._cuda:
            torch.cuda.synchronize()

    def _compile_all(self, fresh: Mapping[int, _Configuration], threads: int, limit_s: float) -> set[int]:
        """Make first calls side by side, because the compiler mostly runs in its own process.

        Return those that are not done after ``limit_s``, or in twice the time in which :data:`_MOST` were
        done; their threads go on until this process ends.
        """
        pool = ThreadPoolExecutor(threads)
        waiting = {
            pool.submit(self._compile, configuration): number for number, configuration in fresh.items()
        }
        enough = math.floor((1 - _MOST) * len(waiting))
        spent_s = 0.0
        while waiting and spent_s < limit_s:
            begin = time.perf_counter()
            done, _ = wait(waiting, timeout=_LOOK_S)
            spent_s += min(time.perf_counter() - begin, 2 * _LOOK_S)  # it may have been stopped
            for future in done:
                del waiting[future]
            if waiting and len(waiting) <= enough:
                limit_s = min(limit_s, max(_PATIENCE * spent_s, _LEAST_S))
                enough = -1
        pool.shutdown(wait=False, cancel_futures=True)
        return set(waiting.values())

    def _compile(self, configuration: _Configuration) -> None:
        """Call once to compile kernels; a failure shows in the next call, which runs alone."""
        with contextlib.suppress(Exception, SystemExit), torch.no_grad():
            self._run(configuration)(*self._arguments)

    def _second_call(self, configuration: _Configuration) -> float:
        self._call(configuration)
        begin = time.perf_counter()
        self._call(configuration)
        return (time.perf_counter() - begin) * 1e3

    def _block(self, configuration: _Configuration, count: int) -> list[float]:
        modules.seed_everything(self._order.call_seed)
        call = self._run(configuration)
        wall_ms, passes = configuration.wall_ms, isinstance(call, gradients.ForwardBackward)
        short = wall_ms < (_SHORT_PASSES_MS if passes else _SHORT_MS)
        flushes = self._clock.cover(wall_ms, passes=passes) if short else 1
        run = self._clock.block(call, [self._arguments] * count, [()] * count, flushes=flushes)
        run.go()
        return run.times().calls

    def _construct(self, number: int, source: bytes) -> _Configuration:
        file = self._file(number)
        file.write_bytes(source)
        module = modules.load_file(file, MODULE)
        model: Any = None
        shares = False
        if self._cuda:  # random weights, unused here, are drawn fast there
            with contextlib.suppress(Exception), torch.device("cuda"):
                model = self._made(module)
                shares = self._shares_weights(model)
        if not shares:
            model = None  # may hold much memory
            model = self._made(module)
            self._shares_weights(model)
        if isinstance(model, torch.nn.Module) and self._cuda:
            model = model.cuda()
        return _Configuration(model, modules.buffers_of(model))

    def calling(self, model: Callable[..., object]) -> Callable[..., Any]:
        """Return the call of a configuration's model that takes the shared inputs."""
        return gradients.calling(model, self._order.direction, self._order.names, candidate=True)

    def _made(self, module: ModuleType) -> Any:
        modules.seed_everything(self._order.construct_seed)
        made = arguments.construct(module.ModelNew, self._order.init_inputs)
        return modules.candidate_in_precision(made, self._order.dtype)

    def _shares_weights(self, model: object) -> bool:
        """Let a model share the memory of the reference's weights; return False if names or shapes differ."""
        given = self._weights
        if not isinstance(model, torch.nn.Module) or not same_form(held := model.state_dict(), given):
            return False
        parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        own = {name: value.to(held[name].dtype, copy=name not in parameters) for name, value in given.items()}
        model.load_state_dict(own, assign=True)
        return True

    def _attempt(self, number: int, stage: Stage, work: Callable[[], Result]) -> Result | str:
        """Return the result, or in one line why a configuration failed."""
        try:
            return work()
        except (Exception, SystemExit) as error:
            failure = classification.describe(error, stage, str(self._file(number)), cuda=self._cuda)
            if failure.status is Status.ILLEGAL_ACCESS:
                raise ContextLost(failure) from error
        lines = failure.message.strip().splitlines() or [""]
        reason = lines[-1 if failure.status is Status.COMPILE else 0].strip()
        return f"{failure.name.rpartition('.')[2]}: {reason}"[:_MAX_REASON]

    def _file(self, number: int) -> Path:
        return self._folder / f"candidate_{number}.py"


def same_form(own: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> bool:
    return own.keys() == given.keys() and all(own[name].shape == given[name].shape for name in own)
