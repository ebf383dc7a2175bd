"""The HTTP side: protocol v1, problems and health. Imports no torch; processes start with the app."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import (
    EvaluationRequest,
    EvaluationResponse,
    JobKind,
    ProblemReport,
    ProblemRequest,
    QueueStatus,
)
from online_judge.api import jobs, openapi
from online_judge.api.admission import Admission
from online_judge.api.auth import Door, client_of
from online_judge.api.jobs import RETRY_AFTER_S, is_tritonbench, later
from online_judge.api.openapi import MALFORMED, TURN, Health, Root, refusals
from online_judge.common.events import tell
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled
from online_judge.queue.board import REFERENCE_FAILED, JobBoard
from online_judge.queue.cache import ResultCache
from online_judge.queue.evaluations import Evaluations, NoSuchDevice
from online_judge.queue.journal import Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import Job, QueueFull, Scheduler, Work
from online_judge.queue.store import Store
from online_judge.sandbox import linux
from online_judge.settings import Settings
from online_judge.slots import devices
from online_judge.slots.compile_slot import compile_slots
from online_judge.slots.device_worker import DeviceWorker

log = logging.getLogger(__name__)

SERVICE = "AdaExplore judge"
CLIENT_CLOSED = 499
_LOOK_S = 0.5
_MAX_ECHO = 200
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Judge:
    """Everything that a running application has."""

    settings: Settings
    fork_client: ForkClient
    machine: devices.Machine
    scheduler: Scheduler
    evaluations: Evaluations
    admission: Admission
    board: JobBoard
    cache: ResultCache
    metrics: Metrics


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Read the environment, start the processes, and leave none behind."""
    settings = app.state.settings = Settings.from_environment()
    linux.forbid_inspection()
    store = Store(settings.state_file)
    fork_client = ForkClient(settings.require_sandbox)
    workers: list[DeviceWorker] = []
    try:
        await asyncio.to_thread(fork_client.start)
        machine = await asyncio.to_thread(devices.find, fork_client, settings)
        workers += [DeviceWorker(fork_client, device, settings) for device in machine.devices]
        await asyncio.gather(*(asyncio.to_thread(worker.start) for worker in workers))
        benches = [
            slot for group in zip(*(worker.slots for worker in workers), strict=True) for slot in group
        ]
        pinned = settings.allocation_mode == "manual"
        scheduler = Scheduler(benches, settings.max_queue_size, pinned=pinned)
        scheduler.start()
        compilers = []
        if machine.devices:
            cores = machine.devices[0].cores.others
            compilers = compile_slots(fork_client, settings, machine.compile_target, cores)
        compiles = Scheduler(compilers, settings.max_queue_size, pinned=False)
        compiles.start()
        metrics = Metrics()
        evaluations = Evaluations(settings, machine, fork_client.versions, metrics)
        cache = ResultCache(store, metrics)
        board = JobBoard(
            scheduler, compiles, evaluations, Journal(store), cache if settings.cache_v2 else None, metrics
        )
        metrics.watch(scheduler, board)
        metrics.watch_processes({worker.device.id: worker.candidates for worker in workers})
        admission = Admission(settings, machine, metrics)
        app.state.judge = Judge(
            settings, fork_client, machine, scheduler, evaluations, admission, board, cache, metrics
        )
        log.info("judging on %s, %d slots", machine.hardware, len(benches))
        try:
            if machine.devices:
                await board.recover()
            yield
        finally:
            await board.close()
            await compiles.close()
            await scheduler.close()
    finally:
        for worker in workers:
            await asyncio.to_thread(worker.close)
        await asyncio.to_thread(fork_client.close)
        store.close()


