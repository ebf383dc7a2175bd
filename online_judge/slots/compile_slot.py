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
from online_judge.processes.fork_client import Attempts, ForkClient, ForkServerLost
from online_judge.processes.pool import Pool, ReadyProcess
from online_judge.processes.process_handle import Report
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.protocol.findings import Failure, Stage
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings
from online_judge.slots.device_slot import Device
from online_judge.slots.sharing import Cancelled
from online_judge.slots.time_limits import CandidateTimeout, ReferenceTimeout, TimeLimits
from online_judge.verdict import compile_report

log = logging.getLogger(__name__)

_LOOK_S = 0.25
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

    def compile(self, request: EvaluationRequest, cancelled: threading.Event) -> CompileReport:
        """Load and call a candidate once on tensors without data, each launch compiled and none executed.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge's own processes died twice.
            Cancelled: ``cancelled`` was set.
        """
        attempts = Attempts(self._forks)
        while attempts.another():
            try:
                process = self._pool.take(cancelled)
            except ForkServerLost as error:
                log.error("%s", error)
                continue
            if process is None:
                raise Cancelled
            report = self._play(process, request, cancelled, attempts)
            if report is not None:
                return report
            log.warning("a process died from a signal: the compilation is tried once more")
        raise JudgeError("the judge's own processes died twice before this compilation; try again")

    def _play(
        self, ready: ReadyProcess, request: EvaluationRequest, cancelled: threading.Event, attempts: Attempts
    ) -> CompileReport | None:
        """Give a process its job; afterwards nothing of it is left.

        Returns:
            None when it died from a signal, unless no attempt is left.
        """
        cap = self._settings.runtime_timeout_s
        limit_s = cap if request.timeout is None else min(request.timeout, cap)
        watch = TimeLimits(limit_s)
        end: dict[str, Any] | None = None
        gone = False
        try:
            with ready.connection:
                end = self._converse(Channel(ready.connection, _ANSWER_BYTES), request, watch, cancelled)
        except CandidateTimeout as timeout:
            return compile_report.timed_out(limit_s, timeout.stage)
        except ReferenceTimeout as timeout:
            raise ProblemError(f"the reference was not done after {timeout}") from None
        except (ChannelClosed, FrameError) as error:
            log.debug("a compile process is gone: %s", error)
            gone = True
        finally:
            self.stage_seconds = watch.stage_seconds
            report = ready.process.end(self._forks, seems_dead=gone)
            shutil.rmtree(ready.folder, ignore_errors=True)
        if end is None:
            return self._gone(report, watch) if not attempts.are_left or not report.died else None
        if "reference_failed" in end and watch.whose == "reference":
            raise ProblemError(str(end["reference_failed"]))
        failed = Failure.from_claim(watch.stage, end["failed"]) if "failed" in end else None
        return compile_report.compiled(failed, request.custom_model_src, str(ready.folder))

    def _gone(self, report: Report, watch: TimeLimits) -> CompileReport:
        """What the end of a process without a word means."""
        if watch.whose == "reference":
            raise ProblemError(f"the process that ran the reference ended {report.how}")
        return compile_report.process_gone(report.how, watch.stage, out_of_memory=report.out_of_memory)

    def _converse(
        self, process: Channel, request: EvaluationRequest, watch: TimeLimits, cancelled: threading.Event
    ) -> dict[str, Any]:
        """How the process says it ended, within everybody's time."""
        order = {
            "reference": request.original_model_src,
            "source": request.custom_model_src,
            "dtype": request.dtype_str,
            "tf32": request.tf32,
        }
        process.send_json(order)
        while True:
            wait_s = min(_LOOK_S, watch.remaining_s())
            if cancelled.is_set():
                raise Cancelled
            if not is_readable(wait_s, process):
                continue
            message, _ = process.receive_json()
            if isinstance(message.get("end"), dict):
                watch.remaining_s()
                end: dict[str, Any] = message["end"]
                return end
            stage = message.get("stage")
            if stage not in (Stage.LOAD.value, Stage.CONSTRUCT.value, Stage.FORWARD.value):
                raise FrameError("neither a stage nor an end")
            watch.switch("candidate", stage)
