"""What one task of a run came to within a number of steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import RecordError
from adaexplore.core.plan import StepKind
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import INTERPRETER, Interval, Verdict
from adaexplore.records.step_reader import StepSummary
from adaexplore.records.task_records import TaskFailure, TaskRecords
from adaexplore.report.savings import Savings, count_savings


@dataclass(frozen=True)
class Best:
    """The best candidate after some step.

    Attributes:
        step: the step that brought it, None while none was correct, or where that was not recorded.
        correct: whether there is a correct one.
        speedup: reference time / its time; None while none is correct, or where it was not measured.
        interpreted: whether it is correct under Triton's interpreter, whose times claim nothing.
        interval: confidence interval of the speedup, where the judge gave one.
        flags: ids of what makes it suspect to the judge.
        problem_flags: ids of what the judge found about its problem.
    """

    step: int | None = None
    correct: bool = False
    speedup: float | None = None
    interpreted: bool = False
    interval: Interval | None = None
    flags: tuple[str, ...] = ()
    problem_flags: tuple[str, ...] = ()

    def or_better(self, step: int | None, verdict: Verdict | None) -> Best:
        """This or the candidate of ``step``, if strictly better; a measured one beats any that is not."""
        if verdict is None or not verdict.correct:
            return self
        interpreted = verdict.runtime_stats.get("timing") == INTERPRETER
        speedup = measured_speedup(verdict)
        found = Best(
            step=step,
            correct=True,
            speedup=speedup,
            interpreted=interpreted,
            interval=None if speedup is None else verdict.speedup_interval,
            flags=tuple(flag.id for flag in verdict.suspect_flags),
            problem_flags=tuple(flag.id for flag in verdict.problem_flags),
        )
        return found if found._rank > self._rank else self

    @property
    def _rank(self) -> tuple[bool, float]:
        return self.correct, 0.0 if self.speedup is None else self.speedup


@dataclass(frozen=True)
class CommonFailure:
    """The most frequent way in which steps of a task failed.

    Attributes:
        status: what the judge found, or why a reply left nothing to judge.
        times: how many steps failed so.
        step: the last of them.
        text: what the judge said of that one, "" where it was not asked.
    """

    status: str
    times: int
    step: int
    text: str


@dataclass(frozen=True)
class TaskResult:
    """A task within the first so many steps.

    Attributes:
        key: ``<level>_<problem_id>``.
        best: the best candidate.
        clean: the best candidate without suspect flags; the same where the best has none.
        savings: what its steps came to before the judge.
        curve: the best after each step, the first step first; empty where steps were not recorded.
        first_correct: whether the first step of a model was correct; None where steps were not recorded.
        steps: how many steps were taken.
        statuses: how often the judge found what, and how often a reply left nothing to judge.
        usage: cost of these steps; None where it was not recorded.
        failure: why the task could not be run.
        common_failure: of these steps; None where none failed or steps were not recorded.
    """

    key: str
    best: Best
    curve: tuple[Best, ...]
    first_correct: bool | None
    steps: int
    statuses: Counter[str]
    usage: Usage | None
    failure: TaskFailure | None
    clean: Best
    savings: Savings = field(default_factory=Savings)
    common_failure: CommonFailure | None = None


def measured_speedup(verdict: Verdict) -> float | None:
    """The verdict's speedup, None where there is none on real hardware; 0 (never timed) is none."""
    speedup = verdict.speedup
    return speedup if speedup is not None and math.isfinite(speedup) and speedup > 0 else None


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum; None when one of them was not recorded."""
    total = Usage()
    for usage in usages:
        if usage is None:
            return None
        total += usage
    return total


def task_result(records: TaskRecords, within: int | None) -> TaskResult:
    """What the task came to within its first ``within`` steps, by default in all that are recorded.

    A folder that holds only recorded bests (``global_best_metrics_<n>.json``) is taken by these.

    Raises:
        RecordError: a record is damaged, or only bests of more steps than ``within`` are there.
    """
    steps = [step for step in records.summaries() if step.kind is not StepKind.DUMMY_ROOT]
    if not steps:
        return _without_steps(records, within)
    steps = steps[:within]
    curve = tuple(_curve(steps))
    first = next((step for step in steps if step.outcome is not DraftOutcome.SEED), None)
    return TaskResult(
        key=records.folder.name,
        best=curve[-1],
        curve=curve,
        first_correct=first is not None and first.verdict is not None and first.verdict.correct,
        steps=len(steps),
        statuses=Counter(_status(step) for step in steps),
        usage=total_usage(step.usage for step in steps),
        failure=records.failure(),
        clean=_best_clean((step.step, step.verdict) for step in steps),
        savings=count_savings(steps),
        common_failure=_common_failure(steps),
    )


def _common_failure(steps: Sequence[StepSummary]) -> CommonFailure | None:
    failed = [step for step in steps if step.verdict is None or not step.verdict.correct]
    if not failed:
        return None
    status, times = Counter(map(_status, reversed(failed))).most_common(1)[0]
    last = next(step for step in reversed(failed) if _status(step) == status)
    text = "" if last.verdict is None else " ".join(last.verdict.feedback.split())
    return CommonFailure(status, times, last.step, text)


def _best_clean(found: Iterable[tuple[int | None, Verdict | None]]) -> Best:
    best = Best()
    for step, verdict in found:
        if verdict is not None and not verdict.suspect_flags:
            best = best.or_better(step, verdict)
    return best


def _curve(steps: Sequence[StepSummary]) -> Iterable[Best]:
    best = Best()
    for step in steps:
        best = best.or_better(step.step, step.verdict)
        yield best


def _status(step: StepSummary) -> str:
    return step.outcome.value if step.verdict is None else step.verdict.status.value


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
    )
