"""Tasks of other benchmarks by name: v1's endpoints for them, and the extra fields of their answers."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from adaexplore.core.dialects import catalogue
from adaexplore.core.errors import TaskError
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Backend, EvaluationRequest, EvaluationResponse, TimeLimit, Whole
from online_judge.settings import Settings


class FlashInferRequest(BaseModel):
    """Body of ``POST /evaluate_fit_kernel``; ``kernel_code`` is Python source or a solution's JSON."""

    model_config = ConfigDict(extra="ignore")

    kernel_code: str = Field(min_length=1)
    task_id: str = Field(min_length=1, coerce_numbers_to_str=True)
    backend: Backend = "triton"
    timeout: TimeLimit | None = 300
    device: Whole | None = None

    def as_evaluation(self, test_source: str) -> EvaluationRequest:
        """Return the request for ``/evaluate``: checked like others, timed if there is a GPU."""
        fixed = {"num_correct_trials": 5, "measure_performance": True, "num_perf_trials": 50}
        return EvaluationRequest(**(fixed | self.model_dump()), test_source=test_source)


class TritonBenchRequest(FlashInferRequest):
    """Body of ``POST /evaluate_tbg_kernel`` and ``/evaluate_tbt_kernel``."""

    num_perf_trials: Whole = Field(default=10, ge=1)
    measure_performance: StrictBool = False


def with_sources(request: EvaluationRequest, settings: Settings) -> EvaluationRequest:
    """Return the request with the sources of the task that it names; unchanged for KernelBench and the like.

    Raises HTTPException 400 if it names no task or code, or the task cannot be used.
    """
    source = catalogue.source_of(request.test_source)
    if source is None:
        return request
    if request.hidden_workloads is not None:
        raise HTTPException(400, f"a request with test_source {source} takes no hidden_workloads")
    if request.direction != "forward":
        raise HTTPException(400, f"a request with test_source {source} must have direction: forward")
    code, task = request.kernel_code or request.custom_model_src, request.task_id or request.problem_id
    if not code or not task:
        raise HTTPException(400, f"a request with test_source {source} needs kernel_code and task_id")
    try:
        benchmark = catalogue.open_benchmark(source, settings.benchmarks)
        name = benchmark.find(task)
        sources = {
            "original_model_src": benchmark.problem(name, settings.max_source_bytes // 2),
            "custom_model_src": benchmark.candidate(name, code),
        }
    except TaskError as error:
        raise HTTPException(400, str(error)) from error
    return request.model_copy(
        update=sources | {"dtype_str": "native", "kernel_code": None, "task_id": name, "test_source": source}
    )


def completed(
    answer: EvaluationResponse, request: EvaluationRequest, found: Verdict | None
) -> EvaluationResponse:
    """Return the answer on ``found`` about a task of a benchmark with the fields that its clients read."""
    metadata: dict[str, Any] = {
        **answer.metadata,
        "task_id": request.task_id,
        "benchmark": request.test_source,
    }
    stats = dict(answer.runtime_stats)
    if found is not None and found.timing is not None:
        stats |= {
            "speedup_factor": found.timing.speedup,
            "candidate_latency_ms": found.timing.runtime_ms,
            "reference_latency_ms": found.timing.baseline_ms,
        }
    if request.test_source in ("FIT", "MLSYS"):
        device = request.device if found is None else found.device
        metadata |= {"backend": request.backend, "device": device}
        if found is not None and found.correct:
            stats["total_workloads"] = max(len(found.workloads), 1)
        else:
            status, log = (None, "") if found is None else (found.status.value, found.feedback)
            metadata |= {"error_status": status, "error_log": log or answer.error}
    success = answer.correctness if request.test_source != "TBT" else answer.success
    return answer.model_copy(update={"metadata": metadata, "runtime_stats": stats, "success": success})
