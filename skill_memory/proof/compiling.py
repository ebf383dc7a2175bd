"""Convert findings of the judge's compile stage to verdicts with a signature."""

import logging
from collections.abc import Callable
from dataclasses import replace

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from skill_memory.failures.construct import offending_line
from skill_memory.failures.failure import Failure, TaskFailures
from skill_memory.failures.sources import Collected

log = logging.getLogger(__name__)

Compile = Callable[[str, str], CompileReport]
"""A function from reference and candidate to the report."""


def works(report: CompileReport) -> bool:
    """Return whether the candidate compiled."""
    return report.status is Status.PASSED


def is_open(report: CompileReport) -> bool:
    """Return whether the compile stage could not decide: it needs values, or met a limit of its machine."""
    return report.status is Status.NOT_CHECKED or report.status.row.by_chance


def verdict_of(report: CompileReport, source: str) -> Verdict:
    """Return the report as a verdict of a run: the offending line, then the message."""
    lines = source.splitlines()
    line = lines[report.line - 1].strip() if report.line and report.line <= len(lines) else ""
    text = "\n".join(part for part in (line, report.message.strip("\n")) if part)
    if works(report) or is_open(report):
        return Verdict(status=report.status)
    told = FailureText(runtime_error=text, runtime_error_name=report.error_name)
    return Verdict(status=report.status, failure=told)


def located(collected: Collected, compile_: Compile) -> Collected:
    """Return ``collected`` with complete errors if only their last lines were recorded.

    Such candidates are compiled again. One that compiles now, or for which the compile stage cannot
    decide, keeps its recorded error. If the judge is lost, the remaining candidates keep theirs.
    """
    tasks, lost = [], False
    for task in collected.tasks:
        failures = []
        for failure in task.failures:
            found = failure
            if _lacks_place(failure) and not lost:
                try:
                    found = _located(task.task, failure, compile_)
                except JudgeUnavailableError as error:
                    log.warning("the remaining truncated errors stay truncated: %s", error)
                    lost = True
            failures.append(found)
        tasks.append(TaskFailures(task.task, tuple(failures)))
    return replace(collected, tasks=tuple(tasks))


def needs_locating(collected: Collected) -> bool:
    """Return whether an error lacks its location."""
    return any(_lacks_place(failure) for task in collected.tasks for failure in task.failures)


def _located(task: str, failure: Failure, compile_: Compile) -> Failure:
    report = compile_(failure.reference, failure.source)
    if works(report):
        return failure
    found = replace(failure, verdict=verdict_of(report, failure.source), line=report.line)
    if is_open(report) or found.signature is None:
        why = report.message or report.status
        log.warning("%s, step %d: its error stays truncated: %s", task, failure.step, why)
        return failure
    return found


def _lacks_place(failure: Failure) -> bool:
    if not failure.reference or failure.verdict.status is Status.CRASH:
        return False
    text = failure.verdict.failure.runtime_error
    return "\n" not in text.strip() and not offending_line(text)
