"""One task's folder in a run: its steps, its best kernel, its tree, or why it could not be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from adaexplore.core.errors import AdaExploreError
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.profile import Profile
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import Verdict
from adaexplore.records import content, layout, metrics
from adaexplore.records.step_reader import StepReader, StepSummary
from adaexplore.records.step_writer import StepWriter

_PROFILE: TypeAdapter[Profile | None] = TypeAdapter(Profile | None)
_PLANS: TypeAdapter[tuple[Plan, ...]] = TypeAdapter(tuple[Plan, ...])
_RULES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])


@dataclass(frozen=True)
class BestKernel:
    """The best candidate within ``total_steps`` steps; no verdict where nothing could be judged."""

    total_steps: int
    source: str
    verdict: Verdict | None


@dataclass(frozen=True)
class TaskFailure:
    """Why a task could not be run: the name of the error and its message."""

    error_type: str
    message: str


class TaskRecords:
    """A task's folder; a step exists from the moment its log is there, which is written last.

    Nothing is ever deleted: what an unfinished step left is overwritten when the step is repeated.
    """

    def __init__(self, folder: Path, agent_type: str) -> None:
        """Describe ``folder``, which need not exist yet.

        Raises:
            ValueError: there is no such agent.
        """
        layout.step_files(folder, agent_type, 0)
        self.folder = folder
        self.agent_type = agent_type
        self._reader = StepReader(folder, agent_type)
        self._writer = StepWriter(folder, agent_type, self._reader)

    def write_reference(self, text: str) -> None:
        """Keep the problem's source."""
        content.write(self.folder / layout.REFERENCE, text)

    def write_step(self, record: StepRecord) -> None:
        """Write one finished step, its log last. A linear agent keeps nothing of the dummy root.

        Raises:
            RecordError: the metrics of a kernel that the step was shown cannot be read.
            StorageError: a file cannot be written; the step then does not exist.
        """
        self._writer.write(record)

    def steps(self) -> list[StepRecord]:
        """Every complete step in the order in which they were observed, up to the first gap.

        The first is the dummy root, where the agent keeps one; its parent reads back as node 0. A step
        of the release has no replies and its usage is unknown.

        Raises:
            RecordError: a file of a complete step is missing or damaged; the message names it.
        """
        return self._reader.records()

    def step_count(self) -> int:
        """How many steps :meth:`steps` has, the dummy root left out.

        Raises:
            RecordError: a log is damaged.
        """
        return sum(step > 0 for step in self._reader.numbers())

    def unreadable_logs(self) -> list[Path]:
        """List the logs of complete steps of which a file is missing or damaged."""
        return [
            layout.step_files(self.folder, self.agent_type, step).log for step in self._reader.unreadable()
        ]

    def summaries(self) -> list[StepSummary]:
        """The same steps as :meth:`steps`, without their prompts and sources.

        Raises:
            RecordError: a file of a complete step is missing or damaged; the message names it.
        """
        return self._reader.summaries()

    def write_best(self, total_steps: int, source: str, verdict: Verdict | None) -> None:
        """Keep the best candidate of ``total_steps`` steps; this marks the task as finished.

        Only a correct candidate gets a kernel file. Without a verdict the best is the dummy root: no step
        brought a candidate to judge.
        """
        if verdict is not None and verdict.correct:
            content.write(self.best_kernel_path(total_steps), source)
        content.write_json(
            self._best_metrics_path(total_steps), metrics.to_metrics(verdict, StepKind.DUMMY_ROOT)
        )

    def write_best_clean(self, total_steps: int, source: str, verdict: Verdict) -> None:
        """Keep the best correct candidate without suspect flags, beside a best one that has some."""
        content.write(self.best_clean_kernel_path(total_steps), source)
        content.write_json(self._best_clean_metrics_path(total_steps), verdict.to_metrics())

    def best_clean_verdict(self, total_steps: int) -> Verdict | None:
        """The verdict that :meth:`write_best_clean` kept, None where it was not called for.

        Raises:
            RecordError: the record is damaged.
        """
        path = self._best_clean_metrics_path(total_steps)
        return metrics.read_verdict(path) if path.is_file() else None

    def best_clean_kernel_path(self, total_steps: int) -> Path:
        """Where the best kernel without suspect flags lies, where the best one has some."""
        return self.folder / layout.best_clean_kernel(total_steps)

    def best_kernel_path(self, total_steps: int) -> Path:
        """Where the best kernel of ``total_steps`` steps lies or will lie."""
        return self.folder / layout.best_kernel(total_steps)

    def kernel_path(self, step: int) -> Path:
        """Where the candidate of one step lies or will lie."""
        return layout.step_files(self.folder, self.agent_type, step).code

    def finished(self, total_steps: int) -> bool:
        """Whether the metrics of the best of ``total_steps`` steps, and its kernel if correct, are on disk.

        Raises:
            RecordError: the metrics are damaged.
        """
        path = self._best_metrics_path(total_steps)
        if not path.is_file():
            return False
        best = metrics.read_verdict(path)
        return best is None or not best.correct or self.best_kernel_path(total_steps).is_file()

    def best(self, total_steps: int | None = None) -> BestKernel | None:
        """The recorded best of ``total_steps`` steps (by default of the most), None without such a record.

        Raises:
            RecordError: the record is damaged, or its source is missing.
        """
        recorded = layout.best_steps(self._names())
        steps = recorded[-1] if total_steps is None and recorded else total_steps
        if steps is None or steps not in recorded:
            return None
        verdict = metrics.read_verdict(self._best_metrics_path(steps))
        correct = verdict is not None and verdict.correct
        return BestKernel(steps, content.read(self.best_kernel_path(steps)) if correct else "", verdict)

    def best_verdicts(self) -> dict[int, Verdict | None]:
        """The recorded best verdicts by step total, ascending.

        Raises:
            RecordError: one of them is damaged.
        """
        recorded = layout.best_steps(self._names())
        return {steps: metrics.read_verdict(self._best_metrics_path(steps)) for steps in recorded}

    def write_re_evaluation(self, steps: int, verdict: Verdict, kernel: Path) -> None:
        """Keep what judging the best candidate of the first ``steps`` steps again found, and the curve to it.

        Args:
            steps: how many steps the candidate is the best of.
            verdict: what the judge found now.
            kernel: the file that was judged.
        """
        found = {**verdict.to_metrics(), "kernel_path": kernel.name}
        content.write_json(self.folder / layout.re_evaluated_within(steps), found)
        content.write_json(self.folder / layout.RE_EVALUATED, found)
        content.write_json(self.folder / layout.STEP_CURVE, best_curve(self.summaries()))

    def write_tree(self, statistics: Mapping[str, Any], structure: str) -> None:
        """Keep the finished tree's figures and its picture."""
        content.write_json(self.folder / layout.TREE_STATISTICS, dict(statistics))
        content.write(self.folder / layout.TREE_STRUCTURE, structure)

    def write_failure(self, error: AdaExploreError) -> None:
        """Keep why the task could not be run; a finished task's best files outrank it."""
        failure = {"error_type": type(error).__name__, "message": str(error)}
        content.write_json(self.folder / layout.TASK_FAILURE, failure)

    def failure(self) -> TaskFailure | None:
        """Why the task could not be run, None when it could, or was finished in the end.

        Raises:
            RecordError: the record is damaged.
        """
        path = self.folder / layout.TASK_FAILURE
        if not path.is_file() or layout.best_steps(self._names()):
            return None
        data = content.read_object(path)
        return TaskFailure(str(data.get("error_type", "")), str(data.get("message", "")))

    def write_profile(self, step: int, profile: Profile | None) -> None:
        """Keep the profile of a step's kernel, also that the judge has none."""
        path = layout.step_files(self.folder, self.agent_type, step).profile
        content.write_json(path, None if profile is None else asdict(profile))

    def profiles(self) -> dict[int, Profile | None]:
        """The profiles that were kept, by step.

        Raises:
            RecordError: one of them is damaged.
        """
        found = {}
        for step in self._reader.numbers():
            path = layout.step_files(self.folder, self.agent_type, step).profile
            if path.is_file():
                try:
                    found[step] = _PROFILE.validate_json(content.read(path))
                except ValueError as error:
                    raise content.damaged(path, content.reason(error)) from error
        return found

    def write_findings(self, findings: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what the judge's compiler said of the task's sources, by identity of the source."""
        content.write_json(self.folder / layout.FINDINGS, findings)

    def findings(self) -> dict[str, Any]:
        """What :meth:`write_findings` kept.

        Raises:
            RecordError: the record is damaged.
        """
        path = self.folder / layout.FINDINGS
        return content.read_object(path) if path.is_file() else {}

    def write_rules(self, rules: Sequence[str]) -> None:
        """Keep the rules of the skill memory that the task's prompts show."""
        content.write_json(self.folder / layout.RULES, list(rules))

    def rules(self) -> tuple[str, ...] | None:
        """The rules that the task was begun with; None where they were not kept.

        Raises:
            RecordError: the record is damaged.
        """
        path = self.folder / layout.RULES
        if not path.is_file():
            return None
        try:
            return _RULES.validate_json(content.read(path))
        except ValueError as error:
            raise content.damaged(path, content.reason(error)) from error

    def write_plans(self, plans: Sequence[Plan]) -> None:
        """Keep the plans in flight, so that a resumed search carries out the same ones."""
        content.write_json(self.folder / layout.PLANS, _PLANS.dump_python(tuple(plans), mode="json"))

    def plans(self) -> tuple[Plan, ...]:
        """Return what :meth:`write_plans` kept last.

        Raises:
            RecordError: the record is damaged.
        """
        path = self.folder / layout.PLANS
        if not path.is_file():
            return ()
        try:
            return _PLANS.validate_json(content.read(path))
        except ValueError as error:
            raise content.damaged(path, content.reason(error)) from error

    @property
    def reference_path(self) -> Path:
        """Where the problem's source lies or will lie."""
        return self.folder / layout.REFERENCE

    def has_reference(self) -> bool:
        """Whether the problem's source was kept, so that a search was begun here."""
        return self.reference_path.is_file()

    def reference(self) -> str:
        """The problem's source.

        Raises:
            RecordError: it was not kept.
        """
        return content.read(self.folder / layout.REFERENCE)

    def copy_from(self, other: TaskRecords, within: int | None = None) -> None:
        """Take over the first ``within`` steps (by default all) of another run, where this folder has fewer.

        Steps are copied in their order, the log of each last, with the problem and the rules that they were
        made with.

        Raises:
            RecordError: a file there cannot be read.
            StorageError: a file here cannot be written.
        """
        root = [step for step in other._reader.numbers() if step == 0]
        steps = [step for step in other._reader.numbers() if step > 0][:within]
        if len(self._reader.numbers()) >= len(root + steps):
            return
        paths = [other.folder / name for name in (layout.REFERENCE, layout.RULES, layout.FINDINGS)]
        for step in root + steps:
            paths += layout.step_files(other.folder, self.agent_type, step).all()
        for path in paths:
            if path.is_file():
                content.write(self.folder / path.name, content.read(path))

    def set_aside(self) -> None:
        """Rename the logs of complete steps beyond a gap, so that they do not mix with those to come.

        Raises:
            RecordError: a log is damaged.
            StorageError: a file cannot be renamed.
        """
        self._writer.set_aside()

    def _names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []

    def _best_metrics_path(self, total_steps: int) -> Path:
        return self.folder / layout.best_metrics(total_steps)

    def _best_clean_metrics_path(self, total_steps: int) -> Path:
        return self.folder / layout.best_clean_metrics(total_steps)


def best_curve(steps: Iterable[StepSummary]) -> list[dict[str, Any]]:
    """The entries of ``step_best_curve.json``: step, current_runtime and best_runtime (ms), fast_p.

    ``fast_p`` is the best speedup up to the step; what was not measured is null.
    """
    curve: list[dict[str, Any]] = []
    best_runtime: float | None = None
    best: float | None = None
    for step in steps:
        if step.kind is StepKind.DUMMY_ROOT:
            continue
        runtime = None if step.verdict is None else step.verdict.runtime_ms
        speedup = None if step.verdict is None else step.verdict.speedup
        best_runtime = min((time for time in (best_runtime, runtime) if time is not None), default=None)
        best = max((known for known in (best, speedup) if known is not None), default=None)
        curve.append(
            {"step": step.step, "current_runtime": runtime, "best_runtime": best_runtime, "fast_p": best}
        )
    return curve
