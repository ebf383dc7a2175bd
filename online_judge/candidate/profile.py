"""The candidate's side of a profile: calls under the profiler, what the compiler gave kernels, wall time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from online_judge.candidate import kernel_share
from online_judge.candidate.launches import LaunchMeter
from online_judge.common.timing import Stopwatch

_PROFILES = 3
_WALL_MS = 50.0
_WALL_CALLS = (3, 50)


def inspect(
    call: Callable[[], object],
    model: Callable[..., object],
    arguments: Sequence[Any],
    meter: LaunchMeter,
    stopwatch: Stopwatch,
) -> dict[str, Any]:
    """What a candidate's calls show; nothing here is more than a claim.

    Args:
        call: one call, done on the device when it returns; it should have run before.
        model: what it calls.
        arguments: what it is called with.
        meter: made before the candidate was loaded.
        stopwatch: likewise.

    Returns:
        ``shares`` of three calls with a cold cache, ``resources`` by kernel, ``wall_ms`` of a call in a row,
        the least of three.
    """
    with meter.counting():
        call()
    resources = meter.resources()
    names = meter.kernel_names()
    shares = []
    for _ in range(_PROFILES):
        stopwatch.flush()
        shares.append(kernel_share.profile_share(call, names))
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
