"""A slot for jobs of kind ``compile``: works without a device, on judges with and without a GPU."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import threading
from typing import Any

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.wire import CompileReport, EvaluationRequest
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled
from online_judge.processes.pool import Pool, ReadyProcess
from online_judge.processes.process_handle import Report
from online_judge.protocol.channel import Channel, FrameError, is_readable
from online_judge.protocol.findings import Failure, Stage
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings
from online_judge.slots.conversation import WHOLE_MESSAGE_S, Attempts, ProcessLost, converse
from online_judge.slots.devices import Device
from online_judge.slots.jobs import EvaluationJob
from online_judge.slots.time_limits import CandidateTimeout, TimeLimits
from online_judge.verdict import compile_report

log = logging.getLogger(__name__)

_ANSWER_BYTES = 2**20
_MAX_ARMED = 2
_folder_numbers = itertools.count(1)


def compile_slots(
    fork_client: ForkClient, settings: Settings, compile_target: str, cores: tuple[int, ...] = ()
) -> list[CompileSlot]:
    """As many slots as the settings or the cores say; they share processes, which begin to get ready.

    Their processes run on ``cores``, or on any.
    """
    count = settings.compile_slots or max(1, (os.cpu_count() or 1) // 4)

    def fresh() -> ProcessSpec:
        folder = fork_client.home / f"compile-{next(_folder_numbers)}"
        folder.mkdir(mode=0o700, parents=True)
        return ProcessSpec(str(folder), "cpu", "", compile_target, role="compiler", cores=cores)

    ready = _MAX_ARMED if settings.armed_players is None else settings.armed_players
    pool = Pool(fork_client, fresh, min(count, ready))
    pool.fill()
    return [CompileSlot(fork_client, pool, settings, compile_target) for _ in range(count)]


class CompileSlot:
    """Compiles one candidate at a time; its methods block and are called from one thread at a time."""

    def __init__(self, fork_client: ForkClient, pool: Pool, settings: Settings, compile_target: str) -> None:
        """Start nothing yet; ``pool`` has processes that execute no kernel."""
        self.device = Device(0, "cpu", "", f"compiler ({compile_target})")
        self.stage_seconds: dict[str, float] = {}  # of the latest job
        self._forks = fork_client
        self._pool = pool
        self._settings = settings

    def close(self) -> None:
        """End the processes that wait, for all slots that share them."""
        self._pool.close()

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> CompileReport:
        """Do a job of kind ``compile``; see :meth:`compile`."""
        assert isinstance(job.request, EvaluationRequest)
        return self.compile(job.request, cancelled)

    def compile(self, request: EvaluationRequest, cancelled: threading.Event) -> CompileReport:
        """Load and call a candidate once on tensors without data, each launch compiled and none executed.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge's own processes died twice.
            Cancelled: ``cancelled`` was set.
        """
        attempts = Attempts(self._forks)
        while attempts.another():
            with attempts.attempt():
                ready = self._pool.take(cancelled)
                if ready is None:
                    raise Cancelled
                report = self._compile_once(ready, request, cancelled, last=not attempts.are_left)
                if report is not None:
                    return report
                log.warning("a process died from a signal: the compilation is tried once more")
        raise JudgeError("the judge's own processes died twice before this compilation; try again")

    def _compile_once(
        self, ready: ReadyProcess, request: EvaluationRequest, cancelled: threading.Event, *, last: bool
    ) -> CompileReport | None:
        """Give a process its job and end it; None where a signal killed it and it was not the last try."""
        cap = self._settings.runtime_timeout_s
        limit_s = cap if request.timeout is None else min(request.timeout, cap)
        limits = TimeLimits(limit_s)
        self.stage_seconds = limits.stage_seconds
        order = {
            "reference": request.original_model_src,
            "source": request.custom_model_src,
            "dtype": request.dtype_str,
            "tf32": request.tf32,
        }
        end: dict[str, Any] | None = None
        timed_out = lost = False
        try:
            with ready.connection:
                end = converse(_Compiler(ready), order, [], limits, cancelled)
        except CandidateTimeout:
            timed_out = True
        except ProcessLost as error:
            log.debug("a compile process is gone: %s", error)
            lost = True
        finally:
            ended = ready.process.end(self._forks, seems_dead=lost)
            shutil.rmtree(ready.folder, ignore_errors=True)
        if timed_out:
            return compile_report.timed_out(limit_s, limits.stage)
        if end is None:
            return None if ended.died and not last else self._gone(ended, limits)
        if "reference_failed" in end and limits.whose == "reference":
            raise ProblemError(str(end["reference_failed"]))
        failed = Failure.from_claim(limits.stage, end["failed"]) if "failed" in end else None
        return compile_report.compiled(failed, request.custom_model_src, str(ready.folder))

    def _gone(self, ended: Report, limits: TimeLimits) -> CompileReport:
        """Return the report on a process that ended without a result."""
        if limits.whose == "reference":
            raise ProblemError(f"the process that ran the reference ended {ended.how}")
        return compile_report.process_gone(ended.how, limits.stage, out_of_memory=ended.out_of_memory)


class _Compiler:
    """A compile process in a conversation; the candidate runs in it, so its messages are not trusted."""

    def __init__(self, ready: ReadyProcess) -> None:
        self._ready = ready
        self._channel = Channel(ready.connection, _ANSWER_BYTES, max_fds=0, limit_s=WHOLE_MESSAGE_S)

    @property
    def stopped(self) -> bool:
        """Return False: a process that is stopped runs into its time limit."""
        return False

    def order(self, order: dict[str, Any], fds: list[int]) -> None:
        """Send it the job."""
        self._channel.send_json(order, fds)

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """Return its next message in the form that conversations have."""
        if not is_readable(timeout_s, self._channel):
            return None
        message, _ = self._channel.receive_json()
        if isinstance(message.get("end"), dict):
            return {"result": message["end"]}
        if message.get("stage") not in (Stage.LOAD.value, Stage.CONSTRUCT.value, Stage.FORWARD.value):
            raise FrameError("neither a stage nor an end")
        return {"clock": "candidate", "stage": message["stage"]}