def create_app() -> FastAPI:
    """The application; nothing runs before its lifespan starts."""
    application = FastAPI(title=SERVICE, lifespan=lifespan)
    application.add_api_route("/", _root, methods=["GET"], response_model=None, responses=refusals(ok=Root))
    application.add_api_route(
        "/health", _health, methods=["GET"], response_model=None, responses=refusals(ok=Health)
    )
    application.add_api_route(
        "/queue/status", _queue_status, methods=["GET"], response_model=QueueStatus, responses=refusals()
    )
    application.add_api_route(
        "/evaluate",
        _evaluate,
        methods=["POST"],
        response_model=EvaluationResponse,
        responses=refusals(400, 500, 501, 503, malformed=400),
        openapi_extra=TURN,
    )
    application.add_api_route(
        "/v2/problem",
        _problem,
        methods=["POST"],
        response_model=ProblemReport,
        responses=refusals(400, 500, 503, malformed=400),
        openapi_extra=TURN,
    )
    for path in ("/evaluate_fit_kernel", "/evaluate_tbg_kernel", "/evaluate_tbt_kernel"):
        application.add_api_route(path, _not_implemented, methods=["POST"], include_in_schema=False)
    application.include_router(jobs.router)
    application.add_exception_handler(RequestValidationError, _refuse)
    application.add_exception_handler(StarletteHTTPException, openapi.refuse)
    application.openapi = partial(openapi.document, application)  # type: ignore[method-assign]
    application.add_middleware(Door)
    return application


def _judge(request: Request) -> Judge:
    judge: Judge = request.app.state.judge
    return judge


async def _root(request: Request) -> dict[str, Any]:
    """What this is and how busy it is."""
    judge = _judge(request)
    return {
        "status": "online",
        "service": SERVICE,
        "cuda_available": judge.machine.cuda_available,
        "device_count": judge.machine.device_count,
        "available_gpus": _gpu_ids(judge),
        "gpu_allocation_mode": judge.settings.allocation_mode,
        "queue_status": judge.scheduler.status().model_dump(),
    }


async def _health(request: Request) -> dict[str, Any]:
    """What the judge runs on."""
    judge = _judge(request)
    machine = judge.machine
    answer: dict[str, Any] = {
        "status": "healthy",
        "cuda_available": machine.cuda_available,
        "gpu_allocation_mode": judge.settings.allocation_mode,
        "judge_device": "cuda" if machine.cuda_available or not machine.devices else "cpu",
        "hardware": machine.hardware,
        "compile_target": machine.compile_target,
        "sandbox": judge.fork_client.in_force,
        "versions": {name: judge.fork_client.versions.get(name) for name in ("torch", "triton", "python")},
    }
    if machine.cuda_available:
        memory = await asyncio.gather(
            *(asyncio.to_thread(devices.memory_bytes, device) for device in machine.devices)
        )
        answer["device_count"] = machine.device_count
        answer["available_gpus"] = _gpu_ids(judge)
        answer["devices"] = [
            {"id": device.id, "name": device.hardware, "available": True, **sizes}
            for device, sizes in zip(machine.devices, memory, strict=True)
        ]
    answer["queue_status"] = judge.scheduler.status().model_dump()
    return answer


async def _queue_status(request: Request) -> QueueStatus:
    """How busy the devices are."""
    return _judge(request).scheduler.status()


async def _evaluate(body: EvaluationRequest, request: Request) -> EvaluationResponse:
    """Judge a candidate against its reference."""
    begin = time.monotonic()
    judge = _judge(request)
    if is_tritonbench(body):
        raise later("TritonBench")
    jobs.require_build_dir(judge, body, "body")
    device = _device(judge, "candidate", body)
    _require_devices(judge)
    answered = judge.admission.answer("candidate", body)
    if answered is not None and isinstance(answered.finding, Verdict):
        return _answer(answered.finding, begin)
    if answered is not None:
        return _problem_error(judge, str(answered.error), begin)
    question = known = None
    if judge.settings.cache_v1:
        question = await asyncio.to_thread(judge.evaluations.question, body, device)
        known = await judge.cache.get(question)
    if isinstance(known, Verdict):
        return _answer(known, begin)
    job = _submit(judge, request, judge.evaluations.work("candidate", body), device)
    try:
        verdict: Verdict = await _result(judge, request, job, body.timeout)
    except ProblemError as error:
        return _problem_error(judge, f"{REFERENCE_FAILED}: {error}", begin, job.queue_time_s)
    if question is not None:
        await judge.cache.put(question, verdict)
    return _answer(verdict, begin, job.queue_time_s)


def _answer(verdict: Verdict, begin: float, queue_time_s: float = 0.0) -> EvaluationResponse:
    return EvaluationResponse(
        success=verdict.status is not Status.TIMEOUT,  # v1's clients know time-outs by this
        **verdict.to_metrics(),
        execution_time=time.monotonic() - begin,
        queue_time=queue_time_s,
        error=verdict.metadata["error"] if verdict.status is Status.TIMEOUT else None,
    )


