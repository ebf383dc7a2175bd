"""Protocol v2: jobs, health checks and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Query, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from adaexplore.core.environment import Environment
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.wire import JobRequest, JobTicket, Workers
from online_judge.api.auth import client_of
from online_judge.api.errors import RETRY_AFTER
from online_judge.api.judge import judge_of
from online_judge.api.openapi import NO_TOKEN, TURN, Alive, Readiness, refusals
from online_judge.queue.job import Job
from online_judge.queue.journal import KEPT

MAX_WAIT_S = 60.0

router = APIRouter()


@router.post(
    "/v2/jobs", status_code=202, responses=refusals(400, 409, 503, malformed=422), openapi_extra=TURN
)
async def submit(
    body: JobRequest,
    request: Request,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> JobTicket:
    """Accept a job; the same ``Idempotency-Key`` and body give the same job."""
    judge = judge_of(request)
    body = body.model_copy(update={"request": await judge.accepted(body.request, "body.request")})
    with _until_shutdown():
        job = await judge.board.submit(Job.of_v2(body, client_of(request), idempotency_key))
    answer = judge.board.look(job)
    return JobTicket(id=answer.id, status=answer.state, position=answer.position)


@router.get("/v2/jobs/{job_id}", responses=refusals(404, 503, malformed=422))
async def look(
    job_id: str, request: Request, wait: Annotated[float, Query(ge=0, le=3600)] = 0.0
) -> JobAnswer:
    """Return the state of a job, at once or after at most ``wait`` (up to 60) seconds when it ends."""
    board, job = judge_of(request).board, _job(request, job_id)
    with _until_shutdown():
        await board.wait(job, min(wait, MAX_WAIT_S))
    return board.look(job)


@router.delete("/v2/jobs/{job_id}", responses=refusals(404, 503, malformed=422))
async def cancel(job_id: str, request: Request) -> JobAnswer:
    """Cancel a job; answer when its processes have ended."""
    board, job = judge_of(request).board, _job(request, job_id)
    with _until_shutdown():
        await board.cancel(job)
    return board.look(job)


@router.get("/v2/environment", responses=refusals())
async def environment(request: Request) -> Environment:
    """Return the judge's hardware, software and rules of measurement."""
    return judge_of(request).environment


@router.get("/v2/workers", responses=refusals())
async def workers(request: Request) -> Workers:
    """Return the devices on which jobs run, with their states."""
    return Workers(workers=judge_of(request).worker_status())


@router.get("/livez", openapi_extra=NO_TOKEN)
async def alive() -> Alive:
    """Report that the service answers."""
    return Alive(status="alive")


@router.get("/readyz", responses={code: {"model": Readiness} for code in (200, 503)}, openapi_extra=NO_TOKEN)
async def ready(request: Request) -> JSONResponse:
    """Report whether jobs can be judged now."""
    judge = judge_of(request)
    if judge.machine.absence:
        why = judge.machine.absence
    elif not await judge.board.writable():
        why = "the journal cannot be written"
    else:
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "not ready", "reason": why}, 503)


@router.get(
    "/metrics",
    response_class=Response,  # not PlainTextResponse: the refusals are JSON
    responses=refusals() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Return load, times and outcomes for Prometheus."""
    return Response(judge_of(request).render_metrics(), media_type=CONTENT_TYPE_LATEST)


@contextlib.contextmanager
def _until_shutdown() -> Iterator[None]:
    """Answer with 503 what a shutdown of the judge interrupts."""
    try:
        yield
    except asyncio.CancelledError as error:
        raise HTTPException(503, "the judge is shutting down", headers=RETRY_AFTER) from error


def _job(request: Request, job_id: str) -> Job:
    job = judge_of(request).board.find(job_id, client_of(request).owner)
    if job is None:
        raise HTTPException(
            404, f"there is no job of this id: the last {KEPT} finished jobs of a client are kept"
        )
    return job
