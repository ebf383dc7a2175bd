"""Protocol v1, the check of a problem, and the judge's health."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TypeVar

from fastapi import APIRouter, HTTPException, Request

from adaexplore.core.dialects.catalogue import source_of
from adaexplore.core.errors import ProblemError
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import (
    EvaluationRequest,
    EvaluationResponse,
    ProblemReport,
    ProblemRequest,
    QueueStatus,
)
from online_judge.api.auth import client_of
from online_judge.api.benchmarks import FlashInferRequest, TritonBenchRequest, completed
from online_judge.api.judge import Judge, judge_of
from online_judge.api.openapi import SERVICE, TURN, DeviceHealth, Health, Root, refusals
from online_judge.common.events import log_event
from online_judge.processes.gpu_lease import Cancelled
from online_judge.queue.board import REFERENCE_FAILED
from online_judge.queue.job import Job
from online_judge.slots import devices

Found = TypeVar("Found", Verdict, ProblemReport)
CLIENT_CLOSED = 499
_LOOK_S = 0.5
_numbers = itertools.count(1)

router = APIRouter()


@router.get("/", responses=refusals())
async def root(request: Request) -> Root:
    """Report the service and its load."""
    judge = judge_of(request)
    machine = judge.machine
    return Root(
        status="online",
        service=SERVICE,
        cuda_available=machine.cuda_available,
        device_count=machine.device_count,
        available_gpus=[device.id for device in machine.devices] if machine.cuda_available else [],
        gpu_allocation_mode=judge.settings.allocation_mode,
        queue_status=judge.scheduler.status(),
    )


@router.get("/health", response_model_exclude_unset=True, responses=refusals())
async def health(request: Request) -> Health:
    """Report the judge's hardware and versions."""
    judge = judge_of(request)
    machine, versions = judge.machine, judge.fork_client.software.versions
    answer = Health(
        status="healthy",
        cuda_available=machine.cuda_available,
        gpu_allocation_mode=judge.settings.allocation_mode,
        judge_device=machine.kind,
        hardware=machine.hardware,
        compile_target=machine.compile_target,
        sandbox=judge.fork_client.in_force,
        versions={name: versions.get(name) for name in ("torch", "triton", "python")},
        queue_status=judge.scheduler.status(),
    )
    if machine.elastic and machine.absence:
        answer.reason = machine.absence
    if machine.cuda_available:
        present, answer.device_count = machine.devices, machine.device_count  # they may join and leave
        answer.available_gpus = [device.id for device in present]
        memory = await asyncio.gather(
            *(asyncio.to_thread(devices.memory_bytes, device) for device in present)
        )
        answer.devices = [
            DeviceHealth(id=device.id, name=device.hardware, available=True, **sizes)
            for device, sizes in zip(present, memory, strict=True)
        ]
    return answer


@router.get("/queue/status", responses=refusals())
async def queue_status(request: Request) -> QueueStatus:
    """Report the load of the devices."""
    return judge_of(request).scheduler.status()


@router.post("/evaluate", responses=refusals(400, 500, 503, malformed=400), openapi_extra=TURN)
async def evaluate(body: EvaluationRequest, request: Request) -> EvaluationResponse:
    """Judge a candidate against its reference."""
    begin = time.monotonic()
    judge = judge_of(request)
    named, body = body.test_source, await judge.accepted(body, "body")
    job = Job("candidate", body, client_of(request), id=f"v1-{next(_numbers)}")
    found = None
    try:
        found = await _result(judge, request, job, body.timeout, Verdict)
        metrics = to_metrics(found)
        # v1's clients know time-outs by ``success``
        why = found.failure.error if found.status is Status.TIMEOUT else None
    except ProblemError as error:
        why = f"{REFERENCE_FAILED}: {error}"
        metadata = {"hardware": judge.machine.hardware, "error": why}
        metrics = {"compiled": False, "correctness": False, "metadata": metadata}
    answer = EvaluationResponse(
        success=why is None,
        **metrics,
        execution_time=time.monotonic() - begin,
        queue_time=job.queue_time_s,
        error=why,
    )
    return answer if source_of(named) is None else completed(answer, body, found)


@router.post("/evaluate_fit_kernel", responses=refusals(400, 500, 503, malformed=400), openapi_extra=TURN)
async def evaluate_fit(body: FlashInferRequest, request: Request) -> EvaluationResponse:
    """Judge a candidate for a definition of FlashInfer-Bench."""
    return await evaluate(body.as_evaluation("FIT"), request)


@router.post("/evaluate_tbg_kernel", responses=refusals(400, 500, 503, malformed=400), openapi_extra=TURN)
async def evaluate_tbg(body: TritonBenchRequest, request: Request) -> EvaluationResponse:
    """Judge a candidate for a file of TritonBench-G."""
    return await evaluate(body.as_evaluation("TBG"), request)


@router.post("/evaluate_tbt_kernel", responses=refusals(400, 500, 503, malformed=400), openapi_extra=TURN)
async def evaluate_tbt(body: TritonBenchRequest, request: Request) -> EvaluationResponse:
    """Judge a candidate for a file of TritonBench-T."""
    answer = await evaluate(body.as_evaluation("TBT"), request)
    return answer.model_copy(update={"success": answer.correctness})


@router.post("/v2/problem", responses=refusals(400, 500, 503, malformed=400), openapi_extra=TURN)
async def problem(body: ProblemRequest, request: Request) -> ProblemReport:
    """Report whether a reference can be judged here."""
    judge = judge_of(request)
    judge.require_devices()
    job = Job("problem", body, client_of(request), id=f"v1-{next(_numbers)}")
    return await _result(judge, request, job, body.timeout, ProblemReport)


async def _result(
    judge: Judge, request: Request, job: Job, timeout: int | None, wanted: type[Found]
) -> Found:
    """Submit a job and wait for it while its client waits and its time in the queue allows.

    Raises QueueFull, NoSuchDevice, ProblemError or JudgeError of the job, HTTPException if nobody waits.
    """
    limit_s = judge.settings.runtime_timeout_s if timeout is None else timeout
    try:
        await judge.board.submit(job)
        while not job.over.is_set():
            await judge.board.wait(job, _LOOK_S)
            if job.leader.started_at is None and time.monotonic() - job.created >= limit_s:
                absence = judge.machine.absence
                why = f": {absence}" if absence else ""
                raise HTTPException(408, f"Request timeout: No available GPU slot within {limit_s}s{why}")
            if await request.is_disconnected():
                raise HTTPException(CLIENT_CLOSED, "the client is gone")
        outcome = job.leader.outcome
        if outcome is None or isinstance(outcome, Cancelled):
            raise HTTPException(503, "the judge is shutting down")
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, wanted)
        return outcome
    except asyncio.CancelledError as error:
        raise HTTPException(503, "the judge is shutting down") from error
    finally:
        judge.board.abandon(job)
        if job.refusal is None:
            _log_end(request, job)


def _log_end(request: Request, job: Job) -> None:
    """Log the end of an evaluation of v1, whose client knows no id."""
    outcome = job.leader.outcome
    error = outcome if isinstance(outcome, Exception) else None
    log_event(
        "evaluation.failed" if outcome is None or error is not None else "evaluation.done",
        job=job.id,
        kind=request.url.path,
        status=outcome.status.value if isinstance(outcome, Verdict) else None,
        seconds=time.monotonic() - job.created,
        error=None if error is None else type(error).__name__,
    )
