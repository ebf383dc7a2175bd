"""Candidates for whole benchmarks, and FlashInfer-Bench's solutions and traces from verdicts."""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from adaexplore.core.dialects import flashinfer, tritonbench
from adaexplore.core.dialects.catalogue import TRITONBENCH, Benchmark
from adaexplore.core.dialects.schema import Build, Solution, Source, Workload
from adaexplore.core.dialects.workload_text import entry
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_text
from adaexplore.core.judging.parts import RuntimeStats
from adaexplore.core.judging.status import Status, StatusKind
from adaexplore.core.judging.workloads import WorkloadVerdict
from adaexplore.core.verdict import Verdict

_FILE = "main.py"
_UNKNOWN = {"max_relative_error": math.nan, "max_absolute_error": math.nan}

_ZEROS = Path(__file__).with_name("benchmark_zeros.py")


def candidate(benchmark: Benchmark, name: str, text: str, kind: str) -> str:
    """Return the reference of a task as its candidate, or a candidate that answers zeros."""
    path = benchmark.paths[name]
    if benchmark.source in TRITONBENCH:
        file = tritonbench.read(text, path)
        if kind == "reference":
            return file.gold
        # kernels and classes cannot answer zeros and become None
        changed = "".join(f"{name} = _tb_zeroed({name})\n" for name in file.functions)
        return "\n\n".join([file.gold.strip("\n"), _ZEROS.read_text(encoding="utf-8"), changed])
    definition = flashinfer.read_definition(text, path)
    if kind == "reference":
        return definition.reference
    lines = "".join(f"    {name}.zero_()\n" for name in definition.outputs)
    return f"def run({', '.join([*definition.inputs, *definition.outputs])}):\n{lines}"


def judged_workloads(benchmark: Benchmark, name: str, found: Verdict) -> list[Workload]:
    """Return the workloads of a definition to which a verdict's numbers refer.

    A verdict without a list is on one workload; of several it is the one with the least stored data, because
    the others were too large for the problem file.
    """
    path, root = benchmark.paths[name], benchmark.root
    listed = flashinfer.workloads(path, root)
    if found.workloads:
        return listed
    definition = flashinfer.read_definition(input_text(path, "task file", TaskError), path)
    return [min(listed, key=lambda each: entry(definition, each, 1, root).data_bytes)]


def solution(definition: str, name: str, code: str, hardware: str | None, *, in_place: bool) -> str:
    """Return the JSON of a solution of one file, in Triton if it imports Triton.

    Without ``hardware`` it is a solution for SOL-ExecBench, which names languages and hardware in its own
    way. ``in_place`` says that it writes to its outputs.
    """
    triton = "import triton" in code
    build = Build(
        language=None if hardware is None else "triton" if triton else "python",
        languages=("triton" if triton else "pytorch",) if hardware is None else None,
        target_hardware=(hardware or "LOCAL",),
        entry_point=f"{_FILE}::run",
        destination_passing_style=in_place,
    )
    sources = (Source(path=_FILE, content=code),)
    made = Solution(name=name, definition=definition, author="adaexplore", spec=build, sources=sources)
    return made.model_dump_json(exclude_none=True)


def times_ms(workload: WorkloadVerdict) -> tuple[float, float] | None:
    """Return the times of candidate and reference that count; None if not timed."""
    own, reference = workload.times_ms
    return (own, reference) if own and reference else None


def of_verdict(definition: str, made_by: str, workloads: Sequence[Workload], found: Verdict) -> list[str]:
    """Return the JSON of a trace for each judged workload; passing ones must be timed.

    Deviations are unknown (NaN): the judge says whether a tolerance was met. ``made_by`` names the solution.
    """
    timing = found.timing or RuntimeStats()
    alone = WorkloadVerdict(
        name="1",
        weight=1.0,
        status=found.status,
        correctness=found.correct,
        score_ms=timing.runtime_ms if timing.score_ms is None else timing.score_ms,
        baseline_ms=timing.baseline_ms,
    )
    environment = {"hardware": found.hardware or "unknown", "libs": {}}
    timestamp = datetime.now(UTC).isoformat()
    made = []
    for outcome in found.workloads or (alone,):
        status = _status(outcome.status)
        if status is None:
            continue
        evaluation = {"status": status, "environment": environment, "timestamp": timestamp, "log": ""}
        if status in ("PASSED", "INCORRECT_NUMERICAL"):
            evaluation["correctness"] = _UNKNOWN
        if status == "PASSED":
            times = times_ms(outcome)
            if times is None:
                continue
            own, reference = times
            evaluation["performance"] = {
                "latency_ms": own,
                "reference_latency_ms": reference,
                "speedup_factor": reference / own,
            }
        workload = workloads[int(outcome.name.partition(" ")[0]) - 1]  # names begin with a number
        trace = {
            "definition": definition,
            "workload": workload.model_dump(mode="json", exclude_unset=True),
            "solution": made_by,
            "evaluation": evaluation,
        }
        made.append(json.dumps(trace))
    return made


def _status(status: Status) -> str | None:
    """Return FlashInfer-Bench's name of a status; None if nothing is known about the candidate."""
    match status.row.kind:
        case StatusKind.PASSED:
            return "PASSED"
        case StatusKind.LOAD:
            return "COMPILE_ERROR"
        case StatusKind.BUILD:
            return "COMPILE_ERROR" if status is Status.COMPILE else "RUNTIME_ERROR"
        case StatusKind.RUN:
            return "TIMEOUT" if status is Status.TIMEOUT else "RUNTIME_ERROR"
        case StatusKind.FORM:
            return "INCORRECT_DTYPE" if status is Status.WRONG_DTYPE else "INCORRECT_SHAPE"
        case StatusKind.VALUES | StatusKind.REJECTED:
            return "INCORRECT_NUMERICAL"
        case StatusKind.UNKNOWN:
            return None
