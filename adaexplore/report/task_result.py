"""The result of one task within a number of steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import RecordError
from adaexplore.core.judging.flags import DEGENERATE
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepResult
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Interval, Verdict
from adaexplore.records.step_reader import StepSummary
from adaexplore.records.task_records import TaskFailure, TaskRecords
from adaexplore.report.savings import Savings, count_savings

_ADVICE = "\nNext: "
"""Start of the advice at the end of the judge's feedback."""
_FIRST_GPU = "first GPU"


@dataclass(frozen=True)
class Best:
    """The best candidate after some step."""

    step: int | None = None  # its step; None if none is correct or the step was not recorded
    correct: bool = False  # whether there is a correct one
    speedup: float | None = None  # reference time / its time; None if none is correct or it was not measured
    # whether kernels were checked under Triton's interpreter, whose times mean nothing
    interpreted: bool = False
    interval: Interval | None = None  # confidence interval of the speedup, if the judge gave one
    flags: tuple[str, ...] = ()  # ids of its suspect flags
    problem_flags: tuple[str, ...] = ()  # ids of its problem's flags
    hardware: str = ""  # the judge's hardware; "" if not recorded
    workload_speedups: tuple[float, ...] = ()  # its speedup on each workload; empty for a problem with one
    # how near it is to the hardware limit, if the judge gave it: the mean over workloads
    sol_score: float | None = None
    # a workload on which it is slower than the reference, with the ratio; "" for none
    worst_workload: str = ""

    def or_better(self, step: int | None, verdict: Verdict | None) -> Best:
        """Return this, or the candidate of ``step`` if strictly better; measured beats unmeasured."""
        if verdict is None:
            return self
        if not verdict.correct:
            return replace(self, interpreted=self.interpreted or verdict.device == "cpu")
        speedup = measured_speedup(verdict)
        worst = verdict.worst_workload
        found = Best(
            step=step,
            correct=True,
            speedup=speedup,
            interpreted=verdict.interpreted,
            interval=None if speedup is None else verdict.speedup_interval,
            flags=tuple(flag.id for flag in verdict.suspect_flags),
            problem_flags=tuple(flag.id for flag in verdict.problem_flags),
            hardware=verdict.hardware,
            workload_speedups=()
            if speedup is None
            else tuple(each.speedup for each in verdict.workloads if each.speedup is not None),
            sol_score=_sol_score(verdict),
            worst_workload="" if worst is None else f"{worst.name}: {worst.why}",
        )
        return self.or_found(found)

    def or_found(self, found: Best) -> Best:
        """Return this, or ``found`` if strictly better; measured beats unmeasured."""
        return found if found._rank > self._rank else self

    @property
    def _rank(self) -> tuple[bool, float]:
        return self.correct, 0.0 if self.speedup is None else self.speedup


@dataclass(frozen=True)
class CommonFailure:
    """The most frequent failure of a task's steps."""

    status: str  # what such a step is called: see ``StepResult``
    times: int  # number of steps with this failure
    step: int  # the last of them
    text: str  # why that step failed, in one line


@dataclass(frozen=True)
class TaskResult:
    """The result of a task within a number of steps."""

    key: str  # ``<level>_<problem_id>``
    best: Best
    curve: tuple[Best, ...]  # the best after each step, in order; empty if steps were not recorded
    # whether the first step with a model was correct; None if steps were not recorded
    first_correct: bool | None
    steps: int
    statuses: Counter[str]  # number of steps by what they are called
    usage: Usage | None  # cost of these steps; None if not recorded
    failure: TaskFailure | None  # why the task could not run
    clean: Best  # the best candidate without suspect flags; the same as ``best`` if that has none
    # outcomes of the model's replies, and saved evaluations
    savings: Savings = field(default_factory=Savings)
    # the most frequent failure; None if no step failed or steps were not recorded
    common_failure: CommonFailure | None = None
    # the best kernel on each GPU, by its name; empty unless several models were asked for
    by_gpu: Mapping[str, Best] = field(default_factory=dict)
    # ids of the problem's flags, of all verdicts on correct and failed kernels
    problem_flags: tuple[str, ...] = ()
    ran: bool = False  # whether all calls of a candidate ran to completion, with a right or a wrong result
    begun: bool = True  # whether the task has a folder; the run stopped before its other tasks

    @property
    def clean_ran(self) -> bool:
        """``ran``, but False if all correct candidates have suspect flags."""
        return self.ran and (self.clean.correct or not self.best.correct)

    @property
    def degenerate(self) -> bool:
        """Whether trivial answers pass the problem."""
        return DEGENERATE in self.problem_flags


def why_failed(result: StepResult) -> str:
    """Say in one line why a step has no correct kernel; "" if it has one.

    A compile error's reason, the last line of its message, comes first, so that a cut line still has it.
    """
    verdict = result.verdict
    if verdict is None or verdict.correct:
        return result.why
    text, _, advice = verdict.feedback.partition(_ADVICE)
    lines = text.split("\n")
    if verdict.status is Status.COMPILE and not verdict.lints:
        lines = [*lines[-1:], *lines[:-1]]
    return " ".join(" ".join([*lines, advice and f"Next: {advice}"]).split())


