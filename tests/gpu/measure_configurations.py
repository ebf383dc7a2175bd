"""Measure the choices of sweeps: ``python -m tests.gpu.measure_configurations --out FILE``.

First all combinations of each kernel are timed by one process. Then a judge gets all kernels at once, each
with a sweep, and what it chose is looked up among these times.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton.errors import TritonError
from triton.testing import do_bench

from adaexplore.core.text.tunables import Values, combination, count, read_tunables, with_values
from tests.gpu.configured_kernels import CASES
from tests.gpu.measure_sweep import job
from tests.gpu.tunable_kernels import Case
from tests.online_judge.live import running_judge


def loaded(source: str, folder: Path, name: str) -> ModuleType:
    """Return ``source`` as a module."""
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(model: Callable[..., object], arguments: list[Any]) -> str:
    """Call once to compile; return why it does not work, or an empty text."""
    try:
        with torch.no_grad():
            model(*arguments)
        torch.cuda.synchronize()
    except (RuntimeError, TritonError) as error:
        return type(error).__name__
    return ""


def table(case: Case, folder: Path) -> list[tuple[Values, float | None]]:
    """Return all combinations with their milliseconds, None for one that does not run."""
    dtype = {"fp32": torch.float32, "fp16": torch.float16}[case.dtype]
    tunables = read_tunables(case.candidate)
    tried = [combination(tunables, number) for number in range(count(tunables) + 1)]
    inputs = [value.cuda().to(dtype) for value in loaded(case.reference, folder, "reference").get_inputs()]
    models = [
        loaded(with_values(case.candidate, values), folder, f"candidate_{number}").ModelNew().cuda().to(dtype)
        for number, values in enumerate(tried)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reasons = list(pool.map(lambda model: call(model, inputs), models))
    rows: list[tuple[Values, float | None]] = []
    with torch.no_grad():
        for values, model, reason in zip(tried, models, reasons, strict=True):
            ms = None
            if not reason:
                ms = do_bench(lambda model=model: model(*inputs), warmup=5, rep=40, return_mode="median")
            rows.append((values, ms))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tune-s", type=float, default=8.0)
    parser.add_argument("--tables", type=Path, help="times of all combinations of an earlier run")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for case in options.only:
            if options.tables:
                rows = json.loads(options.tables.read_text())[case]["table"]
            else:
                folder = Path(name) / case
                folder.mkdir()
                rows = table(CASES[case], folder)
            results[case] = {"table": rows}
            options.out.write_text(json.dumps(results))
    torch.cuda.empty_cache()
    environment = {"JUDGE_DEVICE": "cuda", "MAX_CONCURRENT_EVALS": "8", "LOG_FORMAT": "json"}
    with (
        tempfile.TemporaryDirectory() as name,
        options.out.with_suffix(".log").open("wb") as log,
        running_judge(Path(name), log=log, **environment) as judge,
        ThreadPoolExecutor(len(options.only)) as pool,
    ):
        answers = pool.map(lambda case: job(judge, CASES[case], tune_s=options.tune_s), options.only)
        for case, answer in zip(options.only, answers, strict=True):
            found = results[case]
            found["answer"] = answer
            tuned = (answer["verdict"] or {}).get("metadata", {}).get("tuned", {})
            times = [(values, ms) for values, ms in found["table"] if ms is not None]
            best_ms = min(ms for _, ms in times)
            chosen_ms = next((ms for values, ms in times if values == tuned.get("values")), None)
            found["share_of_best"] = best_ms / chosen_ms if chosen_ms else None
            options.out.write_text(json.dumps(results))
            sys.stdout.write(
                f"{case}: {found['share_of_best'] or 0:.3f} of the best of {len(times)}, "
                f"{tuned.get('tried')} tried, {answer['client_s']} s\n"
            )


if __name__ == "__main__":
    main()
