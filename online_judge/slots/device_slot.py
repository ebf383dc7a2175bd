"""One slot of one device: does jobs with an evaluator and a candidate process."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import secrets
import threading
from dataclasses import InitVar, dataclass, field, replace

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.identity import text_digest
from adaexplore.core.verdict import Verdict
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
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle, Report
from online_judge.protocol import messages
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.findings import Stage
from online_judge.protocol.messages import Answer, Job, Operation
from online_judge.protocol.result import EvaluationResult, ProfileResult
from online_judge.settings import Settings
from online_judge.slots import build_folders
from online_judge.slots.baselines import CleanTimes
from online_judge.slots.conversation import (
    Attempts,
    CandidateTimeout,
    ContextLost,
    Lost,
    ProcessLost,
    TimeLimits,
    converse,
)
from online_judge.slots.devices import Device
from online_judge.slots.evaluator_handle import EvaluatorFailed, EvaluatorHandle, Evaluators
from online_judge.verdict import assemble, profile_report
from online_judge.verdict.assemble import ProcessEnd, Target

log = logging.getLogger(__name__)

Request = EvaluationRequest | ProblemRequest


@dataclass(frozen=True)
class _Query:
    """One job for an evaluator; ``limit_s`` is the candidate's."""

    op: Operation
    request: Request
    limit_s: int
    cancelled: threading.Event
    recorded_ms: float | None = None
    sweep: SweepTerms | None = None


@dataclass(frozen=True)
class _CandidateRun:
    """What one candidate process and its evaluator reported."""

    folder: str  # of the process; removed by now
    report: Report
    found: messages.Finding | None  # the evaluator's; None if the candidate's time was up
    timed_out: Stage | None  # the stage in which it was
    late: Answer | None  # the evaluator's, after that
    sandbox: dict[str, object] | None


