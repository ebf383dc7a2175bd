"""A judge's compile stage at hand: the judge that is configured, or one started for the purpose."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import JudgeError
from adaexplore.core.wire import CompileReport, EvaluationRequest, JobRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.jobs import run_job

_ANSWER_S = 30.0
_LIMIT_S = 120


@dataclass(frozen=True)
class Compiler:
    """Compiles candidates on a judge.

    Attributes:
        connection: to the judge.
        triton: its version of Triton.
        target: the architecture that it compiles for.
    """

    connection: Connection
    triton: str
    target: str

    def __call__(self, reference: str, source: str) -> CompileReport | None:
        """The report on ``source``; None where the reference itself fails.

        Raises:
            JudgeError: the judge failed, or has no compile stage.
        """
        request = EvaluationRequest(
            original_model_src=reference, custom_model_src=source, timeout=_LIMIT_S, tf32="off"
        )
        answer = run_job(self.connection, JobRequest(kind="compile", request=request))
        if answer is None:
            raise JudgeError(
                f"the judge at {self.connection.url} has no compile stage; use one of this version"
            )
        return answer.report if isinstance(answer.report, CompileReport) else None


@contextmanager
def open_compiler(target: str, *, url: str | None = None, token: str | None = None) -> Iterator[Compiler]:
    """The compile stage of the judge at ``url``, or of one started here on the CPU.

    Args:
        target: the architecture, such as ``sm_90``.
        url: a running judge, which must compile for ``target``.
        token: what requests to it must bear.

    Raises:
        JudgeError: it cannot be reached, cannot be started, or compiles for another target.
    """
    if url is not None:
        yield _compiler(Connection(url, token=token), target)
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
