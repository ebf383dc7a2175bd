"""How the compile gate's figures are made from what it said."""

from __future__ import annotations

import pytest

from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.measure_compile_gate import Gated, class_of, sample, summary


def candidate(name: str, error: str = "", *, correct: bool = False) -> Candidate:
    return Candidate(name, "p1", "reference", f"source of {name}", correct, error)


@pytest.mark.parametrize(
    ("error", "correct", "name"),
    [
        ("", True, "correct"),
        ("triton.compiler.errors.CompilationError: at 3:1", False, "compile_errors"),
        ("UnsupportedLanguageConstruct(...)", False, "compile_errors"),
        ("triton.runtime.errors.OutOfResources: shared memory", False, "out_of_resources"),
        ("AssertionError", False, "others"),
    ],
)
def test_recorded_outcome_decides_the_class(error: str, correct: bool, name: str) -> None:
    assert class_of(candidate("a", error, correct=correct)) == name


def test_sample_takes_so_many_of_each_class() -> None:
    found = [candidate(f"c{i}", correct=True) for i in range(5)] + [candidate("e", "CompilationError")]
    chosen = sample(found, 2, seed=1)
    assert sorted(class_of(each) for each in chosen) == ["compile_errors", "correct", "correct"]
    assert chosen == sample(found, 2, seed=1)


def test_stopped_share_counts_reports_that_refuse() -> None:
    right, wrong = candidate("r", correct=True), candidate("w", "CompilationError")
    gated = [
        Gated(right, "passed", False, 0.2, 0.1),
        Gated(right, "not_checked", False, 0.4, 0.3),
        Gated(wrong, "compile", True, 0.6, 0.5),
        Gated(wrong, "passed", False, 0.8, 0.7),
    ]
    figures = summary(gated)
    assert figures["classes"]["correct"]["share"] == 0
    assert figures["classes"]["compile_errors"]["share"] == 0.5
    assert figures["classes"]["compile_errors"]["unexpected"] == ["w: passed"]
    assert (figures["end_to_end_s"]["p50"], figures["end_to_end_s"]["max"]) == (0.5, 0.8)
