"""One slot of one device: brings an evaluator and a process together and watches over both."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import logging
import math
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.identity import text_digest
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, ProblemTraits, ProfileReport
from online_judge.common import memory_errors
from online_judge.common.cores import ANY_CORE, Cores
from online_judge.processes.device_lock import DeviceLock
from online_judge.processes.fork_client import Attempts, ForkClient, ForkServerLost
from online_judge.processes.pool import Pool, ReadyProcess
from online_judge.processes.process_handle import Report
from online_judge.protocol.channel import ChannelClosed
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.findings import Stage
from online_judge.protocol.result import EvaluationResult, ProfileResult
from online_judge.sandbox.process_spec import DeviceKind, ProcessSpec
from online_judge.settings import Settings
from online_judge.slots import build_folders
from online_judge.slots.clean_times import CleanTimes
from online_judge.slots.evaluator_handle import WHOLE_MESSAGE_S, EvaluatorHandle
from online_judge.slots.sharing import Cancelled, DeviceSharing, NotEnoughMemory
from online_judge.slots.time_limits import CandidateTimeout, ReferenceTimeout, TimeLimits
from online_judge.verdict import assemble, profile_report
from online_judge.verdict.assemble import ProcessEnd, Target

log = logging.getLogger(__name__)

_KEPT = {"cpu": 4, "cuda": 2}
"""Evaluators of a slot, one a reference: each holds a CUDA context, about half a GB of the GPU's memory."""
_SPARE_EVALUATORS = {"cpu": 1, "cuda": 2}
"""Evaluators of a device that wait for a reference that no evaluator of a slot knows yet."""
_LOOK_S = 0.25
_ASLEEP_S = WHOLE_MESSAGE_S + 2.0
"""A gap between two looks at an evaluator that only a stop of the gateway explains."""
_job_numbers = itertools.count(1)


@dataclass(frozen=True)
class Device:
    """A device that evaluations run on.

    Attributes:
        id: number towards clients.
        kind: ``cuda`` or ``cpu``.
        visible_devices: value of ``CUDA_VISIBLE_DEVICES`` for processes that use it.
        hardware: its name.
        cores: of the CPU, for its processes.
    """

    id: int
    kind: DeviceKind
    visible_devices: str
    hardware: str
    cores: Cores = ANY_CORE


class _Lost(Exception):
    """The evaluator is of no use any more: the job is done once more with another."""


class _ContextLost(_Lost):
    """The evaluator's CUDA context is broken; ``final`` is raised if that happens again."""

    def __init__(self, final: JudgeError) -> None:
        super().__init__(f"an evaluator lost its CUDA context: {final}")
        self.final = final


class _EvaluatorFailed(JudgeError):
    """The judge's own code raised in the evaluator; the text names the exception."""


class _EvaluatorLost(_Lost):
    """The evaluator died, was stopped or said nonsense, in the time of ``whose``."""

    def __init__(self, whose: str, stage: Stage) -> None:
        super().__init__(f"an evaluator died in the time of the {whose}")
        self.whose = whose
        self.stage = stage


@dataclass(frozen=True)
class _Played:
    """What came of one process.

    Attributes:
        folder: where it ran; gone by now.
        report: how it ended.
        result: the evaluator's finding; None where the candidate's time was up.
        gone: whether it died before the evaluator had one.
        timed_out: the stage in which the candidate's time was up; None where it was not.
        sandbox: what was in force around it.
        late: what the evaluator still said after that.
    """

    folder: str
    report: Report
    result: dict[str, Any] | None
    gone: bool
    timed_out: Stage | None
    sandbox: dict[str, Any] | None
    late: dict[str, Any] | None = None


