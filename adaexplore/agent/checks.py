"""What a source is asked before it becomes a draft: lints, and the judge's compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.verdict import Status, Verdict
from adaexplore.judge_client.protocol import CompileFinding
from adaexplore.preflight.findings import Finding

_SHOWN_FINDINGS = 5
_SHOWN_CHARS = 160
_STATUSES = {
    "syntax": Status.SYNTAX,
    "no-model": Status.LOAD,
    "no-forward": Status.CONSTRUCT,
    "init-arity": Status.CONSTRUCT,
}
_LIMITS = (Status.TIMEOUT, Status.CRASH, Status.OUT_OF_MEMORY)
"""What may be the compiling machine's limits rather than the source's fault."""
_ON_THE_HOST = ("launch-", "call-", "kernel-called", "grid-", "undefined-attribute", "undefined-name")


@dataclass(frozen=True)
class Objection:
    """Why a source is sure to fail.

    Attributes:
        reason: what found it.
        outcome: how the step ends if the source stands.
        text: what is wrong, for the model.
        verdict: what the judge would say.
    """

    reason: RepairReason
    outcome: DraftOutcome
    text: str
    verdict: Verdict


Check = Callable[[str], Objection | None]
"""None where nothing is known against the source."""


def lint_check(lint: Callable[[str], Sequence[Finding]]) -> Check:
    """Objects to what ``lint`` finds, which must be sure to make the source fail."""

    def check(source: str) -> Objection | None:
        findings = lint(source)
        if not findings:
            return None
        text = "\n".join(_told(found, source) for found in findings[:_SHOWN_FINDINGS])
        verdict = Verdict(
            status=_status(findings[0].rule),
            metadata={"feedback": text, "lints": [found.rule for found in findings]},
        )
        told = f"This program cannot work:\n{text}"
        return Objection(RepairReason.LINT, DraftOutcome.LINT_STOPPED, told, verdict)

    return check


def gate_check(compiled: Callable[[str], CompileFinding]) -> Check:
    """Objects to what the judge's compiler is sure about; what it could not check passes."""

    def check(source: str) -> Objection | None:
        found = compiled(source)
        if found.ok or found.status in _LIMITS:
            return None
        text = found.message.strip()
        if found.line is not None:
            text = _told(Finding("compile", found.line, text), source)
        if found.kernel is not None:
            text = f"in {found.kernel}, {text}"
        verdict = Verdict(status=found.status, metadata={"feedback": text})
        told = f"This program does not work:\n{text}"
        return Objection(RepairReason.GATE, DraftOutcome.GATE_STOPPED, told, verdict)

    return check


def _told(found: Finding, source: str) -> str:
    """The finding with its line's text, since the model has not seen the file with numbers."""
    lines = source.splitlines()
    text = lines[found.line - 1].strip() if 0 < found.line <= len(lines) else ""
    where = f"line {found.line}"
    return f"{where}, `{text[:_SHOWN_CHARS]}`: {found.message}" if text else f"{where}: {found.message}"


def _status(rule: str) -> Status:
    """What the judge would call it."""
    if rule in _STATUSES:
        return _STATUSES[rule]
    return Status.LAUNCH if rule.startswith(_ON_THE_HOST) else Status.COMPILE
