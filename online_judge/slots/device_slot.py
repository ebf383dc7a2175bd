"""One slot of one device: does jobs with an evaluator and a candidate process."""

import hashlib
import hmac
import logging
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.judging.status import Stage
from adaexplore.core.text.identity import text_digest
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemReport, ProblemRequest, ProfileReport, Workload
from online_judge.checks.facts.endings import ProcessEnd
from online_judge.common import memory_errors
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled, GpuLeases, NotEnoughMemory
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import messages
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.measurement import CleanMs, Timing
from online_judge.protocol.messages import Answer, Job, Operation, Whose
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
    ReferenceLost,
    ReferenceTimeout,
    TimeLimits,
    converse,
)
from online_judge.slots.devices import Device
from online_judge.slots.evaluator_handle import EvaluatorFailed, EvaluatorHandle, Evaluators
from online_judge.verdict import assemble, merging, reports
from online_judge.verdict.assemble import Target
from online_judge.verdict.merging import Judged

log = logging.getLogger(__name__)

_SLOW_HOST_S = 60.0
"""At most so often a slot repeats a job because the host was slow: repeating all would keep it slow."""
_OF_REFERENCE = ("reference", "none")  # an evaluator runs only the judge's and the problem's code

Request = EvaluationRequest | ProblemRequest


@dataclass(frozen=True)
class _Query:
    """One job for an evaluator; ``limit_s`` is the candidate's limit, ``spent`` of it is used up."""

    op: Operation
    request: Request
    limit_s: int
    cancelled: threading.Event
    recorded_ms: float | None = None
    sweep: SweepTerms | None = None
    workload: int = 0
    spent: Mapping[Whose, float] | None = None  # seconds used so far
    name: str = ""  # of this attempt, part of the names of the hidden inputs
    clean_ms: CleanMs | None = None  # the baseline's time with nobody else around, if known
    seconds: Mapping[str, float] = field(default_factory=dict)  # by stage, of measuring that


@dataclass(frozen=True)
class _CandidateRun:
    end: ProcessEnd
    found: messages.Finding | None  # the evaluator's result; None if the candidate's time was up
    timed_out: Stage | None  # the stage in which time was up
    late: Answer | None  # the evaluator's answer after that
    workloads: tuple[Workload, ...]  # of the problem; empty if it has one or that is unknown
    seconds: Mapping[str, float]  # by stage

    @property
    def was_killed(self) -> bool:
        """Return True if the process died without an exit of its own; another attempt may succeed."""
        return isinstance(self.found, messages.CandidateGone) and not self.found.why and self.end.died

    @property
    def baseline_stays_slow(self) -> bool:
        """Return True if a measured baseline counts and was much slower after the timing than before."""
        return self._measured is not None and self._measured.baseline_stays_slow

    @property
    def baseline_slowed(self) -> bool:
        """Return True if a measured baseline counts and was much slower during the timing than before."""
        timing = self._measured
        return timing is not None and timing.baseline_slowed and not timing.stopped_early

    @property
    def _measured(self) -> Timing | None:
        timing = self.found.timing if isinstance(self.found, EvaluationResult) else None
        return None if timing is None or timing.recorded else timing


