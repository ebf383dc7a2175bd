from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.errors import JudgeError, JudgeUnavailableError
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.wire import CompileReport
from skill_memory.failures.failure import Failure, TaskFailures
from skill_memory.failures.sources import Collected
from skill_memory.proof.compiler import Compiler
from skill_memory.proof.compiling import verdict_of
from skill_memory.proof.proofs import prove
from skill_memory.proof.shrink import nearest_working, shrink
from skill_memory.proof.verify import check, verify_file
from skill_memory.rule import Proof, Rule, Verified
from skill_memory.sidecar import Pending, Sidecar, digest, write_sidecar
from skill_memory.store import format_rules, injected, read_rules, write_rules
from tests.verdicts import make_verdict

CANDIDATE = '''
import torch


def helper(a):
    """A docstring."""
    return a * 2


def kernel(x, n):
    total = 0
    for k in range(n):
        if k > 3:
            total = total + helper(k)
    y = total + bad(x, 1 + 2, key=n)
    return y


class ModelNew:
    def __init__(self, a, b):
        self.a = a

    def forward(self, x):
        return kernel(x, 7)
'''
MESSAGE = "at 1:1:\n{line}\n{caret}\nTypeError: bad is not callable"


class Fake:
    """Fails where ``bad(`` is called, at its place."""

    triton = "3.7.1"
    target = "sm_90"

    def facts(self) -> None:
        """No judge's names."""

    def __call__(self, reference: str, source: str) -> CompileReport:
        try:
            ast.parse(source)
        except SyntaxError as error:
            return CompileReport(ok=False, status="syntax", message=str(error))
        if "class ModelNew" not in source:
            return CompileReport(ok=False, status="load", message="AttributeError: no class ModelNew")
        for number, line in enumerate(source.splitlines(), 1):
            if "bad(" in line:
                text = MESSAGE.format(line=line, caret=" " * line.index("bad(") + "^")
                return CompileReport(ok=False, status="compile", line=number, message=text)
        return CompileReport(ok=True, status="passed")


def fails(source: str) -> bool:
    return Fake()("", source).status == "compile"


def test_a_candidate_shrinks_to_the_failure() -> None:
    small = shrink(CANDIDATE, fails)
    assert fails(small.source)
    assert len(small.source.splitlines()) <= 5
    assert not small.cut_short
    assert small.trials > 10


def test_candidate_that_does_not_fail_stays_unchanged() -> None:
    assert shrink("x = 1\n", fails).source == "x = 1\n"
    assert shrink("x = (\n", fails).source == "x = (\n"


def test_the_time_limit_leaves_the_best_so_far() -> None:
    now = iter(range(10_000))
    small = shrink(CANDIDATE, fails, limit_s=8, clock=lambda: next(now))
    assert small.cut_short
    assert fails(small.source)
    assert small.trials <= 8


def test_the_counterpart_is_one_small_change_away() -> None:
    source = "y = 1 + bad(x, 2) * 3\nz = 4\n\nclass ModelNew:\n    pass\n"
    found = nearest_working(source, lambda text: Fake()("", text).ok)
    assert found is not None
    assert "bad(" not in found.source
    assert "* 3" in found.source
    assert "z = 4" in found.source


def collected() -> Collected:
    report = Fake()("", CANDIDATE)
    failure = Failure(
        1, CANDIDATE, verdict_of(report, CANDIDATE), 1, report.line, reference="class Model: ..."
    )
    return Collected((TaskFailures("run/1", (failure,)),))


