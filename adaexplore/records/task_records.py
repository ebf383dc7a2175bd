"""One task's folder in a run: its steps, its best kernel, its tree, or why it could not be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import AdaExploreError, StorageError
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import Verdict
from adaexplore.records import content, layout, metrics, step_log
from adaexplore.records.step_reader import StepReader, StepSummary

SEPARATOR = "\n" + "-" * 100 + "\n"
"""Stands between the prompts, and between the replies, of a step that asked more than once."""


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

    def write_reference(self, text: str) -> None:
        """Keep the problem's source."""
        content.write(self.folder / layout.REFERENCE, text)

    def write_step(self, record: StepRecord) -> None:
        """Write one finished step, its log last. A linear agent keeps nothing of the dummy root.

        Raises:
            RecordError: the metrics of a kernel that the step was shown cannot be read.
            StorageError: a file cannot be written; the step then does not exist.
        """
        step = record.node.plan.step
        if step == 0 and not layout.has_root(self.agent_type):
            return
        files = layout.step_files(self.folder, self.agent_type, step)
        exchanges = record.draft.exchanges
        kind = record.node.plan.kind
        cause = kind if kind is StepKind.DUMMY_ROOT else record.draft.outcome
        found = metrics.to_metrics(record.verdict, cause)
        log = self._log(record, found)
        _retire(files, log)
        content.write_json(files.exchanges, [asdict(exchange) for exchange in exchanges])
        content.write_json(files.usage, asdict(record.draft.usage))
        content.write(files.prompt, SEPARATOR.join(exchange.prompt for exchange in exchanges))
        content.write(files.reply, SEPARATOR.join(exchange.reply for exchange in exchanges))
        content.write(files.code, record.draft.source)
        if files.metrics_text is not None:
            content.write(files.metrics_text, metrics.to_text(found))
        content.write_json(files.metrics, found)
        content.write_json(files.log, log)

    def steps(self) -> list[StepRecord]:
        """Every complete step from the first (0 or 1) on, up to the first gap.

        A dummy root's parent reads back as node 0; a step of the release has no replies and its
        usage is unknown.

        Raises:
            RecordError: a file of a complete step is missing or damaged; the message names it.
        """
        return self._reader.records()

    def summaries(self) -> list[StepSummary]:
        """The same steps as :meth:`steps`, without their prompts and sources.

        Raises:
            RecordError: a file of a complete step is missing or damaged; the message names it.
        """
        return self._reader.summaries()

    def write_best(self, total_steps: int, source: str, verdict: Verdict | None) -> None:
        """Keep the best candidate of ``total_steps`` steps; this marks the task as finished.

        Without a verdict the best is the dummy root: no step brought a candidate to judge.
        """
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
        """Whether the best kernel of ``total_steps`` steps and its metrics are both on disk."""
        return self.best_kernel_path(total_steps).is_file() and self._best_metrics_path(total_steps).is_file()

    def best(self, total_steps: int | None = None) -> BestKernel | None:
        """The recorded best of ``total_steps`` steps (by default of the most), None without such a record.

        Raises:
            RecordError: the record is damaged, or its source is missing.
        """
        recorded = layout.best_steps(self._names())
        steps = recorded[-1] if total_steps is None and recorded else total_steps
        if steps is None or steps not in recorded:
            return None
        source = content.read(self.best_kernel_path(steps))
        return BestKernel(steps, source, metrics.read_verdict(self._best_metrics_path(steps)))

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

    def has_reference(self) -> bool:
        """Whether the problem's source was kept, so that a search was begun here."""
        return (self.folder / layout.REFERENCE).is_file()

    def reference(self) -> str:
        """The problem's source.

        Raises:
            RecordError: it was not kept.
        """
        return content.read(self.folder / layout.REFERENCE)

    def copy_from(self, other: TaskRecords) -> None:
        """Take over another run's steps, logs last, where this folder has fewer complete ones.

        Copied are all files but the ones with "best" in their name and a failure.

        Raises:
            RecordError: a file there cannot be read.
            StorageError: a file here cannot be written.
        """
        if len(list(self._reader.numbers())) >= len(list(other._reader.numbers())):
            return
        names = [
            name
            for name in other._names()
            if "best" not in name and name != layout.TASK_FAILURE and not name.startswith(".")
        ]
        for name in sorted(names, key=lambda name: (name.endswith("_log.json"), layout.natural(name))):
            content.write(self.folder / name, content.read(other.folder / name))

    def _names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []

    def _best_metrics_path(self, total_steps: int) -> Path:
        return self.folder / layout.best_metrics(total_steps)

    def _best_clean_metrics_path(self, total_steps: int) -> Path:
        return self.folder / layout.best_clean_metrics(total_steps)

    def _log(self, record: StepRecord, found: Mapping[str, Any]) -> dict[str, Any]:
        if self.agent_type not in layout.PROPOSERS:
            return step_log.tree_log(record)
        plan = record.node.plan
        shown = [step for step in (*plan.elite_ids, *plan.context_ids) if step > 0]
        context = [step_log.short_metrics(self._reader.metrics(step)) for step in shown]
        return step_log.proposal_log(record, found, context)


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


def _retire(files: layout.StepFiles, log: Mapping[str, Any]) -> None:
    """Make a step that is about to become another one not exist meanwhile."""
    try:
        if files.log.exists() and files.log.read_bytes() != content.json_text(log).encode():
            files.log.replace(files.superseded_log)
    except OSError as error:
        raise StorageError(f"cannot rename {files.log}: {error.strerror or error}") from error
