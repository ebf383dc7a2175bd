"""Judge all tasks of TritonBench, FlashInfer-Bench or SOL-ExecBench with their own reference, or with zeros.

``python -m tool_scripts.judge_benchmark TBT FOLDER --out FILE.jsonl [--candidate zeros] [--limit-s 1500]``

Each task is a line of the file; the same command continues a stopped run. Without ``--judge`` a judge is
started. At the end a summary goes to standard output: TritonBench's own metrics, and the figures without
kernels that the judge flagged. ``--traces FOLDER`` writes solutions and traces of FlashInfer-Bench.
"""

import argparse
import ast
import contextlib
import logging
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import httpx

from adaexplore.core.dialects import flashinfer
from adaexplore.core.dialects.catalogue import TRITONBENCH, VARIABLES, Benchmark, Source, open_benchmark
from adaexplore.core.errors import JudgeError, TaskError, UsageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import input_text
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.core.judging.flags import REJECT, SUSPECT
from adaexplore.core.metrics import from_metrics, to_metrics
from adaexplore.core.text.syntax import parse
from adaexplore.report.figures import is_plausible
from adaexplore.report.task_result import calls_ran
from tool_scripts import benchmark_files
from tool_scripts.benchmark_files import candidate
from tool_scripts.judge_bench.figure import share
from tool_scripts.judge_bench.plan import until
from tool_scripts.judge_bench.service import running_judge
from tool_scripts.script import script, show

log = logging.getLogger(__name__)

_ROUTES: Mapping[Source, str] = {
    "TBG": "/evaluate_tbg_kernel",
    "TBT": "/evaluate_tbt_kernel",
    "FIT": "/evaluate_fit_kernel",
    "MLSYS": "/evaluate",
}