def test_a_rule_without_proof_gets_one_that_holds(tmp_path: Path) -> None:
    path, failures = tmp_path / "m.jsonl", collected()
    signature = failures.tasks[0].failures[0].signature
    assert signature is not None
    write_rules(
        path, [Rule("You cannot call bad.", 2, signatures=(signature.key,)), Rule("You cannot x.", 1)]
    )
    proofs = prove(path, failures, Fake(), 60.0)
    assert (proofs.rules, proofs.reproducers, proofs.counterparts) == (1, 1, 1)
    assert proofs.lines_after < proofs.lines_before
    proven, other = read_rules(path)
    assert proven.reproducer is not None
    assert "bad(" in proven.reproducer
    assert check(proven, Fake()).holds
    assert check(other, Fake()) == type(check(other, Fake()))(
        other.text, None, "no reproducer and counterpart"
    )


BAD = "y = bad(1)\n\nclass ModelNew:\n    pass\n"
GOOD = "y = 1\n\nclass ModelNew:\n    pass\n"
KEY = "compile | TypeError | bad is not callable | call _"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Rule("r", 1, signatures=(KEY,), reproducer=GOOD, counterpart=GOOD), "the reproducer works"),
        (Rule("r", 1, signatures=(KEY,), reproducer=BAD, counterpart=BAD), "the counterpart fails"),
        (Rule("r", 1, signatures=("load | E | m | c",), reproducer=BAD, counterpart=GOOD), "fails otherwise"),
        (
            Rule("r", 1, signatures=(KEY,), reproducer=BAD, counterpart=GOOD, others=(Proof(GOOD, GOOD),)),
            "the reproducer works",
        ),
    ],
)
def test_rule_with_failing_proof_is_rejected_with_reason(rule: Rule, reason: str) -> None:
    found = check(rule, Fake())
    assert found.holds is False
    assert reason in found.reason


