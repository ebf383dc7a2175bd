"""One slot of one device: does jobs with an evaluator and a candidate process."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import secrets
import threading
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, Literal

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
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.findings import Stage
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
from online_judge.slots.evaluator_handle import EvaluatorHandle, Evaluators
from online_judge.verdict import assemble, profile_report
from online_judge.verdict.assemble import ProcessEnd, Target

log = logging.getLogger(__name__)

Request = EvaluationRequest | ProblemRequest
Operation = Literal["evaluate", "sweep", "profile", "problem"]


class EvaluatorFailed(JudgeError):
    """The judge's own code raised in the evaluator; the text names the exception."""


@dataclass(frozen=True)
class _Query:
    """One job for an evaluator; ``limit_s`` is the candidate's, ``more`` are further fields of the order."""

    op: Operation
    request: Request
    limit_s: int
    cancelled: threading.Event
    more: dict[str, object]


@dataclass(frozen=True)
class _CandidateRun:
    """What one candidate process and its evaluator reported."""

    folder: str  # of the process; removed by now
    report: Report
    result: dict[str, Any]  # the evaluator's; empty if the candidate's time was up
    timed_out: Stage | None  # the stage in which it was
    late: dict[str, Any]  # the evaluator's result after that
    sandbox: dict[str, object] | None

    @property
    def gone(self) -> bool:
        """Return whether the process died before the evaluator had a finding."""
        return self.result.get("kind") == "candidate_gone"


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
        query = self._query("evaluate", request, cancelled, recorded_ms=recorded_ms)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                run = self._run_candidate(query, alone=alone)
                verdict = self._verdict(run, query.limit_s, request)
                if memory_errors.explains(verdict):  # also alone: the candidate is at fault
                    self._leases.forget(request.original_model_src)
                if run.gone and run.report.died and not run.result["why"] and attempts.are_left:
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
        query = self._query("sweep", request, cancelled, sweep=wanted.to_json())
        query = replace(query, limit_s=math.ceil(wanted.budget_s) + 1)
        attempts = self._attempts(query, count=1)
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    run = self._run_candidate(query, alone=alone)
                    found = (run.result or run.late).get("swept")
                    return None if found is None else Swept.from_json(found)
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
                if run.gone:
                    return profile_report.process_gone(run.report.how)
                return profile_report.profiled(ProfileResult.from_json(run.result["profile"]), run.folder)
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
                traits = self._check(query, alone=alone).get("traits")
                return None if traits is None else ProblemTraits.model_validate(traits)
        self._raise_for_lost(attempts.lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _query(self, op: Operation, request: Request, cancelled: threading.Event, **more: object) -> _Query:
        cap_s = self._settings.runtime_timeout_s
        return _Query(op, request, min(request.timeout or cap_s, cap_s), cancelled, more)

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
        """If an evaluator died in the reference's time, run the reference once with no candidate attached."""
        if isinstance(lost, ContextLost):
            raise lost.final
        if not isinstance(lost, ProcessLost) or lost.whose != "reference":
            return
        check = replace(query, op="problem", request=_problem_of(query.request), more={})
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
        candidate = self._candidates.take(query.cancelled, build_dir)
        sandbox = self._forks.around(candidate.sandbox())
        clean = CleanTimes.key(request)
        order = {
            "build_dir": build_dir,
            "folder": str(candidate.folder),
            "clean_ms": self._known.get(clean),
            "recorded_ms": None,
            "job": "" if self._settings.repeatable else secrets.token_hex(8),
            "facts": {"hardware": self.device.hardware},
        } | self._order(query, alone=alone)
        result: dict[str, Any] | None = None
        late: dict[str, Any] | None = None
        timed_out: Stage | None = None
        try:
            result = self._converse(evaluator, query, order, candidate)
        except CandidateTimeout as timeout:
            timed_out = timeout.stage
        finally:
            report = candidate.end(seems_dead=result is not None and result["kind"] == "candidate_gone")
            if result is None:
                late = evaluator.settle()
            evaluator.rest()
        if timed_out is not None and late is None:  # the evaluator hangs
            raise ProcessLost("candidate", timed_out)
        if result is not None:
            self._raise_for_reference(result, evaluator)
            self._known.note(clean, result.get("clean_ms"))
        return _CandidateRun(str(candidate.folder), report, result or {}, timed_out, late or {}, sandbox)

    def _verdict(self, run: _CandidateRun, limit_s: int, request: EvaluationRequest) -> Verdict:
        result, report, sandbox = run.result, run.report, run.sandbox
        if run.timed_out is not None:
            return assemble.timed_out(
                request, self._target, limit_s=limit_s, stage=run.timed_out, sandbox=sandbox
            )
        end = ProcessEnd(run.folder, report.how, report.log, report.out_of_memory, report.orphans, sandbox)
        if run.gone:
            stage, why = Stage(result["stage"]), result["why"]
            return assemble.process_gone(request, self._target, stage=stage, why=why, end=end)
        try:
            found = EvaluationResult.from_json(result["evaluation"])
        except (KeyError, RecursionError, ValueError) as error:
            raise JudgeError("the evaluator's result cannot be read") from error
        return assemble.evaluated(request, self._target, found, end)

    def _order(self, query: _Query, *, alone: bool) -> dict[str, object]:
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
        order: dict[str, object],
        candidate: ProcessHandle | None = None,
    ) -> dict[str, Any]:
        """Have the evaluator do a job, with or without a candidate process; end an evaluator that fails."""
        limits = TimeLimits(query.limit_s, self._leases.stopped_s, evaluator.leases.waited_s)
        self.stage_seconds = limits.stage_seconds
        evaluator.leases.supervisor = candidate.supervisor if candidate is not None else 0
        fds = [candidate.connection.fileno()] if candidate is not None else []
        before = evaluator.leases.waits
        try:
            return converse(evaluator, order, fds, limits, query.cancelled)
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

    def _raise_for_reference(self, result: dict[str, Any], evaluator: EvaluatorHandle) -> None:
        """Raise if a result says nothing about the candidate."""
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


def _problem_of(request: Request, *, thorough: bool = False) -> ProblemRequest:
    return ProblemRequest(
        original_model_src=request.original_model_src,
        dtype_str=request.dtype_str,
        seed_num=request.seed_num,
        thorough=thorough,
    )
