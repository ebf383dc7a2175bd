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
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.identity import text_digest
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, ProblemTraits, ProfileReport
from online_judge.common import memory_errors
from online_judge.common.cores import ANY_CORE, Cores
from online_judge.processes.device_lock import DeviceLock
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.pool import Pool, ReadyProcess
from online_judge.processes.process_handle import Report
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.findings import Stage
from online_judge.sandbox.process_spec import DeviceKind, ProcessSpec
from online_judge.settings import Settings
from online_judge.slots import build_folders
from online_judge.slots.clean_times import CleanTimes
from online_judge.slots.conversation import Attempts, ContextLost, Lost, ProcessLost, converse
from online_judge.slots.evaluator_handle import EvaluatorHandle
from online_judge.slots.sharing import Cancelled, DeviceSharing, NotEnoughMemory
from online_judge.slots.time_limits import CandidateTimeout, TimeLimits
from online_judge.verdict import feedback, flags
from online_judge.verdict.flags import Flag

log = logging.getLogger(__name__)

_KEPT = {"cpu": 4, "cuda": 2}
"""Evaluators of a slot, one a reference: each holds a CUDA context, about half a GB of the GPU's memory."""
_SPARE_EVALUATORS = {"cpu": 1, "cuda": 2}
"""Evaluators of a device that wait for a reference that no evaluator of a slot knows yet."""
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


class EvaluatorFailed(JudgeError):
    """The judge's own code raised in the evaluator; the text names the exception."""


@dataclass(frozen=True)
class Job:
    """What an evaluator is asked.

    Attributes:
        op: kind of the order.
        request: the problem, and the candidate where there is one.
        limit_s: time of the candidate.
        cancelled: set when no client waits any more.
        more: what only orders of this kind have.
    """

    op: Literal["evaluate", "sweep", "profile", "problem"]
    request: EvaluationRequest | ProblemRequest
    limit_s: int
    cancelled: threading.Event
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Played:
    """What one candidate process and its evaluator left.

    Attributes:
        folder: where the process ran; removed by now.
        report: how it ended.
        result: the evaluator's finding; None where the candidate's time was up.
        gone: whether the process died before the evaluator had a finding.
        timed_out: the stage in which the candidate's time was up; None where it was not.
        sandbox: what was in force around it.
        late: the evaluator's finding after that.
    """

    folder: str
    report: Report
    result: dict[str, Any] | None
    gone: bool
    timed_out: Stage | None
    sandbox: dict[str, Any] | None
    late: dict[str, Any] | None = None