def test_retired_rule_stays_stored_but_is_not_injected(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    holds = Rule("You cannot a", 9, signatures=(KEY,), reproducer=BAD, counterpart=GOOD)
    fails_now = Rule("You cannot b", 8, signatures=(KEY,), reproducer=GOOD, counterpart=GOOD)
    unknown = Rule("You cannot c", 7)
    earlier = Verified("3.6.0", "sm_90", True)
    write_rules(path, [holds, Rule(**{**fails_now.__dict__, "verified": (earlier,)}), unknown])
    found = verify_file(path, Fake())  # type: ignore[arg-type]
    assert (found.rules, found.hold, found.retired, found.triton) == (3, 1, 1, "3.7.1")
    assert [checked.holds for checked in found.per_rule] == [True, False, None]
    rules = read_rules(path)
    assert injected(rules, 3, "3.7.1") == ("You cannot a", "You cannot c")
    assert injected(rules, 3, "3.6.0") == ("You cannot a", "You cannot b", "You cannot c")
    assert [seen.holds for seen in rules[1].verified] == [True, False]
    assert verify_file(path, Fake()).retired == 1  # type: ignore[arg-type]
    assert read_rules(path) == rules


@pytest.mark.parametrize("status", ["not_checked", "timeout", "crash", "out_of_memory"])
def test_undecided_rule_is_neither_proven_nor_retired(tmp_path: Path, status: str) -> None:
    class Undecided(Fake):
        def __call__(self, reference: str, source: str) -> CompileReport:
            if "odd" in source:
                return CompileReport(ok=status == "not_checked", status=status, message="needs values")
            return super().__call__(reference, source)

    path = tmp_path / "m.jsonl"
    odd = Rule("You cannot a", 9, signatures=(KEY,), reproducer=BAD, counterpart=f"odd = 1\n{GOOD}")
    other = Rule("You cannot b", 8, signatures=(KEY,), reproducer=BAD, counterpart=GOOD)
    write_rules(path, [odd, other])
    found = verify_file(path, Undecided())  # type: ignore[arg-type]
    assert [checked.holds for checked in found.per_rule] == [None, True]
    assert found.per_rule[0].reason == "not decided: needs values"
    assert [len(rule.verified) for rule in read_rules(path)] == [0, 1]


def test_one_candidate_without_proof_leaves_the_others(tmp_path: Path) -> None:
    """Its text cannot be parsed, or it cannot be compiled without values."""
    path, (task,) = tmp_path / "m.jsonl", collected().tasks
    verdict = make_verdict(status=Status.SYNTAX, metadata={"runtime_error": "SyntaxError: invalid syntax"})
    torn = replace(task.failures[0], source="y = (", verdict=verdict, line=1)
    short = replace(task.failures[0], source=CANDIDATE.replace("helper", "h"))
    assert torn.signature is not None
    assert short.signature is not None

    class Torn(Fake):
        def __call__(self, reference: str, source: str) -> CompileReport:
            if source == short.source:
                return CompileReport(ok=True, status="not_checked", message="needs values")
            if source == torn.source:
                return CompileReport(ok=False, status="syntax", line=1, message="SyntaxError: invalid syntax")
            return super().__call__(reference, source)

    write_rules(
        path,
        [
            Rule("You cannot tear.", 2, signatures=(torn.signature.key,)),
            Rule("You cannot call bad.", 2, signatures=(short.signature.key,)),
        ],
    )
    failures = Collected((TaskFailures("run/1", (torn, short, task.failures[0])),))
    proofs = prove(path, failures, Torn(), 60.0)
    assert (proofs.rules, proofs.reproducers, proofs.counterparts) == (2, 1, 1)


class Failing:
    """A judge that fails on some candidate, or altogether."""

    def __init__(self, error: JudgeError) -> None:
        self.error = error

    def compile(self, task: Task, source: str) -> CompileReport:
        raise self.error


def test_failed_compilation_is_undecided_unless_judge_is_lost() -> None:
    failed = Compiler(Failing(JudgeError("died twice")), "3.7.1", "sm_90")  # type: ignore[arg-type]
    assert (failed("", "").status, failed("", "").message) == ("not_checked", "died twice")
    lost = Compiler(Failing(JudgeUnavailableError("gone")), "3.7.1", "sm_90")  # type: ignore[arg-type]
    with pytest.raises(JudgeUnavailableError):
        lost("", "")


def test_old_lint_is_kept_until_rule_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    rule = Rule("You cannot a", 9, signatures=(KEY,), reproducer=BAD, counterpart=GOOD, lint="loop-type")
    write_rules(path, [rule])
    assert read_rules(path) == [rule]
    verify_file(path, Fake())  # type: ignore[arg-type]
    assert [found.lint for found in read_rules(path)] == ["undefined-name"]


def test_a_counterpart_still_reaches_the_kernel_at_fault(tmp_path: Path) -> None:
    path, failures = tmp_path / "m.jsonl", collected()
    signature = failures.tasks[0].failures[0].signature
    assert signature is not None
    write_rules(path, [Rule("You cannot call bad.", 2, signatures=(signature.key,))])

    class Calling(Fake):
        """Fails only while ``forward`` calls the kernel, as a launch that is left out hides the mistake."""

        def __call__(self, reference: str, source: str) -> CompileReport:
            reached = "return kernel(" in source or "class ModelNew" not in source
            return super().__call__(reference, source if reached else source.replace("bad(", "good("))

    assert prove(path, failures, Calling(), 60.0).counterparts == 1
    (rule,) = read_rules(path)
    assert rule.counterpart is not None
    assert "return kernel(" in rule.counterpart
    assert "bad(" not in rule.counterpart


def test_verifying_finishes_what_a_killed_worker_had_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    rule = Rule("You cannot a", 2, signatures=(KEY,), reproducer=BAD, counterpart=GOOD)
    write_rules(path, [rule])
    pending = Pending(
        before=digest(path.read_bytes()), after=format_rules([replace(rule, count=3)], jsonl=True)
    )
    write_sidecar(path, Sidecar(pending=pending))
    verify_file(path, Fake())  # type: ignore[arg-type]
    (kept,) = read_rules(path)
    assert (kept.count, [seen.holds for seen in kept.verified]) == (3, [True])
