"""Find reproducers and counterparts for rules without them; no model is needed."""

import ast
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_high

from adaexplore.core.text.syntax import parse
from adaexplore.core.wire import CompileReport
from skill_memory.failures.construct import offending_line
from skill_memory.failures.failure import Failure
from skill_memory.failures.signature import signature_of
from skill_memory.failures.sources import Collected
from skill_memory.proof.compiling import Compile, verdict_of, works
from skill_memory.proof.shrink import Shrunk, nearest_working, shrink
from skill_memory.proof.verify import PLAIN_PROBLEM
from skill_memory.rule import Rule
from skill_memory.store import read_rules, rewrite

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proofs:
    """The new proofs, and the effort."""

    rules: int = 0  # rules without a reproducer but with a recorded candidate to shrink
    reproducers: int = 0
    counterparts: int = 0
    cut_short: int = 0  # number of searches that the time limit ended
    compilations: int = 0  # number of trials
    seconds: float = 0.0  # wall-clock seconds
    lines_before: int = 0  # median lines of the recorded candidates
    lines_after: int = 0  # median lines of the reproducers


@dataclass(frozen=True)
class _Proof:
    reproducer: str
    counterpart: str | None
    problem: str | None
    searches: tuple[Shrunk, ...]


def prove(path: Path, collected: Collected, compile_: Compile, limit_s: float) -> Proofs:
    """Find a reproducer and a counterpart for each rule that has none, in at most ``limit_s`` seconds each.

    Raises:
        JudgeUnavailableError: no judge answers.
        StorageError: the memory cannot be written.
    """
    failing = [failure for task in collected.tasks for failure in task.failures if failure.reference]
    found: dict[str, _Proof] = {}
    before, after, tried = [], [], 0
    for rule in read_rules(path):
        candidates = [] if rule.reproducer is not None else _candidates(rule, failing)
        if not candidates:
            continue
        tried += 1
        proofs = ((each, proof) for each in candidates if (proof := _tried(each, compile_, limit_s)))
        candidate, proof = next(proofs, (None, None))
        if candidate is None or proof is None:
            continue
        found[rule.text] = proof
        before.append(len(candidate.source.splitlines()))
        after.append(len(proof.reproducer.splitlines()))
        log.info("%s: %d lines from %d", rule.text[:60], after[-1], before[-1])
    rewrite(path, lambda rule: _with(rule, found.get(rule.text)))
    return Proofs(
        rules=tried,
        reproducers=len(found),
        counterparts=sum(proof.counterpart is not None for proof in found.values()),
        cut_short=sum(proof.searches[0].cut_short for proof in found.values()),
        compilations=sum(search.trials for proof in found.values() for search in proof.searches),
        seconds=round(sum(search.seconds for proof in found.values() for search in proof.searches), 1),
        lines_before=median_high(before or [0]),
        lines_after=median_high(after or [0]),
    )


def _candidates(rule: Rule, failing: Sequence[Failure]) -> list[Failure]:
    """Return the failures that the rule explains, the shortest candidate first."""
    keys = set(rule.signatures)
    own = [failure for failure in failing if (found := failure.signature) is not None and found.key in keys]
    return sorted(own, key=lambda failure: len(failure.source))


def _tried(failure: Failure, compile_: Compile, limit_s: float) -> _Proof | None:
    """Shrink a failing candidate to a proof; None if it does not fail so now, or is no tree to shrink."""
    try:
        return _proof(failure, compile_, limit_s)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        log.info("step %d cannot be shrunk: %s: %s", failure.step, type(error).__name__, error)
        return None


def _proof(failure: Failure, compile_: Compile, limit_s: float) -> _Proof | None:
    wanted = failure.signature

    def fails(source: str, problem: str) -> bool:
        report = compile_(problem, source)
        if wanted is None or works(report):
            return False
        found = signature_of(verdict_of(report, source), source, report.line)
        return found is not None and found.key == wanted.key

    if not fails(failure.source, failure.reference):
        return None
    small = shrink(failure.source, lambda source: fails(source, failure.reference), limit_s / 2)
    problem, reproducer, searches = failure.reference, small.source, [small]
    plain = _for_plain_problem(reproducer)
    if fails(plain, PLAIN_PROBLEM):
        again = shrink(plain, lambda source: fails(source, PLAIN_PROBLEM), limit_s / 4)
        problem, reproducer = PLAIN_PROBLEM, again.source
        searches.append(again)
    faulty = function_at_fault(reproducer, compile_(problem, reproducer))
    around = _without_body(reproducer, faulty)
    counterpart = nearest_working(
        reproducer,
        # without this, a candidate that no longer launches the kernel would count as working
        lambda source: _without_body(source, faulty) == around and works(compile_(problem, source)),
        limit_s / 4,
    )
    if counterpart is not None:
        searches.append(counterpart)
    return _Proof(
        reproducer=reproducer,
        counterpart=None if counterpart is None else counterpart.source,
        problem=None if problem == PLAIN_PROBLEM else problem,
        searches=tuple(searches),
    )


def function_at_fault(source: str, report: CompileReport) -> str | None:
    """Return the innermost function with the offending line, inside the kernel if the compiler shows it."""
    pointed = offending_line(report.message)
    lines = [
        number for number, line in enumerate(source.splitlines(), 1) if pointed and line.strip() == pointed
    ]
    line = lines[0] if lines else report.line
    functions = [
        node
        for node in ast.walk(parse(source))
        if isinstance(node, ast.FunctionDef) and line and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(functions, key=lambda node: node.lineno).name if functions else None


def _without_body(source: str, function: str | None) -> str:
    """Return ``source`` without the body of a function: the part that a counterpart must not change."""
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            node.body = [ast.Pass()]
            node.args = ast.arguments([], [], None, [], [], None, [])
    return ast.unparse(tree) if function is not None else ""


def _for_plain_problem(source: str) -> str:
    """Adapt ``source`` to a problem without constructor arguments and with one input."""
    source = re.sub(r"(def __init__\(self)[^)]*\)", r"\1, *unused)", source)
    return re.sub(r"(def forward\(self, \w+)[^)]*\)", r"\1, *unused)", source)


def _with(rule: Rule, proof: _Proof | None) -> Rule:
    if proof is None or rule.reproducer is not None:
        return rule
    return replace(
        rule, reproducer=proof.reproducer, counterpart=proof.counterpart, problem=proof.problem, verified=()
    )
