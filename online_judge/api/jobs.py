"""The HTTP side of jobs, and what supervisors and monitors ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from adaexplore.core.wire import EvaluationRequest, JobAnswer, JobRequest, JobTicket
from online_judge.api.auth import client_of
from online_judge.api.openapi import NO_TOKEN, TURN, Alive, Readiness, refusals
from online_judge.queue.board import JournalBroken, KeyInUse
from online_judge.queue.evaluations import NoSuchDevice
from online_judge.queue.scheduler import QueueFull
from online_judge.slots import build_folders

if TYPE_CHECKING:
    from online_judge.api.app import Judge

RETRY_AFTER_S = 5
MAX_WAIT_S = 60.0
_TRITONBENCH = {"TBG", "TRITONBENCH_G", "TRITONBENCH-G", "TBT", "TRITONBENCH_T", "TRITONBENCH-T"}

router = APIRouter()


def later(what: str) -> HTTPException:
    """The refusal of what is not built yet."""
    return HTTPException(501, f"{what} evaluation is not implemented in this judge; use KernelBench problems")


def is_tritonbench(request: EvaluationRequest) -> bool:
    """Whether a request belongs to TritonBench."""
    return (request.test_source or "").upper() in _TRITONBENCH


def require_build_dir(judge: Judge, request: EvaluationRequest, where: str) -> None:
    """Refuse a folder that a request may not name.

    Raises:
        RequestValidationError: it names one; ``where`` is the request's place in the body.
    """
    why = build_folders.refusal(request.build_dir, judge.settings.build_dir)
    if why is not None:
        place = (*where.split("."), "build_dir")
        error = {"loc": place, "msg": why, "type": "value_error", "input": request.build_dir}
        raise RequestValidationError([error])


@router.post(
    "/v2/jobs",
    status_code=202,
    responses=refusals(400, 409, 501, 503, malformed=422),
    openapi_extra=TURN,
)
async def submit(
    body: JobRequest,
    request: Request,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> JobTicket:
    """Take a job in; the same ``Idempotency-Key`` and body give the same job."""
    judge = _judge(request)
    if is_tritonbench(body.request):
        raise later("TritonBench")
    if not judge.machine.devices:
        raise HTTPException(503, "CUDA is not available on this judge")
    require_build_dir(judge, body.request, "body.request")
    answered = judge.admission.answer(body.kind, body.request)
    retry = {"Retry-After": str(RETRY_AFTER_S)}
    try:
        answer = await judge.board.submit(body, idempotency_key, client_of(request), answered)
    except KeyInUse as error:
        raise HTTPException(409, str(error)) from error
    except NoSuchDevice as error:
        raise HTTPException(400, str(error)) from error
    except QueueFull as full:
        raise HTTPException(429, str(full), headers=retry) from full
    except JournalBroken as error:
        raise HTTPException(503, str(error), headers=retry) from error
    except asyncio.CancelledError as error:
        raise HTTPException(503, "the judge is shutting down", headers=retry) from error
    return JobTicket(id=answer.id, status=answer.state, position=answer.position)


@router.get("/v2/jobs/{job_id}", responses=refusals(404, malformed=422))
async def look(
    job_id: str, request: Request, wait: Annotated[float, Query(ge=0, le=3600)] = 0.0
) -> JobAnswer:
    """How a job stands, at once or as soon as it is over; ``wait`` counts up to 60 seconds."""
    board, owner = _judge(request).board, client_of(request).owner
    await board.wait(job_id, owner, min(wait, MAX_WAIT_S))
    return _found(board.answer(job_id, owner))


@router.delete("/v2/jobs/{job_id}", responses=refusals(404, malformed=422))
async def cancel(job_id: str, request: Request) -> JobAnswer:
    """End a job; answers when nothing of it runs any more."""
    return _found(await _judge(request).board.cancel(job_id, client_of(request).owner))


@router.get("/livez", response_model=None, responses={200: {"model": Alive}}, openapi_extra=NO_TOKEN)
async def alive() -> dict[str, str]:
    """That the service answers."""
    return {"status": "alive"}


@router.get("/readyz", responses={code: {"model": Readiness} for code in (200, 503)}, openapi_extra=NO_TOKEN)
async def ready(request: Request) -> JSONResponse:
    """Whether jobs can be judged now."""
    judge = _judge(request)
    why = None
    if not judge.machine.devices:
        why = "no device"
    elif not await judge.board.writable():
        why = "the journal cannot be written"
    answer: dict[str, Any] = {"status": "ready"} if why is None else {"status": "not ready", "reason": why}
    return JSONResponse(answer, 200 if why is None else 503)


@router.get(
    "/metrics",
    response_class=Response,  # not PlainTextResponse: the refusals are JSON
    responses=refusals() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Load, times and outcomes for Prometheus."""
    return Response(_judge(request).metrics.render(), media_type=CONTENT_TYPE_LATEST)


def _found(answer: JobAnswer | None) -> JobAnswer:
    if answer is None:
        raise HTTPException(404, "there is no job of this id (any more)")
    return answer


def _judge(request: Request) -> Judge:
    judge: Judge = request.app.state.judge
    return judge
