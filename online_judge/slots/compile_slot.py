"""A slot for jobs of kind ``compile``; it needs no device."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import CompileReport, EvaluationRequest
from online_judge.checks.facts.findings import Failure
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol.channel import Channel, FrameError, is_readable
from online_judge.protocol.messages import Clock
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings
from online_judge.slots.conversation import (
    WHOLE_MESSAGE_S,
    Attempts,
    CandidateTimeout,
    ProcessLost,
    TimeLimits,
    converse,
)
from online_judge.slots.devices import Device
from online_judge.verdict import reports

log = logging.getLogger(__name__)

_ANSWER_BYTES = 2**23  # PTX included
_MAX_READY = 2
_TOLD = {"original_model_src", "custom_model_src", "dtype_str", "tf32", "asm", "direction"}
"""Fields of a request that the compile process gets; hidden workloads are not among them."""


def compile_slots(
    fork_client: ForkClient, settings: Settings, compile_target: str, cores: tuple[int, ...] = ()
) -> list[CompileSlot]:
    """Make the compile slots, and start the processes that they share on ``cores``."""
    count = settings.compile_slots or max(1, (os.cpu_count() or 1) // 4)
    ready = _MAX_READY if settings.ready_processes is None else settings.ready_processes
    spec = ProcessSpec("", "cpu", "", compile_target, role="compiler", cores=cores)
    pool = Pool(fork_client, spec, min(count, ready))
    pool.fill()
    device = Device(0, "cpu", "", f"compiler ({compile_target})")
    return [CompileSlot(device, fork_client, pool, settings) for _ in range(count)]


@dataclass(eq=False)
class CompileSlot:
    """Compiles one candidate at a time; its methods block, and one thread at a time may call them."""

    device: Device
    _forks: ForkClient
    _pool: Pool  # of processes that execute no kernel
    _settings: Settings
    stage_seconds: dict[str, float] = field(default_factory=dict, init=False)  # of the latest job

    def close(self) -> None:
        """End the waiting processes of all compile slots."""
        self._pool.close()

    def compile(self, request: EvaluationRequest, cancelled: threading.Event) -> CompileReport:
        """Load a candidate and call it once on tensors without data; launches are compiled, not executed.

        Raises as :func:`online_judge.slots.jobs.run` does.
        """
        attempts = Attempts(self._forks)
        while attempts.another():
            with attempts.attempt():
                process = self._pool.take(cancelled)
                report = self._compile_once(process, request, cancelled, last=not attempts.are_left)
                if report is not None:
                    return report
                log.warning("a process died from a signal: the compilation is tried again")
        raise JudgeError("the judge's own processes died twice before this compilation; try again")

    def _compile_once(
        self, process: ProcessHandle, request: EvaluationRequest, cancelled: threading.Event, *, last: bool
    ) -> CompileReport | None:
        """Have a process do the job, then end it; None if a signal killed it before the last attempt."""
        limit_s = self._settings.limit_s(request.timeout)
        limits = TimeLimits(limit_s)
        self.stage_seconds = limits.stage_seconds
        end: dict[str, object] | None = None
        timed_out = lost = False
        try:
            end = converse(_Compiler(process), request, [], limits, cancelled)
        except CandidateTimeout:
            timed_out = True
        except ProcessLost as error:
            log.debug("a compile process is gone: %s", error)
            lost = True
        finally:
            ended = process.end(seems_dead=lost)
        if timed_out:
            return reports.compilation_timed_out(limit_s, limits.stage)
        if end is None:
            if ended.died and not last:
                return None
            if limits.whose == "reference":
                raise ProblemError(f"the process that ran the reference ended {ended.how}")
            return reports.compiler_gone(ended.how, limits.stage, out_of_memory=ended.out_of_memory)
        if "reference_failed" in end and limits.whose == "reference":
            raise ProblemError(str(end["reference_failed"]))
        failed = Failure.from_claim(limits.stage, end["failed"]) if "failed" in end else None
        asm = reports.asm_of(end.get("asm")) if request.asm else None
        return reports.compiled(failed, request.custom_model_src, str(process.folder), asm)


class _Compiler:
    """A compile process as a peer. The candidate runs in it, so its messages are not trusted."""

    stopped = False  # a stopped one runs into its time limit

    def __init__(self, process: ProcessHandle) -> None:
        self._channel = Channel(process.connection, _ANSWER_BYTES, max_fds=0, limit_s=WHOLE_MESSAGE_S)

    def order(self, order: EvaluationRequest, fds: Sequence[int]) -> None:
        self._channel.send_json(order.model_dump(include=_TOLD), fds)

    def hear(self, timeout_s: float) -> Clock | dict[str, Any] | None:
        if not is_readable(timeout_s, self._channel):
            return None
        message, _ = self._channel.receive_json()
        end = message.get("end")
        if isinstance(end, dict):
            return end
        if message.get("stage") not in (Stage.LOAD.value, Stage.CONSTRUCT.value, Stage.FORWARD.value):
            raise FrameError("neither a stage nor an end")
        return Clock(clock="candidate", stage=Stage(message["stage"]))
