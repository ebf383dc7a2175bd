"""Timing on a GPU, the same for reference and candidate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

WARMUP_RUNS = 10
WARMUP_S = 0.2
MAX_WARMUP_RUNS = 20_000
TRIM = 0.05
_FALLBACK_L2_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Times:
    """Trimmed statistics in milliseconds, not rounded."""

    mean: float
    median: float
    std: float
    min: float
    max: float
    num_trials: int


def flush_buffer() -> Any:
    """A buffer whose overwriting evicts the L2 cache: twice its size."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    size = getattr(properties, "L2_cache_size", 0) or _FALLBACK_L2_BYTES
    return torch.empty(2 * size, dtype=torch.uint8, device="cuda")


def measure_ms(call: Callable[[], object], trials: int, flush: Any) -> list[float]:
    """Run ``call`` ``trials`` times with a cold L2 cache; GPU milliseconds of each run.

    Warm-up comes first: at least 10 runs and 0.2 s, in which the clocks rise. The flush is queued before
    each run, so the GPU is still busy with it while the host gets the run's launches ready.
    """
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for run in range(MAX_WARMUP_RUNS):
        call()
        torch.cuda.synchronize()
        if run + 1 >= WARMUP_RUNS and time.perf_counter() - begin >= WARMUP_S:
            break
    marks = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(trials)
    ]
    for start, end in marks:
        flush.zero_()
        start.record()
        call()
        end.record()
        end.synchronize()
    return [float(start.elapsed_time(end)) for start, end in marks]


def summarise(samples_ms: Sequence[float]) -> Times:
    """Statistics of the samples without the lowest and the highest 5 %."""
    ordered = sorted(samples_ms)
    cut = int(len(ordered) * TRIM)
    kept = ordered[cut : len(ordered) - cut]
    return Times(
        mean=statistics.fmean(kept),
        median=statistics.median(kept),
        std=statistics.stdev(kept) if len(kept) > 1 else 0.0,
        min=kept[0],
        max=kept[-1],
        num_trials=len(kept),
    )
