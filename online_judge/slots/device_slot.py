"""One slot of one device: brings an evaluator and a process together and watches over both."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import secrets
import shutil
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.identity import text_digest
from adaexplore.core.tunables import TUNABLES
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import (
    EvaluationRequest,
    ProblemReport,
    ProblemRequest,
    ProblemTraits,
    ProfileReport,
)
from online_judge.common import memory_errors
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled, GpuLeases, NotEnoughMemory
from online_judge.processes.pool import ReadyProcess
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.findings import Stage
from online_judge.protocol.result import ProfileResult
from online_judge.settings import Settings
from online_judge.slots import build_folders
from online_judge.slots.clean_times import CleanTimes
from online_judge.slots.config_sweep import evaluate_tuned
from online_judge.slots.conversation import Attempts, ContextLost, Lost, ProcessLost, converse
from online_judge.slots.device_processes import DeviceProcesses
from online_judge.slots.devices import Device
from online_judge.slots.evaluator_handle import EvaluatorHandle, Evaluators
from online_judge.slots.jobs import EvaluationJob, Finding
from online_judge.slots.played import Played, verdict_of
from online_judge.slots.time_limits import CandidateTimeout, TimeLimits
from online_judge.verdict import assemble, profile_report
from online_judge.verdict.assemble import Target

log = logging.getLogger(__name__)


class EvaluatorFailed(JudgeError):
    """The judge's own code raised in the evaluator; the text names the exception."""


@dataclass(frozen=True)
class _Query:
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