class DeviceSlot:
    """One slot; its methods block and are called from one thread at a time."""

    def __init__(
        self,
        fork_client: ForkClient,
        device: Device,
        settings: Settings,
        pools: Pools,
        sharing: DeviceSharing,
        known: CleanTimes,
    ) -> None:
        """Start nothing yet; what is not the slot's own is shared by all slots of the device."""
        self.device = device
        self.stage_seconds: dict[str, float] = {}  # of the latest job
        self._forks = fork_client
        self._settings = settings
        self._pool = pools.candidates
        self._sharing = sharing
        self._known = known
        self._lock = DeviceLock(lock_file(fork_client, device))
        self._evaluator_pool = pools.evaluators
        self._evaluators: OrderedDict[str, EvaluatorHandle] = OrderedDict()  # by reference, the latest last
        self._blank: EvaluatorHandle | None = None
        sharing.on_alone.append(self._forget)

    def start(self) -> None:
        """Have an evaluator get ready; without this the first evaluation waits for it.

        Raises:
            JudgeError: none can be started here.
        """
        self._blank = self._new_evaluator(threading.Event())

    def evaluate(
        self, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
    ) -> Verdict:
        """Judge one candidate.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge's own code raised, or its processes died twice, and in nobody's time.
            Cancelled: ``cancelled`` was set.
        """
        limit_s = self._limit_s(request.timeout)
        lost: _Lost | None = None
        once = partial(self._evaluate_once, request, recorded_ms, limit_s, cancelled)
        attempts = Attempts(self._forks)
        while attempts.another():
            try:
                verdict = self._sharing.use(request.original_model_src, cancelled, once)
            except (_Lost, ForkServerLost) as error:
                log.error("an attempt at a job ended early: %s", error)
                lost = error if isinstance(error, _Lost) else None
                continue
            if memory_errors.explains(verdict):  # even alone
                self._sharing.forget(request.original_model_src)
            if verdict.status is Status.CRASH and verdict.metadata.get("died") and attempts.are_left:
                log.warning("a process died from a signal: the job is tried once more")
                continue
            metadata = {key: value for key, value in verdict.metadata.items() if key != "died"}
            if self.device.kind == "cuda":  # elsewhere equal runs are to give equal verdicts
                metadata["seconds"] = {name: round(spent, 3) for name, spent in self.stage_seconds.items()}
            return verdict.model_copy(update={"metadata": metadata})
        self._require_harmless_reference(lost, request, limit_s, cancelled)
        if isinstance(lost, _EvaluatorLost) and lost.whose != "none":
            return assemble.evaluator_died_twice(request, self._target, lost.stage)
        raise JudgeError("the judge's own processes died twice during this evaluation; try again")

    @property
    def executes(self) -> bool:
        """Whether kernels run on the device that they are written for."""
        return self.device.kind == "cuda"

    def sweep(
        self, request: EvaluationRequest, wanted: SweepTerms, cancelled: threading.Event
    ) -> Swept | None:
        """Compare configurations of one candidate; None where the judge's own processes failed at it.

        Raises:
            ProblemError, Cancelled: as :meth:`evaluate`.
        """
        limit_s, more = math.ceil(wanted.budget_s) + 1, {"sweep": wanted.to_json()}

        def once(alone: bool) -> _Played:
            return self._play("sweep", request, None, limit_s, cancelled, alone=alone, more=more)

        try:
            played = self._sharing.use(request.original_model_src, cancelled, once)
        except (NotEnoughMemory, _Lost, _EvaluatorFailed, ForkServerLost) as error:
            log.warning("a sweep ended early: %s", str(error) or "too little memory")
            return None
        result = played.result or played.late
        return None if result is None or "swept" not in result else Swept.from_json(result["swept"])

    def profile(self, request: EvaluationRequest, cancelled: threading.Event) -> ProfileReport:
        """Find out where a candidate spends its time.

        Raises:
            ProblemError, JudgeError, Cancelled: as :meth:`evaluate`.
        """
        if not self.executes:
            return profile_report.without_gpu()
        limit_s = self._limit_s(request.timeout)

        def once(alone: bool) -> _Played:
            return self._play("profile", request, None, limit_s, cancelled, alone=alone)

        lost: _Lost | None = None
        attempts = Attempts(self._forks)
        while attempts.another():
            try:
                played = self._sharing.use(request.original_model_src, cancelled, once)
            except (_Lost, ForkServerLost) as error:
                log.warning("a profile failed: %s", error)
                lost = error if isinstance(error, _Lost) else None
                continue
            if played.timed_out is not None:
                return profile_report.timed_out(limit_s, played.timed_out)
            assert played.result is not None
            if played.gone:
                return profile_report.process_gone(played.report.how)
            found = ProfileResult.from_json(played.result["profile"])
            return profile_report.profiled(found, played.folder)
        self._require_harmless_reference(lost, request, limit_s, cancelled)
        raise JudgeError("the judge's own processes failed twice at this profile; try again")

    def check_problem(self, request: ProblemRequest, cancelled: threading.Event) -> ProblemTraits | None:
        """Load the reference and run it once, or several times for a thorough look.

        Returns:
            What that look found; None where none was asked for.

        Raises:
            ProblemError: it fails or is too large here.
            JudgeError, Cancelled: as :meth:`evaluate`.
        """
        limit_s = self._limit_s(request.timeout)
        once = partial(self._check_once, request, limit_s, cancelled)
        lost: _Lost | None = None
        attempts = Attempts(self._forks)
        while attempts.another():
            try:
                result = self._sharing.use(request.original_model_src, cancelled, once)
            except (_Lost, ForkServerLost) as error:
                log.error("%s", error)
                lost = error if isinstance(error, _Lost) else None
                continue
            traits = result.get("traits")
            return None if traits is None else ProblemTraits.model_validate(traits)
        self._raise_for_lost(lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _check_once(
        self, request: ProblemRequest, limit_s: int, cancelled: threading.Event, alone: bool
    ) -> dict[str, Any]:
        order = {
            "op": "problem",
            "request": request.model_dump(mode="json"),
            "seeds": self._seeds(request),
            "alone": alone,
        }
        evaluator = self._evaluator_of(request.original_model_src, cancelled)
        try:
            result = self._converse(evaluator, order, [], limit_s, cancelled)
        except ReferenceTimeout as timeout:
            evaluator.end()
            raise ProblemError(f"the reference was not done after {timeout}") from None
        except Cancelled:
            evaluator.end()
            raise
        evaluator.rest()
        self._raise_for_reference(result, evaluator)
        return result

    def _require_harmless_reference(
        self, lost: _Lost | None, request: EvaluationRequest, limit_s: int, cancelled: threading.Event
    ) -> None:
        """Where an evaluator died at the reference's work, run the reference once with no candidate attached.

        Raises:
            ProblemError: the reference fails, or ends its process.
            JudgeError: the evaluator lost its CUDA context twice.
            Cancelled: as :meth:`evaluate`.
        """
        if isinstance(lost, _ContextLost):
            raise lost.final
        if not isinstance(lost, _EvaluatorLost) or lost.whose != "reference":
            return
        asked = ProblemRequest(
            original_model_src=request.original_model_src,
            dtype_str=request.dtype_str,
            seed_num=request.seed_num,
        )
        once = partial(self._check_once, asked, limit_s, cancelled)
        try:
            self._sharing.use(request.original_model_src, cancelled, once)
        except _Lost as again:
            self._raise_for_lost(again)

    def _evaluator_of(self, reference: str, cancelled: threading.Event) -> EvaluatorHandle:
        """Return the evaluator that serves this reference and no other; a new one where there is none.

        Raises:
            Cancelled: ``cancelled`` was set.
            ForkServerLost, JudgeError: none can be started.
        """
        key = text_digest(reference)
        known = self._evaluators.pop(key, None)
        if known is None:
            known, self._blank = self._blank, None
        if known is None or not known.wake():
            if known is not None:
                known.end()
            known = self._new_evaluator(cancelled)
        self._evaluators[key] = known
        while len(self._evaluators) > _KEPT[self.device.kind]:
            _, oldest = self._evaluators.popitem(last=False)
            threading.Thread(target=oldest.end, name="end-evaluator", daemon=True).start()
        return known

    def _new_evaluator(self, cancelled: threading.Event) -> EvaluatorHandle:
        process = self._evaluator_pool.take(cancelled)
        if process is None:
            raise Cancelled
        return EvaluatorHandle(process, self._forks, self._lock)

    def _forget(self) -> None:
        """End the evaluators: another slot needs the device's memory."""
        while self._evaluators:
            self._evaluators.popitem()[1].end()

    def close(self) -> None:
        """Let the evaluators go."""
        self._forget()
        if self._blank is not None:
            self._blank.end()

    def _limit_s(self, timeout: int | None) -> int:
        cap = self._settings.runtime_timeout_s
        return cap if timeout is None else min(timeout, cap)

    def _evaluate_once(
        self,
        request: EvaluationRequest,
        recorded_ms: float | None,
        limit_s: int,
        cancelled: threading.Event,
        alone: bool,
    ) -> Verdict:
        played = self._play("evaluate", request, recorded_ms, limit_s, cancelled, alone=alone)
        report = played.report
        if played.timed_out is not None:
            return assemble.timed_out(
                request, self._target, limit_s=limit_s, stage=played.timed_out, sandbox=played.sandbox
            )
        assert played.result is not None
        end = ProcessEnd(
            folder=played.folder,
            how=report.how,
            printed=report.log,
            out_of_memory=report.out_of_memory,
            orphans=report.orphans,
            sandbox=played.sandbox,
        )
        if played.gone:
            why, stage = played.result["why"], Stage(played.result["stage"])
            verdict = assemble.process_gone(request, self._target, stage=stage, why=why, end=end)
            died = report.died and not why and verdict.status is Status.CRASH
            return verdict.model_copy(update={"metadata": verdict.metadata | {"died": True}} if died else {})
        try:
            result = EvaluationResult.from_json(played.result["evaluation"])
        except (KeyError, RecursionError, ValueError) as error:
            raise JudgeError("the evaluator's result cannot be read") from error
        return assemble.evaluated(request, self._target, result, end)

    def _play(
        self,
        op: str,
        request: EvaluationRequest,
        recorded_ms: float | None,
        limit_s: int,
        cancelled: threading.Event,
        *,
        alone: bool,
        more: dict[str, Any] | None = None,
    ) -> _Played:
        """Bring the evaluator and a fresh process together; afterwards nothing of the process is left.

        Raises:
            ProblemError: the reference fails or takes too long.
            Cancelled, NotEnoughMemory, _EvaluatorLost, ForkServerLost: there is no result.
        """
        evaluator = self._evaluator_of(request.original_model_src, cancelled)
        ready = self._take_candidate(request, cancelled)
        result: dict[str, Any] | None = None
        late: dict[str, Any] | None = None
        timed_out: Stage | None = None
        sandbox = self._in_force(ready)
        clean = CleanTimes.key(request)
        order = {
            "op": op,
            "request": request.model_dump(mode="json", exclude={"kernel_code"}),
            "build_dir": build_folders.made(request.build_dir, self._settings.build_dir),
            "folder": str(ready.folder),
            "seeds": self._seeds(request),
            "clean_ms": self._known.get(clean),
            "job": "" if self._settings.repeatable else secrets.token_hex(8),
            "recorded_ms": recorded_ms,
            "facts": {"hardware": self.device.hardware},
            "alone": alone,
        } | (more or {})
        try:
            with ready.connection:
                fd = ready.connection.fileno()
                result = self._converse(evaluator, order, [fd], limit_s, cancelled, ready.supervisor)
        except CandidateTimeout as timeout:
            timed_out = timeout.stage
        except ReferenceTimeout as timeout:
            evaluator.end()
            raise ProblemError(f"the reference was not done after {timeout}") from None
        finally:
            gone = result is not None and result["kind"] == "candidate_gone"
            report = ready.process.end(self._forks, seems_dead=gone)
            shutil.rmtree(ready.folder, ignore_errors=True)
            if result is None:
                late = evaluator.settle()
            evaluator.rest()
        if timed_out is not None and late is None:  # nothing came of its process's end: it did not run itself
            raise _EvaluatorLost("candidate", timed_out)
        if result is not None:
            self._raise_for_reference(result, evaluator)
            self._known.note(clean, result.get("clean_ms"))
        return _Played(str(ready.folder), report, result, gone, timed_out, sandbox, late)

    def _take_candidate(self, request: EvaluationRequest, cancelled: threading.Event) -> ReadyProcess:
        """A process that waits for this candidate: armed before, or started now if the job needs its own."""
        build_dir = build_folders.made(request.build_dir, self._settings.build_dir)
        if build_dir is not None:
            return self._pool.start_now(
                partial(fresh_spec, self._forks, self.device, self._settings, build_dir)
            )
        ready = self._pool.take(cancelled)
        if ready is None:
            raise Cancelled
        return ready

    def _converse(
        self,
        evaluator: EvaluatorHandle,
        order: dict[str, Any],
        fds: list[int],
        limit_s: float,
        cancelled: threading.Event,
        supervisor: int = 0,
    ) -> dict[str, Any]:
        """Give the evaluator an order and wait for its result within everybody's time."""
        watch = TimeLimits(limit_s, self._lock.stopped_s, evaluator.waited_s)
        self.stage_seconds = watch.stage_seconds
        try:
            evaluator.order(order, fds, supervisor)
            looked = time.monotonic()
            while True:
                message = evaluator.hear(0)  # what it said while this process was stopped counts
                if (gap_s := time.monotonic() - looked) > _ASLEEP_S:
                    watch.forgive(gap_s)
                looked = time.monotonic()
                wait_s = min(_LOOK_S, watch.remaining_s())
                if cancelled.is_set():
                    raise Cancelled
                message = message or evaluator.hear(wait_s)
                if message is None and evaluator.stopped:
                    raise ChannelClosed("it was stopped")
                if message is None:
                    continue
                if "result" in message:
                    result: dict[str, Any] = message["result"]
                    watch.switch("none", "")
                    return result
                watch.switch(message["clock"], message["stage"])
        except (ChannelClosed, LookupError, TypeError, ValueError) as error:  # gone, or no honest evaluator
            evaluator.end()
            raise _EvaluatorLost(watch.whose, watch.stage) from error

    def _seeds(self, request: EvaluationRequest | ProblemRequest) -> str:
        """Return the key of this problem's hidden seeds: all that evaluators know of the secret."""
        words = f"{text_digest(request.original_model_src)}:{request.seed_num}".encode()
        return hmac.new(self._settings.secret, words, hashlib.sha256).hexdigest()

    def _in_force(self, ready: ReadyProcess) -> dict[str, Any] | None:
        """Return the sandbox around a candidate, with the level of the evaluator's."""
        found = _public(ready.process.sandbox(0))
        return None if found is None else found | {"evaluator": self._forks.evaluator_level}

    @property
    def _target(self) -> Target:
        cuda = self.device.kind == "cuda"
        return Target(self.device.hardware, f"cuda:{self.device.id}" if cuda else "cpu", cuda)

    def _raise_for_lost(self, lost: _Lost | None) -> None:
        """Raise for an evaluator that was lost while no candidate was attached."""
        if isinstance(lost, _ContextLost):
            raise lost.final
        if isinstance(lost, _EvaluatorLost) and lost.whose == "reference":
            raise ProblemError("the process that ran the reference died twice, also without a candidate")

    def _raise_for_reference(self, result: dict[str, Any], evaluator: EvaluatorHandle) -> None:
        """Raise for a result that is no finding about the candidate."""
        if result["kind"] == "not_enough_memory":
            raise NotEnoughMemory
        final: JudgeError
        if result["kind"] == "judge_failed":
            evaluator.end()  # the exception may have left it in any state
            final = _EvaluatorFailed(f"the judge failed: {result['error']}")
        elif result["kind"] == "reference_failed":
            final = ProblemError(str(result["reason"]))
        else:
            return
        if result["broken"]:
            evaluator.end()
            raise _ContextLost(final)
        raise final


def lock_file(fork_client: ForkClient, device: Device) -> Path:
    """One file per device: for a GPU one that other judges of this user find as well."""
    if device.kind == "cpu":
        return fork_client.home / "cpu.lock"
    name = f"judge-{os.getuid()}-gpu-{device.visible_devices}.lock"
    return Path(tempfile.gettempdir(), name.replace("/", "_"))


@dataclass(frozen=True)
class Pools:
    """Processes of one device that wait for work."""

    candidates: Pool
    evaluators: Pool

    def fill(self) -> None:
        """Begin to make ready what should be."""
        self.candidates.fill()
        self.evaluators.fill()

    def close(self) -> None:
        """End all that wait."""
        self.candidates.close()
        self.evaluators.close()


def pools_of(fork_client: ForkClient, device: Device, settings: Settings) -> Pools:
    """Return the waiting processes of a device."""
    target = settings.armed_players
    if target is None:
        target = 1 if device.kind == "cpu" else max(2, settings.max_concurrent_evals)
    lock = None if device.kind == "cpu" else DeviceLock(lock_file(fork_client, device))
    candidate = partial(fresh_spec, fork_client, device, settings, None)
    evaluator = partial(_evaluator_spec, fork_client, device, settings)
    return Pools(
        Pool(fork_client, candidate, target, lock),
        Pool(fork_client, evaluator, min(target, _SPARE_EVALUATORS[device.kind]), lock, "evaluator"),
    )


def _evaluator_spec(fork_client: ForkClient, device: Device, settings: Settings) -> ProcessSpec:
    return replace(
        fresh_spec(fork_client, device, settings, None),
        role="evaluator",
        timing_cores=device.cores.timing,
        cpu_max_elements=settings.cpu_max_elements,
        cpu_max_flops=settings.cpu_max_flops,
    )


def fresh_spec(
    fork_client: ForkClient, device: Device, settings: Settings, build_dir: str | None
) -> ProcessSpec:
    """A new private folder and the spec of a process in it."""
    folder = fork_client.home / f"job-{next(_job_numbers)}"
    folder.mkdir(mode=0o700, parents=True)  # the judge's own folder may have been cleared away
    return ProcessSpec(
        folder=str(folder),
        device=device.kind,
        visible_devices=device.visible_devices,
        compile_target=settings.compile_target,
        build_dir=build_dir,
        cores=device.cores.others,
    )


def _public(sandbox: dict[str, Any] | None) -> dict[str, Any] | None:
    """The sandbox without what differs from process to process."""
    return None if sandbox is None else sandbox | {"uid": sandbox.get("uid") is not None}