def verdict_of(played: Played, facts: dict[str, Any], limit_s: int) -> Verdict:
    """Return the verdict on a candidate; ``died`` in its metadata says that a signal killed the process.

    Args:
        played: what its evaluation left.
        facts: metadata that every verdict carries.
        limit_s: time that the candidate had.
    """
    facts = facts | {"sandbox": played.sandbox}
    if played.timed_out is not None:
        timeout = feedback.of_timeout(limit_s, played.timed_out)
        return Verdict(status=Status.TIMEOUT, metadata=facts | timeout)
    assert played.result is not None
    printed = feedback.log_tail(feedback.scrub(played.report.log, played.folder))
    tail = {"stdout": printed} if printed else {}
    if played.gone:
        why = played.result["why"]
        stage = Stage(played.result["stage"])
        if played.report.out_of_memory:
            return Verdict(status=Status.OUT_OF_MEMORY, metadata=facts | feedback.of_memory(stage) | tail)
        how = f"({why})" if why else played.report.how
        crash = feedback.of_crash(how, stage) | tail
        died = {"died": True} if played.report.died and not why else {}
        return Verdict(status=Status.CRASH, metadata=facts | crash | died)
    verdict = Verdict.model_validate(played.result["verdict"])
    more = {} if verdict.correct else tail
    if played.report.orphans and verdict.correct:
        evidence = f"{played.report.orphans} processes were left running"
        more = flags.added(verdict.metadata, Flag("background_threads", evidence))
    return verdict.model_copy(update={"metadata": verdict.metadata | more}) if more else verdict


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
        job = self._job("evaluate", request, cancelled, recorded_ms=recorded_ms)
        attempts = self._attempts(job)
        while attempts.another():
            with attempts.attempt() as alone:
                played = self._play(job, request, alone=alone)
                verdict = verdict_of(played, self._facts(request), job.limit_s)
                if memory_errors.explains(verdict):  # even alone
                    self._sharing.forget(request.original_model_src)
                if verdict.status is Status.CRASH and verdict.metadata.get("died") and attempts.are_left:
                    log.warning("a process died from a signal: the job is tried once more")
                    continue
                metadata = {key: value for key, value in verdict.metadata.items() if key != "died"}
                if self.executes:  # elsewhere equal runs are to give equal verdicts
                    seconds = {name: round(spent, 3) for name, spent in self.stage_seconds.items()}
                    metadata["seconds"] = seconds
                return verdict.model_copy(update={"metadata": metadata})
        self._require_harmless_reference(job, attempts.lost)
        if isinstance(attempts.lost, ProcessLost) and attempts.lost.whose != "none":
            crash = feedback.of_crash("together with the judge's own processes, twice,", attempts.lost.stage)
            return Verdict(status=Status.CRASH, metadata=self._facts(request) | crash)
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
        job = replace(
            self._job("sweep", request, cancelled, sweep=wanted.to_json()),
            limit_s=math.ceil(wanted.budget_s) + 1,
        )
        attempts = self._attempts(job, count=1)
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    played = self._play(job, request, alone=alone)
                    found = (played.result or played.late or {}).get("swept")
                    return None if found is None else Swept.from_json(found)
        except (NotEnoughMemory, EvaluatorFailed) as error:
            log.warning("a sweep ended early: %s", str(error) or "too little memory")
        return None

    def profile(self, request: EvaluationRequest, cancelled: threading.Event) -> ProfileReport:
        """Find out where a candidate spends its time.

        Raises:
            ProblemError, JudgeError, Cancelled: as :meth:`evaluate`.
        """
        if not self.executes:
            return ProfileReport(
                status=Status.NOT_CHECKED.value, profile=None, message="profiles need a judge with a GPU"
            )
        job = self._job("profile", request, cancelled)
        attempts = self._attempts(job)
        while attempts.another():
            with attempts.attempt() as alone:
                played = self._play(job, request, alone=alone)
                if played.timed_out is not None:
                    why = f"not done after {job.limit_s} s during {played.timed_out.value}"
                    return ProfileReport(status=Status.TIMEOUT.value, profile=None, message=why)
                assert played.result is not None
                if played.gone:
                    why = f"the process ended {played.report.how}"
                    return ProfileReport(status=Status.CRASH.value, profile=None, message=why)
                return ProfileReport.model_validate(played.result["report"])
        self._require_harmless_reference(job, attempts.lost)
        raise JudgeError("the judge's own processes failed twice at this profile; try again")

    def check_problem(self, request: ProblemRequest, cancelled: threading.Event) -> ProblemTraits | None:
        """Load the reference and run it once, or several times for a thorough look.

        Returns:
            What that look found; None where none was asked for.

        Raises:
            ProblemError: it fails or is too large here.
            JudgeError, Cancelled: as :meth:`evaluate`.
        """
        job = self._job("problem", request, cancelled)
        attempts = self._attempts(job)
        while attempts.another():
            with attempts.attempt() as alone:
                traits = self._check(job, alone=alone).get("traits")
                return None if traits is None else ProblemTraits.model_validate(traits)
        self._raise_for_lost(attempts.lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _job(
        self,
        op: Literal["evaluate", "sweep", "profile", "problem"],
        request: EvaluationRequest | ProblemRequest,
        cancelled: threading.Event,
        **more: Any,
    ) -> Job:
        cap = self._settings.runtime_timeout_s
        limit_s = cap if request.timeout is None else min(request.timeout, cap)
        return Job(op, request, limit_s, cancelled, more)

    def _attempts(self, job: Job, count: int = 2) -> Attempts:
        return Attempts(self._forks, self._sharing, job.request.original_model_src, job.cancelled, count)

    def _check(self, job: Job, *, alone: bool) -> dict[str, Any]:
        """Return what an evaluator finds about a problem with no candidate attached."""
        evaluator = self._evaluator_of(job)
        try:
            result = self._converse(evaluator, job, self._order(job, alone=alone))
        except Cancelled:
            evaluator.end()  # the reference runs in it and cannot be interrupted
            raise
        evaluator.rest()
        self._raise_for_reference(result, evaluator)
        return result

    def _require_harmless_reference(self, job: Job, lost: Lost | None) -> None:
        """Where an evaluator died at the reference's work, run the reference once with no candidate attached.

        Raises:
            ProblemError: the reference fails, or ends its process.
            JudgeError: the evaluator lost its CUDA context twice.
            Cancelled: as :meth:`evaluate`.
        """
        if isinstance(lost, ContextLost):
            raise lost.final
        if not isinstance(lost, ProcessLost) or lost.whose != "reference":
            return
        request = ProblemRequest(
            original_model_src=job.request.original_model_src,
            dtype_str=job.request.dtype_str,
            seed_num=job.request.seed_num,
        )
        check = replace(job, op="problem", request=request, more={})
        attempts = self._attempts(check, count=1)
        while attempts.another():
            with attempts.attempt() as alone:
                self._check(check, alone=alone)
                return
        self._raise_for_lost(attempts.lost)
        if attempts.lost is None:
            raise JudgeError("the judge's fork server died while it ran the reference; try again")

    def _evaluator_of(self, job: Job) -> EvaluatorHandle:
        """Return the evaluator that serves this reference and no other; a new one where there is none.

        Raises:
            Cancelled: the job was cancelled.
            ForkServerLost, JudgeError: none can be started.
        """
        key = text_digest(job.request.original_model_src)
        known = self._evaluators.pop(key, None)
        if known is None:
            known, self._blank = self._blank, None
        if known is None or not known.wake():
            if known is not None:
                known.end()
            known = self._new_evaluator(job.cancelled)
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

    def _play(self, job: Job, request: EvaluationRequest, *, alone: bool) -> Played:
        """Bring the evaluator and a fresh process together; afterwards nothing of the process is left.

        Raises:
            ProblemError: the reference fails or takes too long.
            Cancelled, NotEnoughMemory, Lost, ForkServerLost: there is no result.
        """
        evaluator = self._evaluator_of(job)
        ready = self._take_candidate(request, job.cancelled)
        result: dict[str, Any] | None = None
        late: dict[str, Any] | None = None
        timed_out: Stage | None = None
        sandbox = self._in_force(ready)
        clean = CleanTimes.key(request)
        order = {
            "build_dir": build_folders.made(request.build_dir, self._settings.build_dir),
            "folder": str(ready.folder),
            "clean_ms": self._known.get(clean),
            "recorded_ms": None,
            "job": "" if self._settings.repeatable else secrets.token_hex(8),
            "facts": self._facts(request) | {"sandbox": sandbox},
        } | self._order(job, alone=alone)
        try:
            with ready.connection:
                result = self._converse(evaluator, job, order, ready)
        except CandidateTimeout as timeout:
            timed_out = timeout.stage
        finally:
            gone = result is not None and result["kind"] == "candidate_gone"
            report = ready.process.end(self._forks, seems_dead=gone)
            shutil.rmtree(ready.folder, ignore_errors=True)
            if result is None:
                late = evaluator.settle()
            evaluator.rest()
        if timed_out is not None and late is None:  # the evaluator did not notice its process's end: it hung
            raise ProcessLost("candidate", timed_out)
        if result is not None:
            self._raise_for_reference(result, evaluator)
            self._known.note(clean, result.get("clean_ms"))
        return Played(str(ready.folder), report, result, gone, timed_out, sandbox, late)

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

    def _order(self, job: Job, *, alone: bool) -> dict[str, Any]:
        words = f"{text_digest(job.request.original_model_src)}:{job.request.seed_num}".encode()
        return {
            "op": job.op,
            "request": job.request.model_dump(mode="json", exclude={"kernel_code"}),
            # the key of this problem's hidden seeds: all that evaluators know of the secret
            "seeds": hmac.new(self._settings.secret, words, hashlib.sha256).hexdigest(),
            "alone": alone,
        } | job.more

    def _converse(
        self, evaluator: EvaluatorHandle, job: Job, order: dict[str, Any], ready: ReadyProcess | None = None
    ) -> dict[str, Any]:
        """Have the evaluator do a job, with a candidate process or none; one that fails at it is ended."""
        limits = TimeLimits(job.limit_s, self._lock.stopped_s, evaluator.waited_s)
        self.stage_seconds = limits.stage_seconds
        evaluator.attach(ready.supervisor if ready is not None else 0)
        fds = [ready.connection.fileno()] if ready is not None else []
        try:
            return converse(evaluator, order, fds, limits, job.cancelled)
        except (ProcessLost, ProblemError):
            evaluator.end()
            raise

    def _in_force(self, ready: ReadyProcess) -> dict[str, Any] | None:
        """Return the sandbox around a candidate, with the level of the evaluator's."""
        found = _public(ready.process.sandbox(0))
        return None if found is None else found | {"evaluator": self._forks.evaluator_level}

    def _facts(self, request: EvaluationRequest) -> dict[str, Any]:
        """Metadata that every verdict carries."""
        cuda = self.device.kind == "cuda"
        device = f"cuda:{self.device.id}" if cuda else "cpu"
        facts = {"hardware": self.device.hardware, "device": device}
        return facts | feedback.of_precision(request.tf32, cuda=cuda)

    def _raise_for_lost(self, lost: Lost | None) -> None:
        """Raise for an evaluator that was lost while no candidate was attached."""
        if isinstance(lost, ContextLost):
            raise lost.final
        if isinstance(lost, ProcessLost) and lost.whose == "reference":
            raise ProblemError("the process that ran the reference died twice, also without a candidate")

    def _raise_for_reference(self, result: dict[str, Any], evaluator: EvaluatorHandle) -> None:
        """Raise for a result that is no finding about the candidate."""
        if result["kind"] == "not_enough_memory":
            raise NotEnoughMemory
        final: JudgeError
        if result["kind"] == "judge_failed":
            evaluator.end()  # the exception may have left it in any state
            final = EvaluatorFailed(f"the judge failed: {result['error']}")
        elif result["kind"] == "reference_failed":
            final = ProblemError(str(result["reason"]))
        else:
            return
        if result["broken"]:
            evaluator.end()
            raise ContextLost(final)
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
