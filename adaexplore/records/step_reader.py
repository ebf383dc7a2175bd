"""Read the steps of one task's folder, written by this project or by the release."""

import filecmp
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from adaexplore.core.draft import STOPPED, Draft, DraftOutcome, Exchange
from adaexplore.core.errors import RecordError
from adaexplore.core.plan import StepKind
from adaexplore.core.step import NodeState, StepRecord, StepResult
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.records import content, layout, metrics, step_log

_EXCHANGES = TypeAdapter(tuple[Exchange, ...])
UNKNOWN_USAGE = Usage(usd=None)
"""The cost of a step without a recorded one (a run of the release)."""


@dataclass(frozen=True)
class StepSummary:
    """The parts of a step that statistics need, without its prompts and source."""

    step: int  # its number, also its node's id
    kind: StepKind
    outcome: DraftOutcome
    # the verdict; None if there was nothing to judge. If edits failed it is the parent's: ``result`` has
    # the step's own
    verdict: Verdict | None
    evaluated: bool  # whether the judge was asked
    usage: Usage | None  # its cost; None if not recorded (a run of the release)
    repairs: Counter[str] = field(default_factory=Counter)  # number of repairs within the step, by reason
    # whether the judge was asked twice, as in earlier versions for a new best within noise
    retimed: bool = False

    @property
    def result(self) -> StepResult:
        return StepResult(self.kind, self.outcome, self.verdict)


class StepReader:
    """The complete steps of one task's folder, in the order in which the search observed them.

    A step is complete if its log exists; for the release's IRS, which wrote no logs, if its metrics
    exist. Its place in the order is the tree size in its log, since each observation adds one node.
    With one step in flight at a time, places and numbers are the same. Methods raise RecordError, which names
    the file, if one is missing or damaged.
    """

    def __init__(self, folder: Path, agent_type: str) -> None:
        """Describe ``folder``, which need not exist yet, with the files of ``agent_type``.

        Raises:
            ValueError: there is no such agent.
        """
        layout.step_files(folder, agent_type, 0)
        self.folder = folder
        self.agent_type = agent_type

    def numbers(self) -> list[int]:
        """Return the complete steps from the first place (the root's, or 1).

        Raises:
            RecordError: a log is damaged, or one is missing although later steps or their best exist.
        """
        names = self._names()
        order, after = self._in_order(names)
        lost = self._lost(names, order, after)
        if lost is not None:
            raise RecordError(
                f"{lost} is missing, though the run went on after it; restore it, or have "
                "`adaexplore repair RUN` set the later files aside"
            )
        return order

    def lost_log(self) -> Path | None:
        """Return the log without which :meth:`numbers` refuses to read the steps; None if none is missing."""
        names = self._names()
        return self._lost(names, *self._in_order(names))

    def after_gap(self) -> list[int]:
        """Return the complete steps, by number, that are not in the order of :meth:`numbers`."""
        names = self._names()
        order, _ = self._in_order(names)
        return [step for step in self._complete(names) if step not in order]

    def complete(self) -> list[int]:
        """Return all complete steps by number, including those after a gap."""
        return self._complete(self._names())

    def unreadable_logs(self) -> list[Path]:
        """List the logs of complete steps with a missing or damaged file."""
        found = []
        for step in self.complete():
            try:
                self._place(step)
                self._record(step, None)
            except RecordError:
                found.append(self.files(step).log)
        return found

    def steps(self) -> list[StepRecord]:
        """Return the complete steps in the order in which they were observed, up to the first gap.

        The first is the dummy root, if the agent has one; its parent reads back as node 0. A step
        of the release has no replies, and its usage is unknown.
        """
        records: list[StepRecord] = []
        for step in self.numbers():
            records.append(self._record(step, records[-1].node if records else None))
        return records

    def summaries(self) -> list[StepSummary]:
        """Return the same steps as :meth:`steps`, without their prompts and sources."""
        summaries = []
        for step in self.numbers():
            files = self.files(step)
            summaries.append(self._summary(step, files, _read_log(files.log)))
        return summaries

    def step(self, step: int, before: NodeState | None) -> tuple[StepSummary, NodeState]:
        """Return one complete step without its prompts and source; other steps may be damaged.

        ``before`` is the node of the previous step, which logs of the release's linear agents do not have.
        """
        files = self.files(step)
        log = _read_log(files.log)
        summary = self._summary(step, files, log)
        return summary, _node(files.log, log, summary, before)

    def exchanges(self, step: int, kind: StepKind) -> tuple[Exchange, ...]:
        return _read_exchanges(self.files(step), kind)

    def metrics(self, step: int) -> dict[str, Any]:
        return metrics.read_metrics(_metrics_path(self.files(step)))

    def files(self, step: int) -> layout.StepFiles:
        return layout.step_files(self.folder, self.agent_type, step)

    def _names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []

    def _complete(self, names: list[str]) -> list[int]:
        return [step for step in layout.step_numbers(names) if self._exists(step)]

    def _in_order(self, names: list[str]) -> tuple[list[int], list[int]]:
        """Return the complete steps up to the first gap in their order, and those with a place after it."""
        at_place: dict[int, int] = {}
        for step in self._complete(names):
            at_place.setdefault(self._place(step), step)
        order = [at_place[0]] if 0 in at_place else []
        while (place := len(order) + (0 not in at_place)) in at_place:
            order.append(at_place[place])
        return order, [step for step in at_place.values() if step not in order]

    def _lost(self, names: list[str], order: list[int], after: list[int]) -> Path | None:
        """Return the log that is missing although steps ``after`` it or a record of the best exist.

        Steps of the release's IRS, which wrote no logs, are not missed.
        """
        begun = [
            step
            for step, files in ((step, self.files(step)) for step in layout.step_numbers(names))
            if files.exchanges.name in names and files.log.name not in names
        ]
        if any(self.files(step).log.name in names for step in after):
            lost = begun[0] if begun else next(step for step in count(1) if step not in order + after)
        elif begun and begun[0] <= max(layout.best_steps(names), default=-1):
            lost = begun[0]
        else:
            return None
        log = self.files(lost).log
        return None if log.exists() else log  # it may have been written since

    def _exists(self, step: int) -> bool:
        """Return whether a log exists; for IRS of the release also metrics without exchanges."""
        files = self.files(step)
        if self.agent_type != layout.IRS or files.metrics_text is None or files.exchanges.exists():
            return files.log.is_file()
        return files.log.is_file() or files.metrics_text.is_file()

    def _place(self, step: int) -> int:
        """Return the number of nodes before the step; in a run of the release, its number."""
        path = self.files(step).log
        log = _read_log(path)
        if log.get("node_id", step) != step:
            raise content.damaged(path, f"it belongs to step {log['node_id']}")
        nodes = log.get("total_nodes")
        return nodes - 1 if "outcome" in log and isinstance(nodes, int) else step

    def _summary(self, step: int, files: layout.StepFiles, log: Mapping[str, Any]) -> StepSummary:
        tuned = self.agent_type == layout.IRS and step > 1
        try:
            kind = StepKind(log.get("created_by", StepKind.SMALL if tuned else StepKind.LARGE))
            outcome = DraftOutcome(log["outcome"]) if "outcome" in log else self._of_release(step, kind, log)
        except ValueError as error:
            raise content.damaged(files.log, content.reason(error)) from error
        root = kind is StepKind.DUMMY_ROOT
        return StepSummary(
            step=step,
            kind=kind,
            outcome=outcome,
            verdict=None if root else metrics.read_verdict(_metrics_path(files)),
            evaluated=bool(log.get("evaluated", not root)),
            usage=_read_usage(files.usage),
            repairs=Counter(log.get("repairs", {})),
            retimed=bool(log.get("retimed", False)),
        )

    def _of_release(self, step: int, kind: StepKind, log: Mapping[str, Any]) -> DraftOutcome:
        """Return the outcome of a step of the release, which recorded none: a failed edit kept the file."""
        if not kind.edits:
            return DraftOutcome.WRITTEN
        parent = log.get("parent_node_id", step - 1)
        if isinstance(parent, int) and _is_same_file(self.files(step).code, self.files(parent).code):
            return DraftOutcome.UNCHANGED
        return DraftOutcome.WRITTEN

    def _record(self, step: int, before: NodeState | None) -> StepRecord:
        files = self.files(step)
        log = _read_log(files.log)
        summary = self._summary(step, files, log)
        node = _node(files.log, log, summary, before)
        draft = Draft(
            outcome=summary.outcome,
            source=_read_source(files.code, summary.kind),
            exchanges=_read_exchanges(files, summary.kind),
            usage=summary.usage or UNKNOWN_USAGE,
            verdict=summary.verdict if summary.outcome in STOPPED else None,
            rewritten=bool(log.get("rewritten", False)),
        )
        return StepRecord(
            node,
            draft,
            summary.verdict,
            summary.evaluated,
            written=content.read(files.written) if log.get("tuned") else None,
            pinned=bool(log.get("pinned", False)),
        )