@dataclass(eq=False)
class DeviceSlot:
    """One slot; its methods block, and one thread at a time may call them.

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
    _spent: Mapping[Whose, float] | None = field(default=None, init=False)  # its request's time limits
    _host_was_slow_at: float = field(default=-math.inf, init=False)  # when a job was last repeated for that

    def __post_init__(self, evaluators: Pool) -> None:
        self.executes = self.device.kind == "cuda"  # without a GPU times mean nothing
        name = f"cuda:{self.device.id}" if self.executes else self.device.kind
        self._target = Target(self.device.hardware, name, self.executes)
        self._evaluators = Evaluators(self.device.kind, evaluators, self._leases)
        self._leases.on_scarcity.append(self._evaluators.free_idle)

    def start(self) -> None:
        """Start an evaluator for the first job; raises JudgeError if none can be started."""
        self._evaluators.start()

    def close(self) -> None:
        self._evaluators.close()

    def evaluate(
        self, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
    ) -> Verdict:
        """Judge a candidate on each workload of its problem in turn, each in a new candidate process.

        After a failure it is still checked on others, but not timed. The time limit covers all workloads. If
        the reference's time ends after a failure, the other workloads are not checked. Without a failure
        ReferenceTimeout names the workload and there is no verdict, because a candidate that is right on some
        workloads has neither passed nor failed.
        """
        query = replace(self._query("evaluate", request, cancelled), recorded_ms=recorded_ms)
        verdict, known = self._evaluate(query)
        if len(known) < 2:
            return verdict
        judged, spent_s = [Judged(known[0], verdict)], Counter(self.stage_seconds)
        while len(judged) < len(known) and merging.says_more(judged):
            if not judged[-1].verdict.correct:
                request = request.model_copy(update={"measure_performance": False})
            number = len(judged)
            query = replace(query, request=request, workload=number, spent=self._spent)
            try:
                with _named(known[number]):
                    verdict, latest = self._evaluate(query)
            except ReferenceTimeout:
                if all(each.verdict.correct for each in judged):
                    raise
                break
            known = latest if len(latest) == len(known) else known
            judged.append(Judged(known[number], verdict))
            spent_s.update(self.stage_seconds)
        self.stage_seconds = dict(spent_s)
        verdict = merging.merged(judged, known[len(judged) :])
        return assemble.with_seconds(verdict, spent_s) if self.executes else verdict

    def _evaluate(self, query: _Query) -> tuple[Verdict, tuple[Workload, ...]]:
        """Judge a candidate on one workload; also return the problem's workloads if it has several.

        If its baseline was slowed, it is judged once more, alone on the device, unless it failed. If that
        does not work, the first run counts.
        """
        request = query.request
        assert isinstance(request, EvaluationRequest)
        attempts = self._attempts(query)
        slowed: _CandidateRun | None = None
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    again = alone and slowed is not None and slowed.baseline_stays_slow
                    asked = self._with_clean_ms(query, alone=alone, again=again)
                    if asked is None:
                        attempts.repeat_alone()
                        continue
                    run = self._run_candidate(asked, alone=alone)
                    if slowed is None and self._wants_repetition(run, query, alone=alone):
                        slowed = run
                        attempts.repeat_alone()
                        continue
                    if run.was_killed and attempts.are_left:
                        log.warning("a process died from a signal: the job is tried again")
                        continue
                    return self._verdict(run, query), run.workloads
            if slowed is None:
                self._require_harmless_reference(query, attempts.lost)
        except (ProblemError, EvaluatorFailed) as error:
            if slowed is None:
                raise
            log.warning("the job could not be done again: %s", error)
        if slowed is not None:
            self.stage_seconds = dict(slowed.seconds)
            return self._verdict(slowed, query), slowed.workloads
        if isinstance(attempts.lost, ProcessLost) and attempts.lost.whose != "none":
            return assemble.evaluator_died_twice(request, self._target, attempts.lost.stage), ()
        raise JudgeError("the judge's own processes died twice during this evaluation; try again")

    def _wants_repetition(self, run: _CandidateRun, query: _Query, *, alone: bool) -> bool:
        """Return True if the baseline was slowed, and a run alone may help; log that."""
        now = time.monotonic()
        if run.baseline_stays_slow:
            why = "a baseline stays slow after a candidate"
        elif run.baseline_slowed and not alone and now - self._host_was_slow_at > _SLOW_HOST_S:
            why = "a baseline was slow beside a candidate"
        else:
            return False
        if not self._verdict(run, query).correct:
            return False
        if not run.baseline_stays_slow:
            self._host_was_slow_at = now
        log.warning("%s: the job is done again alone", why)
        return True

    def sweep(
        self, request: EvaluationRequest, wanted: SweepTerms, cancelled: threading.Event, workload: int = 0
    ) -> Swept | None:
        """Compare configurations of one candidate; None if the judge's own processes failed at it."""
        limit_s = math.ceil(wanted.budget_s) + 1
        query = _Query("sweep", request, limit_s, cancelled, sweep=wanted, workload=workload)
        attempts = self._attempts(query, count=1)
        try:
            while attempts.another():
                with attempts.attempt() as alone:
                    run = self._run_candidate(query, alone=alone)
                    found = run.found if run.late is None else run.late.result
                    return found if isinstance(found, Swept) else None
        except (NotEnoughMemory, EvaluatorFailed, ReferenceTimeout) as error:
            log.warning("a sweep ended early: %s", str(error) or "too little memory")
        return None

    def workloads(self, request: EvaluationRequest, cancelled: threading.Event) -> tuple[Workload, ...]:
        """Run the reference on the first workload; return the problem's workloads if it has several."""
        query = replace(self._query("problem", request, cancelled), request=_problem_of(request))
        return self._look(query)[1]

    def profile(self, request: EvaluationRequest, cancelled: threading.Event) -> ProfileReport:
        if not self.executes:
            return reports.without_gpu()
        query = self._query("profile", request, cancelled)
        attempts = self._attempts(query)
        while attempts.another():
            with attempts.attempt() as alone:
                run = self._run_candidate(query, alone=alone)
                if run.was_killed and attempts.are_left:
                    log.warning("a process died from a signal: the profile is tried again")
                    continue
                if run.timed_out is not None:
                    return reports.profile_timed_out(query.limit_s, run.timed_out)
                if isinstance(run.found, messages.CandidateGone):
                    return reports.profiled_process_gone(run.end.how)
                assert isinstance(run.found, ProfileResult)
                return reports.profiled(run.found, run.end.folder)
        self._require_harmless_reference(query, attempts.lost)
        raise JudgeError("the judge's own processes failed twice at this profile; try again")

    def check_problem(self, request: Request, cancelled: threading.Event) -> ProblemReport:
        """Load the reference and run it once, or several times for a thorough look; report if it fails."""
        query = replace(self._query("problem", request, cancelled), request=_problem_of(request))
        reason, found = "", messages.ProblemRuns()
        workloads: list[Workload] = []
        try:
            found, known = self._look(query)
            workloads += known[:1]
            for number in range(1, len(known)):
                with _named(known[number]):
                    more, latest = self._look(replace(query, workload=number, spent=self._spent))
                workloads += latest[number : number + 1]
                if found.traits is not None and more.traits is not None:
                    found.traits.flags += [
                        flag for flag in more.traits.flags if flag not in found.traits.flags
                    ]
        except ProblemError as error:
            reason, found = str(error), messages.ProblemRuns()
        return ProblemReport(
            ok=not reason,
            reason=reason,
            device=self.device.kind,
            hardware=self.device.hardware,
            traits=found.traits,
            tensors=found.tensors,
            workloads=workloads or None,
        )

    def _look(self, query: _Query, count: int = 2) -> tuple[messages.ProblemRuns, tuple[Workload, ...]]:
        """Run the reference on one workload; return the report, and the workloads if there are several."""
        attempts = self._attempts(query, count)
        while attempts.another():
            with attempts.attempt() as alone:
                return self._check(query, alone=alone)
        _raise_if_of_reference(attempts.lost)
        raise JudgeError("the judge's own processes died twice before they ran the reference; try again")

    def _query(self, op: Operation, request: Request, cancelled: threading.Event) -> _Query:
        return _Query(op, request, self._settings.limit_s(request.timeout), cancelled)

    def _attempts(self, query: _Query, count: int = 2) -> Attempts:
        return Attempts(self._forks, self._leases, query.request.original_model_src, query.cancelled, count)

    def _check(self, query: _Query, *, alone: bool) -> tuple[messages.ProblemRuns, tuple[Workload, ...]]:
        """Run the reference without a candidate; return the report and the workloads."""
        found, workloads = self._without_candidate(query, alone=alone)
        assert isinstance(found, messages.ProblemRuns)
        return found, workloads

    def _with_clean_ms(self, query: _Query, *, alone: bool, again: bool) -> _Query | None:
        """Add a name and the baseline's time with nobody else around.

        The time is measured if it is not known, or ``again``, by an evaluator that has had no candidate.
        Those of later workloads are then measured as well, because the candidate comes next. Return None
        instead of the query if somebody else used the GPU and the job is not alone.
        """
        request, seconds = query.request, Counter[str]()
        assert isinstance(request, EvaluationRequest)
        query = replace(query, name=self._new_name())
        numbers = [query.workload] if self.executes and request.measure_performance else []
        for number in numbers:  # more are added once the problem's workloads are known
            key = CleanTimes.key(request, number)
            if not (again or self._known.is_wanted(key)):
                continue
            asked = replace(query, op="baseline", workload=number)
            try:
                found, workloads = self._without_candidate(asked, alone=alone, untouched=True)
            except (ProblemError, Lost):
                if number == query.workload:
                    raise
                break  # its own turn comes
            assert isinstance(found, messages.BaselineTimed)
            if found.ms is None:
                if not alone:
                    return None
                log.warning("the GPU is not free: a reference could not be timed without a candidate")
            self._known.note(key, found.ms, replaces=again)
            seconds.update(self.stage_seconds)
            query = replace(query, spent=self._spent)
            if not again:
                numbers += range(numbers[-1] + 1, len(workloads))
        clean_ms = self._known.get(CleanTimes.key(request, query.workload))
        return replace(query, clean_ms=clean_ms, seconds=seconds)

    def _without_candidate(
        self, query: _Query, *, alone: bool, untouched: bool = False
    ) -> tuple[messages.Finding, tuple[Workload, ...]]:
        """Have an evaluator do a job without a candidate; also return the workloads."""
        evaluator = self._evaluators.of(_sources(query.request), query.cancelled, untouched=untouched)
        try:
            answer = self._converse(evaluator, query, self._job(query, alone=alone))
        except Cancelled:
            evaluator.end()  # the reference cannot be interrupted
            raise
        except CandidateTimeout as error:  # there is no candidate
            evaluator.end()
            raise ReferenceLost("reference", error.stage) from error
        except ProcessLost as error:
            raise ReferenceLost(error.whose, error.stage) from error
        evaluator.rest()
        return self._finding(answer, evaluator), answer.workloads

    def _require_harmless_reference(self, query: _Query, lost: Lost | None) -> None:
        """If an evaluator died outside of the candidate's time, run the reference once alone."""
        _raise_if_of_reference(lost)
        if isinstance(lost, ProcessLost) and lost.whose in _OF_REFERENCE:
            check = replace(query, op="problem", request=_problem_of(query.request), recorded_ms=None)
            self._look(check, count=1)

    def _run_candidate(self, query: _Query, *, alone: bool) -> _CandidateRun:
        """Run the candidate in a fresh process with the evaluator; on return that process is gone."""
        request = query.request
        assert isinstance(request, EvaluationRequest)
        evaluator = self._evaluators.of(_sources(request), query.cancelled)
        evaluator.touched = True
        build_dir = None
        if request.hidden_workloads is None:  # a candidate could leave hidden inputs there
            build_dir = build_folders.made(request.build_dir, self._settings.build_dir)
        try:
            candidate = self._candidates.take(query.cancelled, build_dir)
        except BaseException:
            evaluator.rest()
            raise
        sandbox = self._forks.around(candidate.sandbox())
        job = self._job(query, alone=alone, build_dir=build_dir)
        answer: Answer | None = None
        late: Answer | None = None
        timed_out: Stage | None = None
        try:
            answer = self._converse(evaluator, query, job, candidate)
        except CandidateTimeout as timeout:
            timed_out = timeout.stage
        finally:
            gone = answer is not None and isinstance(answer.result, messages.CandidateGone)
            end = candidate.end(seems_dead=gone)
            if answer is None:
                late = evaluator.settle()
            evaluator.leases.candidate = 0
            evaluator.rest()
        if timed_out is not None and late is None:  # the evaluator hangs
            raise ProcessLost("candidate", timed_out)
        if late is not None and late.result.kind == "judge_failed":
            evaluator.end()
        if late is not None and isinstance(late.result, EvaluationResult) and late.result.timing is not None:
            answer, timed_out = late, None  # only the call without kernels was left, which may fail
        found = None if answer is None else self._finding(answer, evaluator)
        known = next((each.workloads for each in (answer, late) if each is not None), ())
        seconds = Counter(query.seconds)
        seconds.update(self.stage_seconds)
        self.stage_seconds = dict(seconds)
        run = _CandidateRun(replace(end, sandbox=sandbox), found, timed_out, late, known, self.stage_seconds)
        if run.baseline_stays_slow:
            evaluator.end()
        return run

    def _verdict(self, run: _CandidateRun, query: _Query) -> Verdict:
        request, found, end, target = query.request, run.found, run.end, self._target
        assert isinstance(request, EvaluationRequest)
        if run.timed_out is not None:
            limit_s, sandbox = query.limit_s, end.sandbox
            verdict = assemble.timed_out(
                request, target, limit_s=limit_s, stage=run.timed_out, sandbox=sandbox
            )
        elif isinstance(found, messages.CandidateGone):
            verdict = assemble.process_gone(request, target, stage=found.stage, why=found.why, end=end)
        else:
            assert isinstance(found, EvaluationResult)
            verdict = assemble.evaluated(request, target, found, end)
        if memory_errors.explains(verdict):  # even alone: the candidate is at fault
            self._leases.forget(request.original_model_src)
        # without times, equal requests must give equal verdicts
        return assemble.with_seconds(verdict, run.seconds) if self.executes else verdict

    def _new_name(self) -> str:
        return "" if self._settings.repeatable else secrets.token_hex(8)

    def _job(self, query: _Query, *, alone: bool, build_dir: str | None = None) -> Job:
        request = query.request
        words = f"{text_digest(_sources(request))}:{request.seed_num}".encode()
        if isinstance(request, EvaluationRequest):
            request = request.model_copy(update={"kernel_code": None})
        return Job(
            op=query.op,
            request=request,
            # the key of this problem's hidden seeds is all that evaluators know of the secret
            seeds=hmac.new(self._settings.secret, words, hashlib.sha256).hexdigest(),
            alone=alone,
            hardware=self.device.hardware,
            name=query.name or self._new_name(),
            build_dir=build_dir,
            recorded_ms=query.recorded_ms,
            clean_ms=query.clean_ms,
            sweep=query.sweep,
            workload=query.workload,
        )

    def _converse(
        self, evaluator: EvaluatorHandle, query: _Query, job: Job, candidate: ProcessHandle | None = None
    ) -> Answer:
        """Have the evaluator do a job, with or without a candidate process; end the evaluator if it fails."""
        leases = evaluator.leases
        limits = TimeLimits(query.limit_s, leases.stopped_s, leases.waited_s, query.spent)
        self.stage_seconds, self._spent = limits.stage_seconds, limits.spent
        leases.candidate = candidate.supervisor if candidate is not None else 0
        fds = [candidate.connection.fileno()] if candidate is not None else []
        before = leases.waits
        try:
            return converse(evaluator, job, fds, limits, query.cancelled)
        except (ProcessLost, ProblemError):
            evaluator.end()
            raise
        finally:
            for mode, waited_s in leases.waits.items():
                limits.stage_seconds[f"lock_{mode}"] = waited_s - before.get(mode, 0.0)

    def _finding(self, answer: Answer, evaluator: EvaluatorHandle) -> messages.Finding:
        """Return what was found; raise for a failure."""
        result = answer.result
        if isinstance(result, messages.NotEnoughMemory):
            raise NotEnoughMemory(result.why)
        if not isinstance(result, messages.Failed):
            return result
        of_judge = result.kind == "judge_failed"
        final = (
            EvaluatorFailed(f"the judge failed: {result.reason}") if of_judge else ProblemError(result.reason)
        )
        if of_judge or result.broken:  # an exception of the judge's own may have left it in any state
            evaluator.end()
        raise ContextLost(final) if result.broken else final


@contextmanager
def _named(workload: Workload) -> Iterator[None]:
    """Name the workload on which the reference's time ended; other failures name it themselves."""
    try:
        yield
    except ReferenceTimeout as error:
        raise ReferenceTimeout(f"{merging.shown_name(workload)}: {error}") from error


def _raise_if_of_reference(lost: Lost | None) -> None:
    """Raise what the loss says of the reference or the judge, if it says nothing of the candidate."""
    if isinstance(lost, ContextLost):
        raise lost.final
    if isinstance(lost, ReferenceLost):
        raise ProblemError("the process that ran the reference died twice, also without a candidate")


def _sources(request: Request) -> str:
    """Return all client text that an evaluator runs; each such text has its own evaluator."""
    hidden = request.hidden_workloads
    return request.original_model_src if hidden is None else f"{request.original_model_src}\0{hidden}"


def _problem_of(request: Request) -> ProblemRequest:
    if isinstance(request, ProblemRequest):
        return request
    return ProblemRequest(**request.model_dump(include=ProblemRequest.model_fields.keys() - {"timeout"}))