def calls_ran(verdict: Verdict) -> bool:
    """Return whether all calls of a candidate that were checked ran to completion: see its ``workloads``."""
    calls = [each.status for each in verdict.workloads if each.status is not Status.NOT_CHECKED]
    return all(each.ran for each in (verdict.status, *calls))


def measured_speedup(verdict: Verdict) -> float | None:
    """Return the verdict's speedup on real hardware; None without one, or for 0 (never timed)."""
    speedup = verdict.speedup
    return speedup if speedup is not None and math.isfinite(speedup) and speedup > 0 else None


def _sol_score(verdict: Verdict) -> float | None:
    scores = [each.sol_score for each in verdict.workloads if each.sol_score is not None]
    if not scores and verdict.timing is not None and verdict.timing.sol_score is not None:
        scores = [verdict.timing.sol_score]
    return math.fsum(scores) / len(scores) if scores else None


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum; None if one of them was not recorded."""
    total = Usage()
    for usage in usages:
        if usage is None:
            return None
        total += usage
    return total


def task_result(records: TaskRecords, within: int | None) -> TaskResult:
    """Return the result of the task within its first ``within`` steps (default: all recorded).

    A folder with only recorded bests (``global_best_metrics_<n>.json``) is read from these.

    Raises:
        RecordError: a record is damaged, or only bests of more steps than ``within`` are there.
    """
    steps = [step for step in records.summaries() if step.kind is not StepKind.DUMMY_ROOT]
    if not steps:
        return _without_steps(records, within)
    problem_flags = _problem_flags(step.verdict for step in steps)  # also those found after ``within``
    steps = steps[:within]
    curve = tuple(_curve(steps))
    first = next((step for step in steps if step.outcome is not DraftOutcome.SEED), None)
    clean = _best_clean((step.step, step.result.verdict) for step in steps)
    return TaskResult(
        key=records.folder.name,
        best=curve[-1],
        curve=curve,
        first_correct=first is not None and _is_correct(first),
        steps=len(steps),
        statuses=Counter(step.result.name for step in steps),
        usage=total_usage(step.usage for step in steps),
        failure=records.failure(),
        clean=replace(clean, interpreted=clean.interpreted or curve[-1].interpreted),
        savings=count_savings(steps),
        common_failure=_common_failure(steps),
        by_gpu=_best_by_gpu(steps),
        problem_flags=problem_flags,
        ran=_ran(step.result.verdict for step in steps),
    )


def _ran(verdicts: Iterable[Verdict | None]) -> bool:
    return any(each is not None and calls_ran(each) for each in verdicts)


def _problem_flags(verdicts: Iterable[Verdict | None]) -> tuple[str, ...]:
    found = (flag.id for verdict in verdicts if verdict is not None for flag in verdict.problem_flags)
    return tuple(dict.fromkeys(found))


def _best_by_gpu(steps: Sequence[StepSummary]) -> dict[str, Best]:
    bests: dict[str, Best] = {}
    for step in steps:
        own = step.result.verdict
        others = {} if own is None else own.other_gpus
        if own is None or not others:
            continue
        for model, verdict in ((_FIRST_GPU, own), *others.items()):
            name = verdict.hardware or model
            bests[name] = bests.get(name, Best()).or_better(step.step, verdict)
    return bests


def _is_correct(step: StepSummary) -> bool:
    return step.result.verdict is not None and step.result.verdict.correct


def _common_failure(steps: Sequence[StepSummary]) -> CommonFailure | None:
    failed = [step for step in steps if not _is_correct(step)]
    if not failed:
        return None
    name, times = Counter(step.result.name for step in reversed(failed)).most_common(1)[0]
    last = next(step for step in reversed(failed) if step.result.name == name)
    return CommonFailure(name, times, last.step, why_failed(last.result))


def _best_clean(found: Iterable[tuple[int | None, Verdict | None]]) -> Best:
    best = Best()
    for step, verdict in found:
        if verdict is not None and not verdict.suspect_flags:
            best = best.or_better(step, verdict)
    return best


def _curve(steps: Sequence[StepSummary]) -> Iterable[Best]:
    best = Best()
    for step in steps:
        best = best.or_better(step.step, step.result.verdict)
        yield best


def _without_steps(records: TaskRecords, within: int | None) -> TaskResult:
    recorded = records.best_verdicts()
    usable = [total for total in recorded if within is None or total <= within]
    if recorded and not usable:
        raise RecordError(
            f"{records.folder} holds only the best after {min(recorded)} steps; "
            f"ask for at least that many, not {within}"
        )
    last = usable[-1] if usable else None
    best = None if last is None else recorded[last]
    clean = None if last is None else records.best_clean_verdict(last)
    return TaskResult(
        key=records.folder.name,
        best=Best().or_better(None, best),
        curve=(),
        first_correct=None if usable else False,
        steps=last or 0,
        statuses=Counter(),
        usage=None if usable else Usage(),
        failure=records.failure(),
        clean=_best_clean([(None, best), (None, clean)]),
        problem_flags=_problem_flags(recorded.values()),
        ran=_ran([best]),
        begun=records.folder.is_dir(),
    )