def _node(path: Path, log: Mapping[str, Any], summary: StepSummary, before: NodeState | None) -> NodeState:
    try:
        return step_log.read_node(log, summary.step, summary.kind, summary.verdict, before)
    except (KeyError, TypeError, ValueError) as error:
        raise content.damaged(path, content.reason(error)) from error


def _is_same_file(first: Path, second: Path) -> bool:
    """Return whether both are plain files with equal content; False if one cannot be read."""
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False


def _metrics_path(files: layout.StepFiles) -> Path:
    """Return the path of the JSON, or of the text if the release wrote only that."""
    if files.metrics_text is not None and not files.metrics.exists():
        return files.metrics_text
    return files.metrics


def _read_log(path: Path) -> dict[str, Any]:
    return content.read_object(path, missing={})


def _read_usage(path: Path) -> Usage | None:
    try:
        return Usage() + Usage(**content.read_object(path)) if path.is_file() else None
    except TypeError as error:  # an unknown key, or something that is no number
        raise content.damaged(path, content.reason(error)) from error


def _read_source(path: Path, kind: StepKind) -> str:
    if kind is StepKind.DUMMY_ROOT and not path.is_file():
        return ""
    return content.read(path)


def _read_exchanges(files: layout.StepFiles, kind: StepKind) -> tuple[Exchange, ...]:
    """Read prompts and replies; steps of the release have only the prompt."""
    recorded = content.read_as(files.exchanges, _EXCHANGES)
    if recorded is not None:
        return recorded
    if kind is StepKind.DUMMY_ROOT or not files.prompt.is_file():
        return ()
    return (Exchange(kind.label, content.read(files.prompt), ""),)
