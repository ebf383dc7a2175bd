"""Let autotuned Triton kernels choose a configuration sooner."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from triton.backends.nvidia.driver import CudaDriver
from triton.runtime._async_compile import AsyncCompileMode
from triton.runtime.autotuner import Autotuner, Config
from triton.testing import do_bench

from online_judge.cpu.patching import Patches

_MOST_THREADS = 16
_WARMUP_MS, _TIMED_MS = 5, 30
"""For one configuration; Triton's own numbers are 25 and 100."""


@contextlib.contextmanager
def quick_autotuning() -> Iterator[None]:
    """Have autotuners, within the block, compile all configurations before the first is timed, and time less.

    A configuration that does not compile raises again when it is timed. An autotuner that names its own
    benchmark or times keeps them.
    """
    original = Autotuner.prune_configs

    def prune_configs(tuner: Autotuner, kwargs: dict[str, object]) -> list[Config]:
        configs: list[Config] = original(tuner, kwargs)
        _compile(tuner, configs, kwargs)
        return configs

    with Patches() as patches:
        patches.set(Autotuner, "prune_configs", prune_configs)
        patches.set(CudaDriver, "get_benchmarker", lambda driver: _benchmark)
        yield


def _benchmark(
    call: Callable[[], object], *how: object, quantiles: Sequence[float] | None = None, **more: object
) -> object:
    """Return the milliseconds of the fastest call for each quantile: other evaluations slow some calls.

    Who asks in another way than an autotuner gets Triton's own benchmark.
    """
    if how or more or quantiles is None:
        return do_bench(call, *how, quantiles=quantiles, **more)
    times: list[float] = do_bench(call, warmup=_WARMUP_MS, rep=_TIMED_MS, return_mode="all")
    return [min(times)] * len(quantiles)


def _compile(tuner: Autotuner, configs: Sequence[Config], kwargs: dict[str, object]) -> None:
    """Compile the kernel with each configuration for the arguments of the present call."""
    threads = min(len(configs), len(os.sched_getaffinity(0)), _MOST_THREADS)
    if threads < 2:
        return
    mode = partial(AsyncCompileMode, ignore_errors=True)
    with ThreadPoolExecutor(threads) as pool, contextlib.suppress(Exception), mode(pool):
        for config in configs:
            with contextlib.suppress(Exception):
                launch = kwargs | config.all_kwargs() | {"warmup": True}
                tuner.fn.run(*tuner.nargs.values(), **launch)
