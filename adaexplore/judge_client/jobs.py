"""Jobs of protocol v2: nothing is lost with a connection, or with a judge that comes back."""

from __future__ import annotations

import logging
import uuid
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adaexplore.core.errors import Interrupted, JudgeError
from adaexplore.core.wire import JobAnswer, JobRequest, JobTicket
from adaexplore.judge_client.connection import Connection

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)

_POLL_S = 5
"""Seconds that one look at a job waits for its end; a run that is asked to stop notices after that long."""
_ANSWER_S = 30.0
_MAX_FORGOTTEN = 3
_V1_ONLY = {"kernel_code", "task_id", "test_source"}


def run_job(connection: Connection, request: JobRequest) -> JobAnswer | None:
    """Have a job done and return how it ended: ``done``, ``failed`` or ``cancelled``.

    The key under which it is handed in makes sending it again harmless. A judge that was restarted has the
    job in its journal; one without a journal has forgotten it and is given it again. A job that is not
    waited for to its end (the run stops, the judge stays away) is cancelled.

    Returns:
        None where the judge takes no jobs: the release's, or one that forgets them time and again.

    Raises:
        JudgeError: the judge failed in spite of retries, or refused the job.
        Interrupted: the run was asked to stop.
    """
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = request.model_dump(exclude={"request": _V1_ONLY})
    for _ in range(_MAX_FORGOTTEN):
        answer = connection.ask("POST", "/v2/jobs", timeout_s=_ANSWER_S, body=body, headers=headers)
        if answer.status_code in (404, 405):
            return None
        ticket = read_answer(JobTicket, connection.object_in(answer), connection.url)
        ended = _follow(connection, f"/v2/jobs/{ticket.id}")
        if ended is not None:
            return ended
        logger.warning("the judge at %s does not know job %s any more", connection.url, ticket.id)
    logger.warning(
        "the judge at %s forgets its jobs (does it run with several WORKERS?); going on without them",
        connection.url,
    )
    return None


def _follow(connection: Connection, path: str) -> JobAnswer | None:
    """Wait for a job's end; None when the judge does not know it (any more)."""
    over = False
    try:
        while True:
            answer = connection.ask("GET", f"{path}?wait={_POLL_S}", timeout_s=_POLL_S + _ANSWER_S)
            if answer.status_code == 404:
                over = True
                return None
            job = read_answer(JobAnswer, connection.object_in(answer), connection.url)
            if job.state not in ("queued", "running"):
                over = True
                return job
            if connection.stopped():
                raise Interrupted("stopped while waiting for the judge")
    finally:
        if not over:
            connection.delete(path)


def read_answer(model: type[Model], data: dict[str, Any], url: str) -> Model:
    """Read what the judge at ``url`` answered.

    Raises:
        JudgeError: it is something else.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise JudgeError(f"{url} does not speak the judge's protocol: {str(data)[:200]}") from error
