"""Measure where a candidate's calls spend their time, and which resources its kernels use."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity
from torch.profiler import profile as profiled

from online_judge.candidate.launches import LaunchMeter
from online_judge.checks.facts.kernels import MAX_LISTED, MAX_NAME, KernelShare, KernelTime, plain_name
from online_judge.common.timing import Stopwatch
from online_judge.protocol.orders import Inspected

log = logging.getLogger(__name__)

_PROFILES = 3
_WALL_MS = 50.0
_WALL_CALLS = (3, 50)


def inspect(
    call: Callable[[], object],
    model: Callable[..., object],
    arguments: Sequence[object],
    meter: LaunchMeter,
    stopwatch: Stopwatch,
) -> Inspected:
    """Profile calls: ``call`` calls ``model`` with ``arguments`` and waits; it has run before."""
    with meter.counting():
        call()
    resources = meter.resources()
    names = meter.kernel_names()
    shares = []
    for _ in range(_PROFILES):
        stopwatch.flush()
        shares.append(profile_share(call, names))
    begin = time.perf_counter()
    call()
    once_ms = (time.perf_counter() - begin) * 1e3
    least, most = _WALL_CALLS
    count = max(least, min(int(_WALL_MS / max(once_ms, 1e-3)), most))
    run = stopwatch.block(model, [arguments] * count, [()] * count, marked=False)
    walls_ms = []
    for _ in range(_PROFILES):  # a busy host makes a block longer, never shorter
        begin = time.perf_counter()
        run.go()
        walls_ms.append((time.perf_counter() - begin) * 1e3 / count)
    return {
        "shares": [share.to_json() for share in shares if share is not None],
        "resources": {name: found.to_json() for name, found in resources.items()},
        "wall_ms": min(walls_ms),
    }


def profile_share(call: Callable[[], object], own_names: Collection[str]) -> KernelShare | None:
    """Profile one call; make an earlier call first, so that nothing is compiled or tuned in it.

    ``own_names`` are the candidate's kernels, see :meth:`LaunchMeter.kernel_names`. None if CUPTI does not
    work or saw nothing.
    """
    if not torch.cuda.is_available():
        return None
    try:
        with profiled(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            call()
            torch.cuda.synchronize()
        events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    except RuntimeError as error:  # a call that itself fails will fail again elsewhere
        log.warning("the profiler does not work here: %s", error)
        return None
    runs = [(e.name, e.time_range.elapsed_us() / 1000.0, e.device_resource_id) for e in events]
    return summarise(runs, own_names)


def summarise(runs: Collection[tuple[str, float, int]], own_names: Collection[str]) -> KernelShare | None:
    """Return the share from single runs: kernel name, milliseconds, stream."""
    times: dict[str, list[float]] = defaultdict(list)
    for name, ms, _ in runs:
        times[name].append(ms)
    total = sum(map(sum, times.values()))
    if total <= 0:
        return None
    known = set(own_names)
    own = sum(sum(ms) for name, ms in times.items() if {name, plain_name(name)} & known)
    kernels = [KernelTime(name[:MAX_NAME], sum(ms), len(ms)) for name, ms in times.items()]
    return KernelShare(
        own=own / total,
        total_ms=total,
        streams=len({stream for _, _, stream in runs}),
        kernels=tuple(sorted(kernels, key=lambda kernel: -kernel.ms)[:MAX_LISTED]),
    )
