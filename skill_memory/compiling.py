"""What the judge's compile stage says of a candidate, as a verdict that has a signature."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import CompileReport
from skill_memory.construct import offending_line
from skill_memory.failure import Failure, TaskFailures
from skill_memory.sources import Collected

log = logging.getLogger(__name__)

Compile = Callable[[str, str], CompileReport | None]
"""From a reference and a candidate to the report; None where the reference itself fails."""

_UNCLEAR = frozenset({Status.PASSED.value, Status.NOT_CHECKED.value, Status.TIMEOUT.value})


def verdict_of(report: CompileReport, source: str) -> Verdict:
    """The report in the words of a run's verdict: the line that led to the error, then the message."""
    lines = source.splitlines()
    line = lines[report.line - 1].strip() if report.line and report.line <= len(lines) else ""
    text = "\n".join(part for part in (line, report.message.strip("\n")) if part)
    if report.ok or report.status in _UNCLEAR:
        return Verdict(status=Status(report.status), metadata={})
    metadata = {"runtime_error": text, "runtime_error_name": report.error_name}
    return Verdict(status=Status(report.status), metadata=metadata)


def located(collected: Collected, compile_: Compile) -> Collected:
    """``collected`` with the whole error where only its last line was recorded.

    Such a candidate is compiled again; what compiles now, or fails at another stage of the judge,
    keeps what was recorded.
    """
    return replace(
        collected,
        tasks=tuple(
            TaskFailures(task.task, tuple(_located(failure, compile_) for failure in task.failures))
            for task in collected.tasks
        ),
    )


def needs_locating(collected: Collected) -> bool:
    """Whether an error without its place is among them."""
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
