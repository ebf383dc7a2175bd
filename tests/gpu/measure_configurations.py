"""Measure the choices of sweeps: ``python -m tests.gpu.measure_configurations --out FILE``.

First all combinations of each kernel are timed by one process. Then the judge of each ``--tree`` gets all
kernels at once, each with a sweep, and what it chose is looked up among these times.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
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
from tests.gpu.tunable_kernels import Case
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.service import Client, request_of, running_judge

_JOB_S = 600


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


def job(judge: Client, case: Case, tune_s: float) -> dict[str, Any]:
    """How a job with a sweep ends, and the seconds that it took on the client's clock."""
    candidate = Candidate("case", "case", case.reference, case.candidate)
    request = request_of(candidate, _JOB_S) | {"dtype_str": case.dtype, "tf32": "off", "tune_s": tune_s}
    body, begin = {"kind": "candidate", "request": request, "force": True}, time.monotonic()
    return judge.finished(body, _JOB_S) | {"client_s": round(time.monotonic() - begin, 2)}


def share_of_best(
    rows: list[tuple[Values, float | None]], answer: dict[str, Any]
) -> tuple[float | None, dict[str, Any]]:
    """Return the best time of all combinations over that of the sweep's choice, and the sweep's report."""
    tuned = (answer.get("verdict") or {}).get("metadata", {}).get("tuned") or {}
    times = [(values, ms) for values, ms in rows if ms is not None]
    chosen_ms = next((ms for values, ms in times if values == tuned.get("values")), None)
    return min(ms for _, ms in times) / chosen_ms if chosen_ms else None, tuned


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tune-s", type=float, default=8.0)
    parser.add_argument("--tables", type=Path, help="times of all combinations of an earlier run")
    parser.add_argument("--tree", action="append", default=[], help="checkout of a judge; several")
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
    for number, tree in enumerate(options.tree or ["."]):
        log = options.out.with_suffix(f".{number}.log")
        with (
            running_judge("cuda", len(options.only), log, Path(tree).resolve()) as url,
            Client(url) as judge,
            ThreadPoolExecutor(len(options.only)) as pool,
        ):
            answers = list(pool.map(lambda case: job(judge, CASES[case], options.tune_s), options.only))
        for case, answer in zip(options.only, answers, strict=True):
            share, tuned = share_of_best(results[case]["table"], answer)
            results[case][tree] = {"share_of_best": share, "answer": answer}
            sys.stdout.write(
                f"{tree}, {case}: {share or 0:.3f} of the best, {tuned.get('tried')} tried, "
                f"{answer['client_s']} s\n"
            )
        options.out.write_text(json.dumps(results))


if __name__ == "__main__":
    main()
