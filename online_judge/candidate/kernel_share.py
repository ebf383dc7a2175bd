"""Profile where one call of a candidate spends its GPU time."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from online_judge.protocol.kernels import MAX_LISTED, MAX_NAME, KernelShare, KernelTime, plain_name

log = logging.getLogger(__name__)


def profile_share(call: Callable[[], object], own_names: Collection[str]) -> KernelShare | None:
    """Profile one call; it should have run before, so that nothing is compiled or tuned in it.

    Args:
        call: what to run.
        own_names: the candidate's kernels, see ``LaunchMeter.kernel_names``.

    Returns:
        None where CUPTI does not work or saw nothing.
    """
    if not torch.cuda.is_available():
        return None
    try:
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            call()
            torch.cuda.synchronize()
        events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    except RuntimeError as error:  # a call that fails by itself will fail again where it counts
        log.warning("the profiler does not work here: %s", error)
        return None
    runs = [(e.name, e.time_range.elapsed_us() / 1000.0, e.device_resource_id) for e in events]
    return summarise(runs, own_names)


def summarise(runs: Collection[tuple[str, float, int]], own_names: Collection[str]) -> KernelShare | None:
    """The share from single runs: kernel name, milliseconds, stream."""
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
