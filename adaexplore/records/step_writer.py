"""Write the files of one step; the step exists only once all of them are written."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from adaexplore.core.draft import Exchange
from adaexplore.core.errors import RecordError, StorageError
from adaexplore.core.files.atomic import json_text
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.records import layout, metrics, step_log
from adaexplore.records.run_lock import RunLock
from adaexplore.records.step_reader import StepReader

SEPARATOR = "\n" + "-" * 100 + "\n"
"""Separator of the prompts, and of the replies, in a step with several requests."""


def write_step(reader: StepReader, record: StepRecord, lock: RunLock) -> None:
    step = record.node.plan.step
    if step == 0 and reader.agent_type != layout.MCTS:
        return
    files = reader.files(step)
    exchanges = record.draft.exchanges
    kind = record.node.plan.kind
    cause = kind if kind is StepKind.DUMMY_ROOT else record.draft.outcome
    found = metrics.to_metrics(record.verdict, cause)
    log = _log(reader, record, found)
    lock.check()
    _retire_changed(files, log)
    lock.write_json(files.exchanges, [_exchange(exchange) for exchange in exchanges])
    lock.write_json(files.usage, asdict(record.draft.usage))
    lock.write_text(files.prompt, SEPARATOR.join(exchange.prompt for exchange in exchanges))
    lock.write_text(files.reply, SEPARATOR.join(exchange.reply for exchange in exchanges))
    lock.write_text(files.code, record.draft.source)
    if files.metrics_text is not None:
        lock.write_text(files.metrics_text, metrics.to_text(found))
    lock.write_json(files.metrics, found)
    if record.written is not None:
        lock.write_text(files.written, record.written)
    lock.write_json(files.log, log)


def _log(reader: StepReader, record: StepRecord, found: Mapping[str, Any]) -> dict[str, Any]:
    if reader.agent_type not in layout.PROPOSERS:
        return step_log.tree_log(record)
    plan = record.node.plan
    shown = [step for step in (*plan.elite_ids, *plan.context_ids) if step > 0]
    context = [step_log.short_metrics(reader.metrics(step)) for step in shown]
    return step_log.proposal_log(record, found, context)


def _retire_changed(files: layout.StepFiles, log: Mapping[str, Any]) -> None:
    """Set the log of a changed step aside before the step is overwritten."""
    try:
        written = json_text(log).encode("utf-8", "backslashreplace")
        same = not files.log.exists() or files.log.read_bytes() == written
    except OSError as error:
        raise RecordError(f"cannot read {files.log}: {error.strerror or error}") from error
    if not same:
        retire_log(files)


def retire_log(files: layout.StepFiles) -> None:
    """Rename a step's log, so that the step no longer exists.

    Raises:
        StorageError: it cannot be renamed.
    """
    try:
        files.log.replace(files.log.with_name(f"{files.log.stem}_superseded.json"))
    except FileNotFoundError:
        return  # a step of the release's IRS, which wrote no log
    except OSError as error:
        raise StorageError(f"cannot rename {files.log}: {error.strerror or error}") from error


def _exchange(exchange: Exchange) -> dict[str, str]:
    """Return an exchange as its file stores it; ``reason`` only if it has one."""
    return {key: value for key, value in asdict(exchange).items() if key != "reason" or value}
