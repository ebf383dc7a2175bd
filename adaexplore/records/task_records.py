"""One task's folder in a run: its steps, best kernel and tree, or why it could not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from adaexplore.core.environment import ReferenceFacts
from adaexplore.core.errors import AdaExploreError, RecordError
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from adaexplore.records import content, layout, metrics
from adaexplore.records.run_lock import RunLock
from adaexplore.records.step_reader import StepReader, StepSummary
from adaexplore.records.step_writer import retire_log, write_step

PROFILE: TypeAdapter[Profile | None] = TypeAdapter(Profile | None)
_PLANS: TypeAdapter[tuple[Plan, ...]] = TypeAdapter(tuple[Plan, ...])
_RULES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
_FACTS = TypeAdapter(ReferenceFacts)
_OF_THE_TASK = (
    layout.HIDDEN_WORKLOADS, layout.FULL_REFERENCE, layout.REFERENCE, layout.REFERENCE_FACTS, layout.RULES,
    layout.FINDINGS,
)  # fmt: skip


@dataclass(frozen=True)
class BestKernel:
    """The best candidate within ``total_steps`` steps; without a verdict if nothing could be judged."""

    total_steps: int
    source: str
    verdict: Verdict | None


@dataclass(frozen=True)
class TaskFailure:
    """Why a task could not run: the name of the error and its message."""

    error_type: str = ""
    message: str = ""


_FAILURE = TypeAdapter(TaskFailure)


class TaskRecords(StepReader):
    """A task's folder; a step exists once its log, the last of its files, is written.

    Nothing is ever deleted: repeating an unfinished step overwrites its files.

    Methods that read raise RecordError, which names the file, if it is missing or damaged; methods that write
    raise StorageError.
    """

    def __init__(self, folder: Path, agent_type: str, lock: RunLock | None = None) -> None:
        """Describe ``folder``; while ``lock`` is held, nothing is written once the run's folder has moved."""
        super().__init__(folder, agent_type)
        self._lock = lock or RunLock(folder.parent)

    def check_place(self) -> None:
        """Raise a StorageError if the run's folder was moved or removed since the run was locked."""
        self._lock.check()

    def write_reference(
        self, text: str, hidden_workloads: str | None = None, full_reference: str | None = None
    ) -> None:
        if hidden_workloads is not None:
            self._lock.write_text(self.folder / layout.HIDDEN_WORKLOADS, hidden_workloads)
        if full_reference is not None:
            self._lock.write_text(self.folder / layout.FULL_REFERENCE, full_reference)
        self._lock.write_text(self.folder / layout.REFERENCE, text)

    def write_reference_facts(self, facts: ReferenceFacts) -> None:
        """Write the judge's facts about the reference, which the task's prompts state."""
        self._lock.write_json(self.folder / layout.REFERENCE_FACTS, facts.model_dump(mode="json"))

    def reference_facts(self) -> ReferenceFacts | None:
        return content.read_as(self.folder / layout.REFERENCE_FACTS, _FACTS)

    def write_step(self, record: StepRecord) -> None:
        """Write one finished step, its log last. A linear agent writes nothing for the dummy root.

        Raises:
            RecordError: the metrics of a kernel in the step's context cannot be read.
            StorageError: a file cannot be written; the step then does not exist.
        """
        write_step(self, record, self._lock)

    def step_count(self) -> int:
        """Return the number of :meth:`steps`, without the dummy root."""
        return sum(step > 0 for step in self.numbers())

    def write_best(self, total_steps: int, source: str, verdict: Verdict | None) -> None:
        """Write the best candidate of ``total_steps`` steps; this marks the task as finished.

        Only a correct candidate has a kernel file. Without a verdict the best is the dummy root: no step
        had a candidate to judge.
        """
        if verdict is not None and verdict.correct:
            self._lock.write_text(self.best_kernel_path(total_steps), source)
        self._lock.write_json(
            self.best_metrics_path(total_steps), metrics.to_metrics(verdict, StepKind.DUMMY_ROOT)
        )

    def write_best_clean(self, total_steps: int, source: str, verdict: Verdict) -> None:
        """Write the best correct candidate without suspect flags, if the best one has flags."""
        self._lock.write_text(self.best_clean_kernel_path(total_steps), source)
        self._lock.write_json(self._best_clean_metrics_path(total_steps), to_metrics(verdict))

    def best_clean_verdict(self, total_steps: int) -> Verdict | None:
        """Return the verdict that :meth:`write_best_clean` wrote; None if it was not needed."""
        path = self._best_clean_metrics_path(total_steps)
        return metrics.read_verdict(path) if path.is_file() else None

    def best_clean_kernel_path(self, total_steps: int) -> Path:
        return self.folder / f"global_best_clean_kernel_{total_steps}.py"

    def best_kernel_path(self, total_steps: int) -> Path:
        return self.folder / f"global_best_kernel_{total_steps}.py"

    def kernel_path(self, step: int) -> Path:
        return self.files(step).code

    def finished(self, total_steps: int) -> bool:
        """Return whether the best of ``total_steps`` steps, with its kernel if correct, is on disk."""
        path = self.best_metrics_path(total_steps)
        if not path.is_file():
            return False
        best = metrics.read_verdict(path)
        return best is None or not best.correct or self.best_kernel_path(total_steps).is_file()

    def best(self, total_steps: int | None = None) -> BestKernel | None:
        """Return the recorded best of ``total_steps`` steps (by default the most); None without a record."""
        recorded = layout.best_steps(self._names())
        steps = recorded[-1] if total_steps is None and recorded else total_steps
        if steps is None or steps not in recorded:
            return None
        verdict = metrics.read_verdict(self.best_metrics_path(steps))
        correct = verdict is not None and verdict.correct
        return BestKernel(steps, content.read(self.best_kernel_path(steps)) if correct else "", verdict)

    def best_verdicts(self) -> dict[int, Verdict | None]:
        """Return the recorded best verdicts by step total, ascending."""
        recorded = layout.best_steps(self._names())
        return {steps: metrics.read_verdict(self.best_metrics_path(steps)) for steps in recorded}

    def write_re_evaluation(self, steps: int, verdict: Verdict, kernel: Path) -> None:
        """Write the new verdict on the best candidate of the first ``steps`` steps, and the curve to it."""
        found = {**to_metrics(verdict), "kernel_path": kernel.name}
        self._lock.write_json(self.folder / f"global_best_metrics_on_sf_{steps}.json", found)
        self._lock.write_json(self.folder / layout.RE_EVALUATED, found)
        self._lock.write_json(self.folder / layout.STEP_CURVE, best_curve(self.summaries()))

    def write_tree(self, statistics: Mapping[str, Any], structure: str) -> None:
        self._lock.write_json(self.folder / layout.TREE_STATISTICS, dict(statistics))
        self._lock.write_text(self.folder / layout.TREE_STRUCTURE, structure)

    def write_failure(self, error: AdaExploreError) -> None:
        """Write why the task could not run; the best files of a finished task take precedence."""
        failure = {"error_type": type(error).__name__, "message": str(error)}
        self._lock.write_json(self.folder / layout.TASK_FAILURE, failure)

    def failure(self) -> TaskFailure | None:
        """Return why the task could not run; None if it could, or if it finished later."""
        if layout.best_steps(self._names()):
            return None
        return content.read_as(self.folder / layout.TASK_FAILURE, _FAILURE)

    def write_profile(self, step: int, profile: Profile | None) -> None:
        """Write the profile of a step's kernel; None if the judge has none."""
        self._lock.write_json(self.files(step).profile, None if profile is None else asdict(profile))

    def profiles(self) -> dict[int, Profile | None]:
        found = {}
        for step in self.numbers():
            path = self.files(step).profile
            if path.is_file():
                found[step] = content.read_as(path, PROFILE)
        return found

    def write_findings(self, findings: Mapping[str, CompileReport]) -> None:
        """Write the reports of the judge's compiler, by identity of the source."""
        told = {name: report.model_dump(exclude={"ok", "asm"}) for name, report in findings.items()}
        self._lock.write_json(self.folder / layout.FINDINGS, told)

    def findings(self) -> dict[str, CompileReport]:
        path = self.folder / layout.FINDINGS
        found = content.read_object(path, missing={})
        try:
            return {
                name: CompileReport(ok=not Status(told["status"]).is_fault, **told)
                for name, told in found.items()
            }
        except (KeyError, TypeError, ValueError) as error:
            raise content.damaged(path, content.reason(error)) from error

    def write_rules(self, rules: Sequence[str]) -> None:
        """Write the rules of the skill memory that the task's prompts show."""
        self._lock.write_json(self.folder / layout.RULES, list(rules))

    def rules(self) -> tuple[str, ...] | None:
        """Return the rules with which the task was started; None if they were not recorded."""
        return content.read_as(self.folder / layout.RULES, _RULES)

    def write_plans(self, plans: Sequence[Plan]) -> None:
        """Write the plans in flight, so that a resumed search executes the same plans."""
        self._lock.write_json(self.folder / layout.PLANS, _PLANS.dump_python(tuple(plans), mode="json"))

    def plans(self) -> tuple[Plan, ...]:
        return content.read_as(self.folder / layout.PLANS, _PLANS) or ()

    @property
    def reference_path(self) -> Path:
        return self.folder / layout.REFERENCE

    def has_reference(self) -> bool:
        """Return whether the problem's source was written, which starts a search."""
        return self.reference_path.is_file()

    def reference(self) -> str:
        if not self.has_reference():
            raise RecordError(
                f"{self.reference_path} is missing; restore it, or continue the run, which writes it again"
            )
        return content.read(self.reference_path)

    def hidden_workloads(self) -> str | None:
        return self._optional(layout.HIDDEN_WORKLOADS)

    def full_reference(self) -> str | None:
        return self._optional(layout.FULL_REFERENCE)

    def _optional(self, name: str) -> str | None:
        path = self.folder / name
        return content.read(path) if path.is_file() else None

    def copy_from(self, other: TaskRecords, within: int | None = None) -> None:
        """Copy the first ``within`` steps (by default all) of another run, if this folder has fewer.

        Steps are copied in order, the log of each last, with their problem and rules.
        """
        root = [step for step in other.numbers() if step == 0]
        steps = [step for step in other.numbers() if step > 0][:within]
        if len(self.numbers()) >= len(root + steps):
            return
        paths = [other.folder / name for name in _OF_THE_TASK]
        for step in root + steps:
            paths += layout.step_files(other.folder, self.agent_type, step).all()
        for path in paths:
            if path.is_file():
                self._lock.write_text(self.folder / path.name, content.read(path))

    def set_aside(self) -> None:
        """Rename the logs of complete steps after a gap, so that new steps do not mix in."""
        for step in self.after_gap():
            retire_log(self.files(step))

    def best_metrics_path(self, total_steps: int) -> Path:
        return self.folder / f"global_best_metrics_{total_steps}.json"

    def _best_clean_metrics_path(self, total_steps: int) -> Path:
        return self.folder / f"global_best_clean_metrics_{total_steps}.json"


def best_curve(steps: Iterable[StepSummary]) -> list[dict[str, Any]]:
    """Return the entries of ``step_best_curve.json``: step, current_runtime and best_runtime (ms), fast_p.

    ``fast_p`` is the best speedup up to the step; unmeasured values are null.
    """
    curve: list[dict[str, Any]] = []
    best_runtime: float | None = None
    best: float | None = None
    for step in steps:
        if step.kind is StepKind.DUMMY_ROOT:
            continue
        verdict = step.result.verdict
        runtime = None if verdict is None else verdict.runtime_ms
        speedup = None if verdict is None else verdict.speedup
        best_runtime = min((time for time in (best_runtime, runtime) if time is not None), default=None)
        best = max((known for known in (best, speedup) if known is not None), default=None)
        curve.append(
            {"step": step.step, "current_runtime": runtime, "best_runtime": best_runtime, "fast_p": best}
        )
    return curve
