"""The files of one step, written so that the step exists only when all of them are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaexplore.core.draft import Exchange
from adaexplore.core.errors import RecordError, StorageError
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.records import content, layout, metrics, step_log
from adaexplore.records.step_reader import StepReader

SEPARATOR = "\n" + "-" * 100 + "\n"
"""Stands between the prompts, and between the replies, of a step that asked more than once."""


class StepWriter:
    """Writes steps into the folder of one task as the files of one agent."""

    def __init__(self, folder: Path, agent_type: str, reader: StepReader) -> None:
        self._folder = folder
        self._agent_type = agent_type
        self._reader = reader

    def write(self, record: StepRecord) -> None:
        """See :meth:`~adaexplore.records.task_records.TaskRecords.write_step`."""
        step = record.node.plan.step
        if step == 0 and not layout.has_root(self._agent_type):
            return
        files = layout.step_files(self._folder, self._agent_type, step)
        exchanges = record.draft.exchanges
        kind = record.node.plan.kind
        cause = kind if kind is StepKind.DUMMY_ROOT else record.draft.outcome
        found = metrics.to_metrics(record.verdict, cause)
        log = self._log(record, found)
        _retire(files, log)
        content.write_json(files.exchanges, [_exchange(exchange) for exchange in exchanges])
        content.write_json(files.usage, asdict(record.draft.usage))
        content.write(files.prompt, SEPARATOR.join(exchange.prompt for exchange in exchanges))
        content.write(files.reply, SEPARATOR.join(exchange.reply for exchange in exchanges))
        content.write(files.code, record.draft.source)
        if files.metrics_text is not None:
            content.write(files.metrics_text, metrics.to_text(found))
        content.write_json(files.metrics, found)
        if record.written is not None:
            content.write(files.written, record.written)
        content.write_json(files.log, log)

    def set_aside(self) -> None:
        """See :meth:`~adaexplore.records.task_records.TaskRecords.set_aside`."""
        kept = set(self._reader.numbers())
        for step in self._reader.complete():
            if step not in kept:
                _rename_log(layout.step_files(self._folder, self._agent_type, step))

    def _log(self, record: StepRecord, found: Mapping[str, Any]) -> dict[str, Any]:
        if self._agent_type not in layout.PROPOSERS:
            return step_log.tree_log(record)
        plan = record.node.plan
        shown = [step for step in (*plan.elite_ids, *plan.context_ids) if step > 0]
        context = [step_log.short_metrics(self._reader.metrics(step)) for step in shown]
        return step_log.proposal_log(record, found, context)


def _retire(files: layout.StepFiles, log: Mapping[str, Any]) -> None:
    """Make a step that is about to become another one not exist meanwhile."""
    try:
        same = not files.log.exists() or files.log.read_bytes() == content.json_text(log).encode()
    except OSError as error:
        raise RecordError(f"cannot read {files.log}: {error.strerror or error}") from error
    if not same:
        _rename_log(files)


def _rename_log(files: layout.StepFiles) -> None:
    try:
        files.log.replace(files.superseded_log)
    except FileNotFoundError:
        return  # a step of the release's IRS, which wrote none
    except OSError as error:
        raise StorageError(f"cannot rename {files.log}: {error.strerror or error}") from error


def _exchange(exchange: Exchange) -> dict[str, str]:
    """An exchange as its file has it; ``reason`` only where there is one."""
    return {key: value for key, value in asdict(exchange).items() if key != "reason" or value}
