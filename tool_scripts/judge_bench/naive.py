"""Child program: one evaluation of the released design, its stages timed.

A fresh interpreter imports torch and Triton, loads reference and candidate side by side, compares five
outputs, times the candidate with CUDA events (10 warm-ups, 100 runs, 5 % trimmed at both ends, three
significant digits), then times the reference the same way in the same process. No waits are added.
"""

from __future__ import annotations

import time

_BEGUN_AT = time.time()  # before the heavy imports: they are a stage of their own

import os  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from typing import Any  # noqa: E402

from tool_scripts.judge_bench.children import STARTED_VARIABLE  # noqa: E402

WARMUPS = 10
RUNS = 100
TRIM = 0.05


class Stopwatch:
    """Seconds of each stage, in the order in which they were met."""

    def __init__(self) -> None:
        self.stages_s: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what runs inside; a stage that raises counts too."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.stages_s[name] = self.stages_s.get(name, 0.0) + time.perf_counter() - begin


def main() -> int:
    """Evaluate and write the result down."""
    watch = Stopwatch()
    watch.stages_s["interpreter"] = _BEGUN_AT - float(os.environ.get(STARTED_VARIABLE, _BEGUN_AT))
    with watch.stage("imports"):
        import torch
        import triton  # noqa: F401

        from tool_scripts.judge_bench import loading
    device = loading.asked_device()
    result: dict[str, object]
    try:
        result = evaluate(device, watch, torch)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what the candidate raises is its outcome
        result = {"outcome": "error", "detail": f"{type(error).__name__}: {error}"[:300]}
    loading.write_result({**result, "stages_s": watch.stages_s, "ended_at": time.time()})
    return 0


def evaluate(device: str, watch: Stopwatch, torch: Any) -> dict[str, object]:
    """Judge the candidate of the working folder; raises whatever it raises."""
    from tool_scripts.judge_bench import loading

    with watch.stage("device_start"):
        loading.switch_tf32_off()
        torch.zeros(1, device=device)
    with watch.stage("load"):
        reference, candidate = loading.load("reference"), loading.load("candidate")
    with watch.stage("construct"):
        loading.seed_everything(loading.SEED)
        init_inputs = list(reference.get_init_inputs())
        want_model = loading.construct(reference, "Model", init_inputs, device)
        got_model = loading.construct(candidate, "ModelNew", init_inputs, device)
    for trial in range(loading.TRIALS):
        with watch.stage("first_trial" if trial == 0 else "other_trials"), torch.no_grad():
            values = loading.inputs(reference, loading.SEED + trial, device)
            want = want_model(*values)
            detail = loading.difference(got_model(*values), want)
        if detail:
            return {"outcome": "wrong", "detail": detail}
    values = loading.inputs(reference, loading.SEED, device)
    with watch.stage("time_candidate"):
        candidate_ms = mean_ms(lambda: got_model(*values), device, torch)
    with watch.stage("time_baseline"):
        baseline_ms = mean_ms(lambda: want_model(*values), device, torch)
    return {"outcome": "passed", "speedup": baseline_ms / candidate_ms}


def mean_ms(call: Callable[[], object], device: str, torch: Any) -> float:
    """Trimmed mean of the runs, rounded to three significant digits."""
    for _ in range(WARMUPS):
        call()
    return float(f"{trimmed_mean([_elapsed_ms(call, device, torch) for _ in range(RUNS)]):.3g}")


def trimmed_mean(samples: list[float]) -> float:
    """The mean without the lowest and the highest 5 %."""
    cut = int(len(samples) * TRIM)
    return statistics.fmean(sorted(samples)[cut : len(samples) - cut])


def _elapsed_ms(call: Callable[[], object], device: str, torch: Any) -> float:
    if device == "cpu":
        begin = time.perf_counter()
        call()
        return (time.perf_counter() - begin) * 1e3
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


if __name__ == "__main__":
    sys.exit(main())
