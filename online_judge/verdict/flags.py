"""Flags of a kernel and of its problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from adaexplore.core.judging.flags import Flag, ProblemFlag
from online_judge.checks.check import CheckFact, Severity
from online_judge.checks.facts.endings import Ending
from online_judge.checks.problem import ProblemFacts
from online_judge.checks.registry import flags_of
from online_judge.verdict.endings import explain

_MAX_EVIDENCE = 300


def of_candidate(facts: Iterable[CheckFact], folder: str) -> list[Flag]:
    """Return a kernel's flags of several facts, in their order; paths in ``folder`` are shortened."""
    found = (each for fact in facts for each in flags_of(fact))
    return [
        Flag(kind.id, kind.severity.value, _line(evidence, folder))
        for kind, evidence in found
        if kind.severity is not None
    ]


def of_problem(facts: ProblemFacts) -> list[ProblemFlag]:
    return [ProblemFlag(kind.id, str(evidence)) for kind, evidence in flags_of(facts)]


def _line(evidence: str | Ending, folder: str) -> str:
    if isinstance(evidence, str):
        return evidence
    return explain(evidence, folder).feedback.splitlines()[0]


def merged(flags: Iterable[Flag]) -> list[Flag]:
    """Return one flag for each id, with the first one's evidence, the gravest first."""
    order = [severity.value for severity in Severity]
    first: dict[str, Flag] = {}
    for flag in flags:
        first.setdefault(flag.id, flag)
    return sorted(first.values(), key=lambda flag: order.index(flag.severity))


def listed(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the flags of a verdict: merged, with evidence of limited length."""
    return tuple(replace(flag, evidence=flag.evidence[:_MAX_EVIDENCE]) for flag in merged(flags))


def listed_of_problem(flags: Iterable[ProblemFlag]) -> tuple[ProblemFlag, ...]:
    return tuple(replace(flag, evidence=flag.evidence[:_MAX_EVIDENCE]) for flag in flags)