def _problem_error(judge: Judge, text: str, begin: float, queue_time_s: float = 0.0) -> EvaluationResponse:
    return EvaluationResponse(
        success=False,
        compiled=False,
        correctness=False,
        metadata={"hardware": judge.machine.hardware, "error": text},
        execution_time=time.monotonic() - begin,
        queue_time=queue_time_s,
        error=text,
    )


async def _problem(body: ProblemRequest, request: Request) -> ProblemReport:
    """Say whether a reference can be judged here at all."""
    judge = _judge(request)
    _require_devices(judge)
    answered = judge.admission.answer("problem", body)
    if answered is not None and isinstance(answered.finding, ProblemReport):
        return answered.finding
    job = _submit(
        judge,
        request,
        judge.evaluations.work("problem", body),
        _device(judge, "problem", body),
        full_code=429,
    )
    report: ProblemReport = await _result(judge, request, job, body.timeout)
    return report


async def _not_implemented(request: Request) -> None:
    """Refuse what is not built yet."""
    raise later("FlashInfer" if "fit" in request.url.path else "TritonBench")


def _gpu_ids(judge: Judge) -> list[int]:
    return [device.id for device in judge.machine.devices] if judge.machine.cuda_available else []


def _device(judge: Judge, kind: JobKind, body: EvaluationRequest | ProblemRequest) -> int | None:
    try:
        return judge.evaluations.device_of(kind, body)
    except NoSuchDevice as error:
        raise HTTPException(400, str(error)) from error


def _require_devices(judge: Judge) -> None:
    if not judge.machine.devices:
        raise HTTPException(503, "CUDA is not available on this judge")


def _submit(judge: Judge, request: Request, work: Work, device: int | None, full_code: int = 503) -> Job:
    caller = client_of(request)
    try:
        return judge.scheduler.submit(work, device, client=caller.turn, max_queued=caller.max_queued)
    except QueueFull as full:
        raise HTTPException(full_code, str(full), headers={"Retry-After": str(RETRY_AFTER_S)}) from full


async def _result(judge: Judge, request: Request, job: Job, timeout: int | None) -> Any:
    """Wait for a job as long as its client does and its time in the queue allows."""
    limit_s = judge.settings.runtime_timeout_s if timeout is None else timeout
    try:
        while not job.done.done():
            waits = {job.done} if job.started.done() else {job.started, job.done}
            await asyncio.wait(waits, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            if not job.started.done() and time.monotonic() - job.enqueued >= limit_s:
                raise HTTPException(408, f"Request timeout: No available GPU slot within {limit_s}s")
            if await request.is_disconnected():
                raise HTTPException(CLIENT_CLOSED, "the client is gone")
        result = job.done.result()
        judge.metrics.spent({"queue": job.queue_time_s})
        return result
    except (Cancelled, asyncio.CancelledError) as error:
        raise HTTPException(503, "the judge is shutting down") from error
    except ProblemError:
        raise
    except JudgeError as error:
        raise HTTPException(500, str(error)) from error
    finally:
        job.cancel()
        _tell_end(request, job)


def _tell_end(request: Request, job: Job) -> None:
    """Log the end of an evaluation of v1, which has no name towards its client."""
    over = job.done.done() and not job.done.cancelled()
    error = job.done.exception() if over else None
    found = job.done.result() if over and error is None else None
    tell(
        "evaluation.failed" if found is None else "evaluation.done",
        job=f"v1-{next(_numbers)}",
        kind=request.url.path,
        status=found.status.value if isinstance(found, Verdict) else None,
        seconds=time.monotonic() - job.enqueued,
        error=type(error).__name__ if error is not None else None,
    )


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """v1's form of a malformed request."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {
            "field": ".".join(map(str, entry["loc"])),
            "message": entry["msg"],
            "type": entry["type"],
            "input": _echo(entry.get("input")),
        }
        for entry in error.errors()
    ]
    code = 422 if request.url.path.startswith("/v2/jobs") else 400
    return JSONResponse({"detail": MALFORMED, "errors": errors}, status_code=code)


def _echo(value: object) -> object:
    """A refused input, cut where it is long."""
    if isinstance(value, bool | int | None):
        return value
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MAX_ECHO else f"{text[:_MAX_ECHO]}..."


app = create_app()
