"""Object to a source before it is judged: a known program, a lint finding, or a compile error."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.agent.attempt import Attempt
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from adaexplore.preflight.findings import Finding
from adaexplore.prompts.blocks import finding

_SHOWN_FINDINGS = 5
_SHOWN_CHARS = 160
_STATUSES = {
    "syntax": Status.SYNTAX,
    "no-model": Status.LOAD,
    "no-forward": Status.CONSTRUCT,
    "init-arity": Status.CONSTRUCT,
}
_ON_THE_HOST = ("launch-", "call-", "kernel-called", "grid-", "undefined-attribute", "undefined-name")


def duplicate(source: str, verdict: Verdict) -> Attempt:
    """Object to a source that was judged before as ``verdict``."""
    told = f"An equal program was judged before: {finding(verdict)}\nWrite one that differs from it."
    return Attempt(DraftOutcome.WRITTEN, source, RepairReason.DUPLICATE, told)


def linted(source: str, findings: Sequence[Finding]) -> Attempt | None:
    """Object to a source that is sure to fail according to lints; None without findings."""
    if not findings:
        return None
    text = "\n".join(_told(found, source) for found in findings[:_SHOWN_FINDINGS])
    verdict = Verdict(
        status=_status(findings[0].rule),
        feedback=text,
        lints=tuple(found.rule for found in findings),
    )
    told = f"This program cannot work:\n{text}"
    return Attempt(DraftOutcome.LINT_STOPPED, source, RepairReason.LINT, told, verdict)


def compiled(source: str, found: CompileReport) -> Attempt | None:
    """Object to a certain compile error; None if the source passed or could not be checked."""
    if found.ok or found.status.row.by_chance:  # limits of the compiling machine may cause it
        return None
    text = found.message.strip()
    if found.line is not None:
        text = _told(Finding("compile", found.line, text), source)
    if found.kernel is not None:
        text = f"in {found.kernel}, {text}"
    verdict = Verdict(status=found.status, feedback=text)
    told = f"This program does not work:\n{text}"
    return Attempt(DraftOutcome.GATE_STOPPED, source, RepairReason.GATE, told, verdict)


def _told(found: Finding, source: str) -> str:
    """Return the finding with the text of its line, since the model has not seen line numbers."""
    lines = source.splitlines()
    text = lines[found.line - 1].strip() if 0 < found.line <= len(lines) else ""
    where = f"line {found.line}"
    return f"{where}, `{text[:_SHOWN_CHARS]}`: {found.message}" if text else f"{where}: {found.message}"


def _status(rule: str) -> Status:
    """Return the status that the judge would give."""
    if rule in _STATUSES:
        return _STATUSES[rule]
    return Status.LAUNCH if rule.startswith(_ON_THE_HOST) else Status.COMPILE