@dataclass(eq=False)
class DeviceSlot:
    """One slot; its methods block and are called from one thread at a time.

    They raise as :func:`online_judge.slots.jobs.run` does.
    """

    _forks: ForkClient
    device: Device
    _settings: Settings
    # shared by all slots of the device:
    _leases: GpuLeases
    _candidates: Pool
    evaluators: InitVar[Pool]
    _known: CleanTimes
    stage_seconds: dict[str, float] = field(default_factory=dict, init=False)  # of the latest job

    def __post_init__(self, evaluators: Pool) -> None:
        self.executes = self.device.kind == "cuda"  # else times mean nothing
        name = f"cuda:{self.device.id}" if self.executes else self.device.kind
        self._target = Target(self.device.hardware, name, self.executes)
        self._evaluators = Evaluators(self.device.kind, evaluators, self._leases)
        self._leases.on_alone.append(self._evaluators.forget)

    def start(self) -> None:
        """Take an evaluator, so that the first job finds one; raises JudgeError if none can be started."""
        self._evaluators.start()

    def close(self) -> None:
        self._evaluators.close()

    def evaluate(
        self, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
    ) -> Verdict:
        query = replace(self._query("evaluate", request, cancelled), recorded_ms=recorded_ms)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                run = self._run_candidate(query, alone=alone)
                verdict = self._verdict(run, query.limit_s, request)
                if memory_errors.explains(verdict):  # also alone: the candidate is at fault
                    self._leases.forget(request.original_model_src)
                gone = isinstance(run.found, messages.CandidateGone) and not run.found.why
                if gone and run.report.died and attempts.are_left:
                    log.warning("a process died from a signal: the job is tried again")
                    continue
                if not self.executes:  # without times, equal runs give equal verdicts
                    return verdict
                return assemble.with_seconds(verdict, self.stage_seconds)
        self._require_harmless_reference(query, attempts.lost)
        if isinstance(attempts.lost, ProcessLost) and attempts.lost.whose != "none":
            return assemble.evaluator_died_twice(request, self._target, attempts.lost.stage)
        raise JudgeError("the judge's own processes died twice during this evaluation; try again")

    def sweep(
        self, request: EvaluationRequest, wanted: SweepTerms, cancelled: threading.Event
    ) -> Swept | None:
        """Compare configurations of one candidate; None if the judge's own processes failed at it."""
        query = self._query("sweep", request, cancelled)
        query = replace(query, limit_s=math.ceil(wanted.budget_s) + 1, sweep=wanted)
        attempts = self._attempts(query, count=1)
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    run = self._run_candidate(query, alone=alone)
                    found = run.found if run.late is None else run.late.result
                    return found if isinstance(found, Swept) else None
        except (NotEnoughMemory, EvaluatorFailed) as error:
            log.warning("a sweep ended early: %s", str(error) or "too little memory")
        return None

    def profile(self, request: EvaluationRequest, cancelled: threading.Event) -> ProfileReport:
        if not self.executes:
            return profile_report.without_gpu()
        query = self._query("profile", request, cancelled)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                run = self._run_candidate(query, alone=alone)
                if run.timed_out is not None:
                    return profile_report.timed_out(query.limit_s, run.timed_out)
                if isinstance(run.found, messages.CandidateGone):
                    return profile_report.process_gone(run.report.how)
                assert isinstance(run.found, ProfileResult)
                return profile_report.profiled(run.found, run.folder)
        self._require_harmless_reference(query, attempts.lost)
        raise JudgeError("the judge's own processes failed twice at this profile; try again")

    def check_problem(self, request: Request, cancelled: threading.Event) -> ProblemReport:
        """Load the reference and run it once, or several times for a thorough look; report if it fails."""
        thorough = isinstance(request, ProblemRequest) and request.thorough
        query = self._query("problem", request, cancelled)
        query = replace(query, request=_problem_of(request, thorough=thorough))
        reason, traits = "", None
        try:
            traits = self._traits(query)
        except ProblemError as error:
            reason = str(error)
        kind, hardware = self.device.kind, self.device.hardware
        return ProblemReport(ok=not reason, reason=reason, device=kind, hardware=hardware, traits=traits)

    def _traits(self, query: _Query) -> ProblemTraits | None:
        """Run the reference; return what a thorough look found, None if none was asked for."""
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                return self._check(query, alone=alone)
        self._raise_for_lost(attempts.lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _query(self, op: Operation, request: Request, cancelled: threading.Event) -> _Query:
        cap_s = self._settings.runtime_timeout_s
        return _Query(op, request, min(request.timeout or cap_s, cap_s), cancelled)

    def _attempts(self, query: _Query, count: int = 2) -> Attempts:
        return Attempts(self._forks, self._leases, query.request.original_model_src, query.cancelled, count)

    def _check(self, query: _Query, *, alone: bool) -> ProblemTraits | None:
        """Run the reference with no candidate attached; return what a thorough look found."""
        evaluator = self._evaluators.of(query.request.original_model_src, query.cancelled)
        try:
            answer = self._converse(evaluator, query, self._job(query, alone=alone))
        except Cancelled:
            evaluator.end()  # the reference runs in it and cannot be interrupted
            raise
        except CandidateTimeout as error:  # there is no candidate
            evaluator.end()
            raise ProcessLost("reference", error.stage) from error
        evaluator.rest()
        found = self._finding(answer, evaluator)
        assert isinstance(found, messages.ProblemRuns)
        return found.traits

    def _require_harmless_reference(self, query: _Query, lost: Lost | None) -> None:
        """If an evaluator died in the reference's time, run the reference once with no candidate attached."""
        if isinstance(lost, ContextLost):
            raise lost.final
        if not isinstance(lost, ProcessLost) or lost.whose != "reference":
            return
        check = replace(query, op="problem", request=_problem_of(query.request), recorded_ms=None)
        attempts = self._attempts(check, count=1)
        while attempts.another():
            with attempts.attempt() as alone:
                self._check(check, alone=alone)
                return
        self._raise_for_lost(attempts.lost)
        if attempts.lost is None:
            raise JudgeError("the judge's fork server died while it ran the reference; try again")

    def _run_candidate(self, query: _Query, *, alone: bool) -> _CandidateRun:
        """Run the candidate in a fresh process with the evaluator; on return the process is gone."""
        request = query.request
        assert isinstance(request, EvaluationRequest)
        evaluator = self._evaluators.of(request.original_model_src, query.cancelled)
        build_dir = build_folders.made(request.build_dir, self._settings.build_dir)
        try:
            candidate = self._candidates.take(query.cancelled, build_dir)
        except BaseException:
            evaluator.rest()
            raise
        sandbox = self._forks.around(candidate.sandbox())
        clean = CleanTimes.key(request)
        job = self._job(query, alone=alone, build_dir=build_dir, clean_ms=self._known.get(clean))
        answer: Answer | None = None
        late: Answer | None = None
        timed_out: Stage | None = None
        try:
            answer = self._converse(evaluator, query, job, candidate)
        except CandidateTimeout as timeout:
            timed_out = timeout.stage
        finally:
            gone = answer is not None and isinstance(answer.result, messages.CandidateGone)
            report = candidate.end(seems_dead=gone)
            if answer is None:
                late = evaluator.settle()
            evaluator.leases.supervisor = 0
            evaluator.rest()
        if timed_out is not None and late is None:  # the evaluator hangs
            raise ProcessLost("candidate", timed_out)
        if late is not None and isinstance(late.result, messages.JudgeFailed):
            evaluator.end()
        if late is not None and isinstance(late.result, EvaluationResult) and late.result.timing is not None:
            answer, timed_out = late, None  # all that was left is the call without kernels, which may fail
        found = None if answer is None else self._finding(answer, evaluator)
        if isinstance(found, EvaluationResult):
            self._known.note(clean, found.clean_ms)
        return _CandidateRun(str(candidate.folder), report, found, timed_out, late, sandbox)

    def _verdict(self, run: _CandidateRun, limit_s: int, request: EvaluationRequest) -> Verdict:
        found, report, sandbox = run.found, run.report, run.sandbox
        if run.timed_out is not None:
            return assemble.timed_out(
                request, self._target, limit_s=limit_s, stage=run.timed_out, sandbox=sandbox
            )
        end = ProcessEnd(run.folder, report.how, report.log, report.out_of_memory, report.orphans, sandbox)
        if isinstance(found, messages.CandidateGone):
            return assemble.process_gone(request, self._target, stage=found.stage, why=found.why, end=end)
        assert isinstance(found, EvaluationResult)
        return assemble.evaluated(request, self._target, found, end)

    def _job(
        self, query: _Query, *, alone: bool, build_dir: str | None = None, clean_ms: float | None = None
    ) -> Job:
        request = query.request
        words = f"{text_digest(request.original_model_src)}:{request.seed_num}".encode()
        if isinstance(request, EvaluationRequest):
            request = request.model_copy(update={"kernel_code": None})
        return Job(
            op=query.op,
            request=request,
            # the key of this problem's hidden seeds: all that evaluators know of the secret
            seeds=hmac.new(self._settings.secret, words, hashlib.sha256).hexdigest(),
            alone=alone,
            hardware=self.device.hardware,
            name="" if self._settings.repeatable else secrets.token_hex(8),
            build_dir=build_dir,
            recorded_ms=query.recorded_ms,
            clean_ms=clean_ms,
            sweep=query.sweep,
        )

    def _converse(
        self, evaluator: EvaluatorHandle, query: _Query, job: Job, candidate: ProcessHandle | None = None
    ) -> Answer:
        """Have the evaluator do a job, with or without a candidate process; end an evaluator that fails."""
        limits = TimeLimits(query.limit_s, self._leases.stopped_s, evaluator.leases.waited_s)
        self.stage_seconds = limits.stage_seconds
        evaluator.leases.supervisor = candidate.supervisor if candidate is not None else 0
        fds = [candidate.connection.fileno()] if candidate is not None else []
        before = evaluator.leases.waits
        try:
            return converse(evaluator, job, fds, limits, query.cancelled)
        except (ProcessLost, ProblemError):
            evaluator.end()
            raise
        finally:
            for mode, waited_s in evaluator.leases.waits.items():
                limits.stage_seconds[f"lock_{mode}"] = waited_s - before.get(mode, 0.0)

    def _raise_for_lost(self, lost: Lost | None) -> None:
        """Raise for an evaluator that was lost while no candidate was attached."""
        if isinstance(lost, ContextLost):
            raise lost.final
        if isinstance(lost, ProcessLost) and lost.whose == "reference":
            raise ProblemError("the process that ran the reference died twice, also without a candidate")

    def _finding(self, answer: Answer, evaluator: EvaluatorHandle) -> messages.Finding:
        """Return what was found; raise for a failure."""
        final: JudgeError
        match result := answer.result:
            case messages.NotEnoughMemory():
                raise NotEnoughMemory
            case messages.JudgeFailed():
                evaluator.end()  # the exception may have left it in any state
                final = EvaluatorFailed(f"the judge failed: {result.error}")
            case messages.ReferenceFailed():
                final = ProblemError(result.reason)
            case _:
                return result
        if result.broken:
            evaluator.end()
            raise ContextLost(final)
        raise final


def _problem_of(request: Request, *, thorough: bool = False) -> ProblemRequest:
    return ProblemRequest(
        original_model_src=request.original_model_src,
        dtype_str=request.dtype_str,
        seed_num=request.seed_num,
        thorough=thorough,
    )
