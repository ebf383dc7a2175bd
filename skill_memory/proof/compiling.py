"""Convert findings of the judge's compile stage to verdicts with a signature."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import CompileReport
from skill_memory.failures.construct import offending_line
from skill_memory.failures.failure import Failure, TaskFailures
from skill_memory.failures.sources import Collected

log = logging.getLogger(__name__)

Compile = Callable[[str, str], CompileReport | None]
"""A function from reference and candidate to the report; None if the reference itself fails."""

_UNCLEAR = frozenset({Status.PASSED.value, Status.NOT_CHECKED.value, Status.TIMEOUT.value})


def verdict_of(report: CompileReport, source: str) -> Verdict:
    """Return the report as a verdict of a run: the offending line, then the message."""
    lines = source.splitlines()
    line = lines[report.line - 1].strip() if report.line and report.line <= len(lines) else ""
    text = "\n".join(part for part in (line, report.message.strip("\n")) if part)
    if report.ok or report.status in _UNCLEAR:
        return Verdict(status=Status(report.status), metadata={})
    metadata = {"runtime_error": text, "runtime_error_name": report.error_name}
    return Verdict(status=Status(report.status), metadata=metadata)


def located(collected: Collected, compile_: Compile) -> Collected:
    """Return ``collected`` with complete errors if only their last lines were recorded.

    Such candidates are compiled again. One that compiles now, or fails at another stage of the judge,
    keeps its recorded error.
    """
    return replace(
        collected,
        tasks=tuple(
            TaskFailures(task.task, tuple(_located(failure, compile_) for failure in task.failures))
            for task in collected.tasks
        ),
    )


def needs_locating(collected: Collected) -> bool:
    """Return whether an error lacks its location."""
    return any(_lacks_place(failure) for task in collected.tasks for failure in task.failures)


def _located(failure: Failure, compile_: Compile) -> Failure:
    if not _lacks_place(failure):
        return failure
    report = compile_(failure.reference, failure.source)
    if report is None or report.ok or report.status in _UNCLEAR:
        return failure
    return replace(failure, verdict=verdict_of(report, failure.source), line=report.line)


def _lacks_place(failure: Failure) -> bool:
    if not failure.reference or failure.verdict.status is Status.CRASH:
        return False
    text = str(failure.verdict.metadata.get("runtime_error") or "")
    return "\n" not in text.strip() and not offending_line(text)