class DeviceSlot:
    """One slot; its methods block and are called from one thread at a time."""

    def __init__(
        self,
        fork_client: ForkClient,
        device: Device,
        settings: Settings,
        leases: GpuLeases,
        processes: DeviceProcesses,
        known: CleanTimes,
    ) -> None:
        """Start nothing yet; what is not the slot's own is shared by all slots of the device."""
        self.device = device
        self.stage_seconds: dict[str, float] = {}  # of the latest job
        self._forks = fork_client
        self._settings = settings
        self._leases = leases
        self._processes = processes
        self._known = known
        self._evaluators = Evaluators(fork_client, device.kind, processes, leases)
        leases.on_alone.append(self._evaluators.forget)

    def start(self) -> None:
        """Have an evaluator get ready; without this the first evaluation waits for it.

        Raises:
            JudgeError: none can be started here.
        """
        self._evaluators.start()

    def close(self) -> None:
        """End the slot's evaluators."""
        self._evaluators.close()

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        """Do a job; a failing reference is the result of a ``problem``, and raises ProblemError otherwise.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge's own code raised, or its processes died twice in no one's time.
            Cancelled: ``cancelled`` was set.
        """
        request = job.request
        if isinstance(request, EvaluationRequest) and job.kind == "profile":
            return self.profile(request, cancelled)
        if isinstance(request, EvaluationRequest) and job.kind == "candidate":
            if request.tune_s and TUNABLES in request.custom_model_src:
                return evaluate_tuned(self, request, job.recorded_ms, cancelled)
            return self.evaluate(request, job.recorded_ms, cancelled)
        if job.kind == "problem":
            return self._problem_report(request, cancelled)
        raise JudgeError(f"jobs of kind {job.kind} cannot be run here")

    def evaluate(
        self, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
    ) -> Verdict:
        """Judge one candidate.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge's own code raised, or its processes died twice, and in nobody's time.
            Cancelled: ``cancelled`` was set.
        """
        query = self._query("evaluate", request, cancelled, recorded_ms=recorded_ms)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                played = self._play(query, request, alone=alone)
                verdict = verdict_of(played, request, self._target, query.limit_s)
                if memory_errors.explains(verdict):  # even alone
                    self._leases.forget(request.original_model_src)
                if verdict.status is Status.CRASH and verdict.metadata.get("died") and attempts.are_left:
                    log.warning("a process died from a signal: the job is tried once more")
                    continue
                metadata = {key: value for key, value in verdict.metadata.items() if key != "died"}
                if self.executes:  # elsewhere equal runs are to give equal verdicts
                    seconds = {name: round(spent, 3) for name, spent in self.stage_seconds.items()}
                    metadata["seconds"] = seconds
                return verdict.model_copy(update={"metadata": metadata})
        self._require_harmless_reference(query, attempts.lost)
        if isinstance(attempts.lost, ProcessLost) and attempts.lost.whose != "none":
            return assemble.evaluator_died_twice(request, self._target, attempts.lost.stage)
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
        query = replace(
            self._query("sweep", request, cancelled, sweep=wanted.to_json()),
            limit_s=math.ceil(wanted.budget_s) + 1,
        )
        attempts = self._attempts(query, count=1)
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    played = self._play(query, request, alone=alone)
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
            return profile_report.without_gpu()
        query = self._query("profile", request, cancelled)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                played = self._play(query, request, alone=alone)
                if played.timed_out is not None:
                    return profile_report.timed_out(query.limit_s, played.timed_out)
                assert played.result is not None
                if played.gone:
                    return profile_report.process_gone(played.report.how)
                found = ProfileResult.from_json(played.result["profile"])
                return profile_report.profiled(found, played.folder)
        self._require_harmless_reference(query, attempts.lost)
        raise JudgeError("the judge's own processes failed twice at this profile; try again")

    def check_problem(self, request: ProblemRequest, cancelled: threading.Event) -> ProblemTraits | None:
        """Load the reference and run it once, or several times for a thorough look.

        Returns:
            What that look found; None where none was asked for.

        Raises:
            ProblemError: it fails or is too large here.
            JudgeError, Cancelled: as :meth:`evaluate`.
        """
        query = self._query("problem", request, cancelled)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                traits = self._check(query, alone=alone).get("traits")
                return None if traits is None else ProblemTraits.model_validate(traits)
        self._raise_for_lost(attempts.lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _problem_report(
        self, request: EvaluationRequest | ProblemRequest, cancelled: threading.Event
    ) -> ProblemReport:
        asked = ProblemRequest(
            original_model_src=request.original_model_src,
            dtype_str=request.dtype_str,
            seed_num=request.seed_num,
            timeout=request.timeout or self._settings.runtime_timeout_s,
            thorough=isinstance(request, ProblemRequest) and request.thorough,
        )
        reason, traits = "", None
        try:
            traits = self.check_problem(asked, cancelled)
        except ProblemError as error:
            reason = str(error)
        return ProblemReport(
            ok=not reason,
            reason=reason,
            device=self.device.kind,
            hardware=self.device.hardware,
            traits=traits,
        )

    def _query(
        self,
        op: Literal["evaluate", "sweep", "profile", "problem"],
        request: EvaluationRequest | ProblemRequest,
        cancelled: threading.Event,
        **more: Any,
    ) -> _Query:
        cap = self._settings.runtime_timeout_s
        limit_s = cap if request.timeout is None else min(request.timeout, cap)
        return _Query(op, request, limit_s, cancelled, more)

    def _attempts(self, query: _Query, count: int = 2) -> Attempts:
        return Attempts(self._forks, self._leases, query.request.original_model_src, query.cancelled, count)

    def _check(self, query: _Query, *, alone: bool) -> dict[str, Any]:
        """Return what an evaluator finds about a problem with no candidate attached."""
        evaluator = self._evaluators.of(query.request.original_model_src, query.cancelled)
        try:
            result = self._converse(evaluator, query, self._order(query, alone=alone))
        except Cancelled:
            evaluator.end()  # the reference runs in it and cannot be interrupted
            raise
        evaluator.rest()
        self._raise_for_reference(result, evaluator)
        return result

    def _require_harmless_reference(self, query: _Query, lost: Lost | None) -> None:
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
            original_model_src=query.request.original_model_src,
            dtype_str=query.request.dtype_str,
            seed_num=query.request.seed_num,
        )
        check = replace(query, op="problem", request=request, more={})
        attempts = self._attempts(check, count=1)
        while attempts.another():
            with attempts.attempt() as alone:
                self._check(check, alone=alone)
                return
        self._raise_for_lost(attempts.lost)
        if attempts.lost is None:
            raise JudgeError("the judge's fork server died while it ran the reference; try again")

    def _play(self, query: _Query, request: EvaluationRequest, *, alone: bool) -> Played:
        """Bring the evaluator and a fresh process together; afterwards nothing of the process is left.

        Raises:
            ProblemError: the reference fails or takes too long.
            Cancelled, NotEnoughMemory, Lost, ForkServerLost: there is no result.
        """
        evaluator = self._evaluators.of(query.request.original_model_src, query.cancelled)
        build_dir = build_folders.made(request.build_dir, self._settings.build_dir)
        ready = self._processes.candidate(build_dir, query.cancelled)
        result: dict[str, Any] | None = None
        late: dict[str, Any] | None = None
        timed_out: Stage | None = None
        sandbox = self._in_force(ready)
        clean = CleanTimes.key(request)
        order = {
            "build_dir": build_dir,
            "folder": str(ready.folder),
            "clean_ms": self._known.get(clean),
            "recorded_ms": None,
            "job": "" if self._settings.repeatable else secrets.token_hex(8),
            "facts": {"hardware": self.device.hardware},
        } | self._order(query, alone=alone)
        try:
            with ready.connection:
                result = self._converse(evaluator, query, order, ready)
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

    def _order(self, query: _Query, *, alone: bool) -> dict[str, Any]:
        words = f"{text_digest(query.request.original_model_src)}:{query.request.seed_num}".encode()
        return {
            "op": query.op,
            "request": query.request.model_dump(mode="json", exclude={"kernel_code"}),
            # the key of this problem's hidden seeds: all that evaluators know of the secret
            "seeds": hmac.new(self._settings.secret, words, hashlib.sha256).hexdigest(),
            "alone": alone,
        } | query.more

    def _converse(
        self,
        evaluator: EvaluatorHandle,
        query: _Query,
        order: dict[str, Any],
        ready: ReadyProcess | None = None,
    ) -> dict[str, Any]:
        """Have the evaluator do a job, with a candidate process or none; one that fails at it is ended."""
        limits = TimeLimits(query.limit_s, self._leases.stopped_s, evaluator.waited_s)
        self.stage_seconds = limits.stage_seconds
        evaluator.attach(ready.supervisor if ready is not None else 0)
        fds = [ready.connection.fileno()] if ready is not None else []
        try:
            return converse(evaluator, order, fds, limits, query.cancelled)
        except (ProcessLost, ProblemError):
            evaluator.end()
            raise

    def _in_force(self, ready: ReadyProcess) -> dict[str, Any] | None:
        """Return the sandbox around a candidate, with the level of the evaluator's."""
        found = _public(ready.process.sandbox(0))
        return None if found is None else found | {"evaluator": self._forks.evaluator_level}

    @property
    def _target(self) -> Target:
        cuda = self.device.kind == "cuda"
        return Target(self.device.hardware, f"cuda:{self.device.id}" if cuda else self.device.kind, cuda)

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


def _public(sandbox: dict[str, Any] | None) -> dict[str, Any] | None:
    """The sandbox without what differs from process to process."""
    return None if sandbox is None else sandbox | {"uid": sandbox.get("uid") is not None}