def judge_all(benchmark: Benchmark, url: str, out: JsonLines, options: argparse.Namespace) -> None:
    """Judge the tasks without a line in ``out``, until all are done or the time is up."""
    done = {line["task"] for line in out.read(dict)}
    token = os.environ.get("ADAEXPLORE_JUDGE_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    limit_s = 2 * options.timeout_s + 60
    with httpx.Client(base_url=url, headers=headers, timeout=limit_s, trust_env=False) as client:

        def judge(name: str) -> None:
            line = _judged(client, benchmark, name, options)
            out.append(line)
            log.info("%s: %s %s", name, line["status"], line["error"] or "")

        todo = [name for name in benchmark.paths if name not in done]
        if until(time.monotonic() + options.limit_s, todo, options.slots, judge):
            log.info("stopped after %.0f s; the same command continues", options.limit_s)


def _judged(
    client: httpx.Client, benchmark: Benchmark, name: str, options: argparse.Namespace
) -> dict[str, Any]:
    start, kind = time.monotonic(), options.candidate
    line: dict[str, Any] = {"task": name, "candidate": kind, "status": "error", "error": None}
    try:
        text = input_text(benchmark.paths[name], "task file", TaskError)
        code = candidate(benchmark, name, text, kind)
        body = {"kernel_code": code, "task_id": name, "timeout": options.timeout_s}
        if benchmark.source in TRITONBENCH:
            line["prints"] = _prints(text)
            body |= {"measure_performance": not options.untimed, "num_perf_trials": 100}
        elif benchmark.source == "MLSYS":
            body |= {"test_source": "MLSYS", "measure_performance": True, "num_perf_trials": 50}
        answer = client.post(_ROUTES[benchmark.source], json=body)
    except TaskError as error:
        return line | {"error": str(error)}
    except httpx.HTTPError as error:
        raise JudgeError(f"the judge does not answer ({error}); the same command continues") from error
    found = answer.json()
    if answer.status_code in (408, 429, 503):
        raise JudgeError(f"the judge is busy: {found.get('detail')}; the same command continues")
    if answer.status_code != 200 or found.get("error"):
        return line | {"error": str(found.get("error") or found.get("detail"))}
    verdict = from_metrics(found)
    grave = [flag.id for flag in verdict.flags if flag.severity in (REJECT, SUSPECT)]
    return line | {
        "status": verdict.status.value,
        "correct": verdict.correct,
        "flags": grave,
        "problem_flags": [flag.id for flag in verdict.problem_flags],
        "speedup": verdict.speedup,
        "metrics": to_metrics(verdict),
        "seconds": round(time.monotonic() - start, 2),
    }


def _prints(text: str) -> bool:
    calls = (node.func for node in ast.walk(parse(text)) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id == "print" for function in calls)


def summary(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures: TritonBench's three, and stricter ones.

    Call accuracy counts candidates whose calls all run. Execution accuracy compares the test's printed text,
    so if a test prints nothing, each candidate that runs is right. Speedup is the mean ratio of summed times,
    over plausible ratios. The stricter figures count right outputs, and kernels that the judge did not flag.
    """
    judged = [line for line in lines if "metrics" in line]
    called = [line for line in judged if calls_ran(from_metrics(line["metrics"]))]
    executed = [line for line in called if line.get("correct") or not line.get("prints", True)]
    right = [line for line in lines if line.get("correct")]
    sound = [line for line in right if not line["flags"]]
    plausible = [ratio for line in executed if is_plausible(ratio := _ratio(line))]
    speedups = [line["speedup"] for line in sound if line["speedup"]]
    total = len(lines)
    return {
        "tasks": total,
        "call_accuracy": share(len(called), total),
        "execution_accuracy": share(len(executed), total),
        "speedup": round(statistics.fmean(plausible), 4) if plausible else None,
        "right_outputs": share(len(right), total),
        "right_outputs_unflagged": share(len(sound), total),
        "speedup_unflagged": round(statistics.geometric_mean(speedups), 4) if speedups else None,
        "right_on_degenerate_problems": sum("degenerate_problem" in line["problem_flags"] for line in right),
        "statuses": dict(Counter(line["status"] for line in lines).most_common()),
        "exceptions": {
            line["task"]: line["error"] or line["status"]
            for line in lines
            if line["status"] == "error" or (line["candidate"] == "reference" and not line.get("correct"))
        },
    }


def _ratio(line: Mapping[str, Any]) -> float | None:
    """Return summed times of the reference over those of the candidate."""
    if not line.get("speedup"):
        return None
    listed = from_metrics(line["metrics"]).workloads
    timed = [times for times in map(benchmark_files.times_ms, listed) if times is not None]
    if not timed:
        return float(line["speedup"])
    return sum(reference for _, reference in timed) / sum(own for own, _ in timed)


def write_traces(benchmark: Benchmark, lines: Sequence[Mapping[str, Any]], folder: Path) -> int:
    """Write a solution, and the traces of its workloads, for each judged definition; return the traces."""
    count = 0
    for line in lines:
        if line["status"] == "error":
            continue
        name, path = line["task"], benchmark.paths[line["task"]]
        verdict = from_metrics(line["metrics"])
        kind, sol = line["candidate"], path.name == flashinfer.SOL_FILE
        text = input_text(path, "task file", TaskError)
        code, definition = candidate(benchmark, name, text, kind), flashinfer.read_definition(text, path).name
        hardware = None if sol else verdict.hardware or "unknown"
        zeros, made_by = kind == "zeros", f"{name}_{kind}"
        made = benchmark_files.solution(definition, made_by, code, hardware, in_place=zeros)
        workloads = benchmark_files.judged_workloads(benchmark, name, verdict)
        found = benchmark_files.of_verdict(definition, made_by, workloads, verdict)
        write_text(folder / "solutions" / f"{name}.json", f"{made}\n")
        write_text(folder / "traces" / f"{name}.jsonl", "".join(f"{each}\n" for each in found))
        count += len(found)
    return count


@script
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", choices=get_args(Source))
    parser.add_argument("folder", type=Path, help="folder of the benchmark's tasks")
    parser.add_argument("--out", type=Path, required=True, help="file of results; lines are added")
    parser.add_argument("--candidate", choices=("reference", "zeros"), default="reference")
    parser.add_argument("--judge", help="address of a judge that finds the same tasks; else one is started")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--slots", type=int, default=1, help="tasks judged at a time")
    parser.add_argument("--untimed", action="store_true", help="only compare the outputs of TritonBench")
    parser.add_argument(
        "--limit-s", type=float, default=float("inf"), help="begin no task after so many seconds"
    )
    parser.add_argument("--timeout-s", type=int, default=3600, help="of one task with all its workloads")
    parser.add_argument("--traces", type=Path, help="folder for solutions and traces of definitions")
    options = parser.parse_args(argv)
    out = JsonLines(options.out)
    benchmark = open_benchmark(options.source, {}, str(options.folder))
    others = {line["candidate"] for line in out.read(dict)} - {options.candidate}
    if others:
        raise UsageError(
            f"{options.out} holds results of the candidate {min(others)}; "
            f"give another --out for {options.candidate}"
        )
    with contextlib.ExitStack() as stack:
        url = options.judge
        if url is None:
            log_file, tasks = options.out.with_suffix(".judge.log"), str(options.folder.resolve())
            known = {VARIABLES[benchmark.source]: tasks, "RUNTIME_TIMEOUT": str(options.timeout_s)}
            known["ADAEXPLORE_JUDGE_SECRET"] = "judge-benchmark"  # equal inputs in all runs
            url = stack.enter_context(running_judge(options.device, options.slots, log_file, **known))
        judge_all(benchmark, url, out, options)
    lines = out.read(dict)
    if options.traces is not None and benchmark.source in ("FIT", "MLSYS"):
        log.info("%d traces written", write_traces(benchmark, lines, options.traces))
    partial = {"of": len(benchmark.paths)} if len(lines) < len(benchmark.paths) else {}
    show(summary(lines) | partial)


if __name__ == "__main__":
    sys.exit(main())
