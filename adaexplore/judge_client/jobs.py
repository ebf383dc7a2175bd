"""Jobs of protocol v2: they survive broken connections and restarts of the judge."""

import logging
import uuid

from adaexplore.core.errors import Interrupted
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.wire import JobRequest, JobTicket
from adaexplore.judge_client.connection import Connection

logger = logging.getLogger(__name__)

_POLL_S = 5
"""Seconds that one poll waits for a job's end; a stop request is noticed after that long."""
_ANSWER_S = 30.0
_MAX_FORGOTTEN = 3
_V1_ONLY = {"kernel_code", "task_id", "test_source"}


def run_job(connection: Connection, request: JobRequest) -> JobAnswer | None:
    """Run a job and return how it ended: ``done``, ``failed`` or ``cancelled``.

    Its key makes sending it again harmless. A restarted judge has the job in its journal; a judge without a
    journal has lost it and gets it again. A job whose end is not awaited (the run stops, the judge does not
    answer) is cancelled.

    Returns:
        None if the judge has no jobs: the release's, or one that loses them repeatedly.

    Raises:
        JudgeError: the judge failed in spite of retries, or refused the job.
        Interrupted: the run was stopped.
    """
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = request.model_dump(exclude={"request": _V1_ONLY})
    for _ in range(_MAX_FORGOTTEN):
        answer = connection.ask("POST", "/v2/jobs", timeout_s=_ANSWER_S, body=body, headers=headers)
        if answer.status_code in (404, 405):
            return None
        ticket = connection.read(answer, JobTicket)
        ended = _follow(connection, f"/v2/jobs/{ticket.id}")
        if ended is not None:
            return ended
        logger.warning("the judge at %s does not know job %s any more", connection.url, ticket.id)
    logger.warning(
        "the judge at %s loses its jobs (does it run with several WORKERS?); continuing without jobs",
        connection.url,
    )
    return None


def _follow(connection: Connection, path: str) -> JobAnswer | None:
    """Wait for a job's end; None if the judge does not know the job (any more)."""
    over, warned = False, False
    try:
        while True:
            answer = connection.ask("GET", f"{path}?wait={_POLL_S}", timeout_s=_POLL_S + _ANSWER_S)
            if answer.status_code == 404:
                over = True
                return None
            job = connection.read(answer, JobAnswer)
            if job.state not in ("queued", "running"):
                over = True
                return job
            if job.reason and not warned:
                logger.warning("a job waits at %s: %s", connection.url, job.reason)
                warned = True
            if connection.stopped():
                raise Interrupted("stopped while waiting for the judge")
    finally:
        if not over:
            connection.delete(path)
