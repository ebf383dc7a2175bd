"""Verify rules: the reproducer must fail as recorded, and the counterpart must work."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from adaexplore.core.environment import TritonFacts
from adaexplore.core.wire import CompileReport
from adaexplore.preflight.lints import lint
from skill_memory.failures.signature import Signature, signature_of
from skill_memory.proof.compiler import Compiler
from skill_memory.proof.compiling import Compile, is_open, verdict_of, works
from skill_memory.rule import Proof, Rule, Verified
from skill_memory.store import read_rules, rewrite

log = logging.getLogger(__name__)

PLAIN_PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.rand(64, 64)]


def get_init_inputs():
    return []
"""
"""The default reference for compiling reproducers and counterparts."""


@dataclass(frozen=True)
class Checked:
    """One rule's result; ``holds`` is None without a pair to try, or if the compile stage cannot decide."""

    rule: str
    holds: bool | None
    reason: str


@dataclass(frozen=True)
class Verification:
    """The result for a memory: ``retired`` rules were tried and do not hold with this Triton."""

    rules: int
    hold: int
    retired: int
    triton: str
    per_rule: tuple[Checked, ...]


def verify_file(path: Path, compiler: Compiler) -> Verification:
    """Try every rule in the file, and record the result for this version; no rule is deleted.

    Raises:
        ConfigError: the file cannot be read.
        StorageError: the file cannot be written.
        JudgeUnavailableError: no judge answers.
    """
    checked = [check(rule, compiler) for rule in read_rules(path)]
    outcomes = {found.rule: found.holds for found in checked if found.holds is not None}
    facts = compiler.facts()
    rewrite(path, lambda rule: _noted(rule, outcomes.get(rule.text), compiler, facts))
    return Verification(
        rules=len(checked),
        hold=sum(found.holds is True for found in checked),
        retired=sum(found.holds is False for found in checked),
        triton=compiler.triton,
        per_rule=tuple(checked),
    )


def check(rule: Rule, compile_: Compile) -> Checked:
    """Try one rule.

    Raises:
        JudgeUnavailableError: no judge answers.
    """
    if rule.reproducer is None or rule.counterpart is None:
        missing = " and ".join(name for name in ("reproducer", "counterpart") if getattr(rule, name) is None)
        return Checked(rule.text, None, f"no {missing}")
    once = cache(partial(compile_, rule.problem or PLAIN_PROBLEM))  # pairs may share a kernel
    for proof in rule.proofs:
        failed, worked = once(proof.reproducer), once(proof.counterpart)
        for report in (failed, worked):
            if is_open(report):
                return Checked(rule.text, None, f"not decided: {_last_line(report) or report.status}")
        fault = _fault(proof, failed, worked, rule.signatures)
        if fault:
            return Checked(rule.text, False, fault)
    return Checked(rule.text, True, "the reproducer fails as recorded, the counterpart works")


def _fault(proof: Proof, failed: CompileReport, worked: CompileReport, signatures: Sequence[str]) -> str:
    """Return why a pair proves nothing; "" if it proves the rule."""
    if works(failed):
        return "the reproducer works"
    found = signature_of(verdict_of(failed, proof.reproducer), proof.reproducer, failed.line)
    if signatures and not matches(found, signatures):
        return f"the reproducer fails otherwise: {failed.status if found is None else found.key}"
    if not works(worked):
        return f"the counterpart fails: {worked.status} {_last_line(worked)}"
    return ""


def _last_line(report: CompileReport) -> str:
    return report.message.strip().rpartition("\n")[2]


def matches(found: Signature | None, signatures: Sequence[str]) -> bool:
    """Return whether a failure is of one of the kinds: by signature, or by family and kind of construct."""
    if found is None:
        return False
    if found.key in signatures:
        return True
    known = [signature for key in signatures if (signature := Signature.from_key(key)) is not None]
    return any(
        signature.family == found.family
        and signature.construct.split(" ")[0] == found.construct.split(" ")[0]
        for signature in known
    )


def lint_of(rule: Rule, facts: TritonFacts | None) -> str | None:
    """Return the lint that finds the mistake in every reproducer and in no counterpart."""
    found = [
        {finding.rule for finding in lint(proof.reproducer, facts)}
        - {finding.rule for finding in lint(proof.counterpart, facts)}
        for proof in rule.proofs
    ]
    return min(set.intersection(*found), default=None) if found else None


def _noted(rule: Rule, holds: bool | None, compiler: Compiler, facts: TritonFacts | None) -> Rule:
    if holds is None:
        return rule
    place = (compiler.triton, compiler.target)
    others = tuple(seen for seen in rule.verified if (seen.triton, seen.target) != place)
    verified = (*others, Verified(compiler.triton, compiler.target, holds))
    return replace(rule, verified=verified, lint=lint_of(rule, facts))
