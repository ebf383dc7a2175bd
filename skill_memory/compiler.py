"""The compile stage of the configured judge, or of a judge started for it."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.environment import TritonFacts
from adaexplore.core.errors import JudgeError
from adaexplore.core.wire import CompileReport, EvaluationRequest, JobRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.http import environment_of
from adaexplore.judge_client.jobs import run_job

_ANSWER_S = 30.0
_LIMIT_S = 120


@dataclass(frozen=True)
class Compiler:
    """A compiler of candidates on a judge; JudgeError if the judge failed or has no compile stage."""

    connection: Connection
    triton: str
    target: str

    def __call__(self, reference: str, source: str) -> CompileReport | None:
        """Return the report on ``source``; None if the reference itself fails."""
        request = EvaluationRequest(
            original_model_src=reference, custom_model_src=source, timeout=_LIMIT_S, tf32="off"
        )
        answer = run_job(self.connection, JobRequest(kind="compile", request=request))
        if answer is None:
            raise JudgeError(
                f"the judge at {self.connection.url} has no compile stage; use a judge of this version"
            )
        return answer.report if isinstance(answer.report, CompileReport) else None

    def facts(self) -> TritonFacts | None:
        """Return the facts about its Triton; None if the judge does not state them."""
        environment = environment_of(self.connection)
        return None if environment is None else environment.triton


@contextmanager
def open_compiler(target: str, *, url: str | None = None, token: str | None = None) -> Iterator[Compiler]:
    """Open the compile stage of the judge at ``url``, or of one started here on the CPU.

    Args:
        target: the architecture, such as ``sm_90``.
        url: a running judge, which must compile for ``target``.
        token: the token that requests to it need.

    Raises:
        JudgeError: it cannot be reached or started, or it compiles for another target.
    """
    if url is not None:
        with open_client() as client:
            yield _compiler(Connection(url, token=token, client=client), target)
        return
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="adaexplore-compiler-") as folder:
        log = Path(folder) / "judge.log"
        with (
            embedded_judge(
                device="cpu", compile_target=target, gpu_ids=(), workers=1, seed=0, log_path=log, token=token
            ) as own,
            open_client() as client,
        ):
            connection = Connection(
                own, token=token, own_log=log, client=client, sleep=threading.Event().wait
            )
            yield _compiler(connection, target)


def _compiler(connection: Connection, target: str) -> Compiler:
    health = connection.object_in(connection.get("/health", _ANSWER_S))
    versions = health.get("versions")
    triton = versions.get("triton") if isinstance(versions, dict) else None
    found = str(health.get("compile_target") or target)
    if found != target:
        raise JudgeError(f"the judge at {connection.url} compiles for {found}, not for {target}")
    return Compiler(connection, str(triton or "unknown"), target)
