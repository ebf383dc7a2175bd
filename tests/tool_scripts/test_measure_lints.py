"""How the lints' figures are made from what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.preflight.cases import FINE, REFERENCE, module
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.measure_lints import Linted, class_of, main, summary


def linted(error: str, *rules: str, correct: bool = False) -> Linted:
    return Linted(Candidate("p/1", "p", "reference", "source", correct, error), frozenset(rules), 0.5)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("incorrect output", "wrong_values"),
        ("triton.compiler.errors.CompilationError: at 3:1", "compile_errors"),
        ("UnsupportedLanguageConstruct(...)", "compile_errors"),
        ("triton.runtime.errors.OutOfResources: shared memory", "out_of_resources"),
        ("AssertionError", "others"),
    ],
)
def test_recorded_outcome_decides_the_class(error: str, name: str) -> None:
    assert class_of(linted(error).candidate) == name
    assert class_of(linted(error, correct=True).candidate) == "correct"


def test_shares_are_given_for_each_denominator() -> None:
    figures = summary(
        [
            linted("CompilationError", "block-index", "called-dtype"),
            linted("CompilationError"),
            linted("NameError", "undefined-name"),
            linted("incorrect output"),
            linted("", correct=True),
            linted("", "block-index", correct=True),
        ]
    )
    assert figures["failing_stopped"] == {"count": 4, "stopped": 2, "share": 0.5}
    assert figures["failing_without_wrong_values_stopped"]["count"] == 3
    assert figures["compile_errors_stopped"] == {"count": 2, "stopped": 1, "share": 0.5}
    assert figures["precision"] == {"count": 3, "right": 2, "share": 0.6667}
    assert figures["rules"]["block-index"] == {"failing": 1, "correct": 1}
    assert figures["correct_but_stopped"] == ["p/1: block-index"]


def test_figures_are_kept_with_what_they_were_made_with(tmp_path: Path) -> None:
    steps = [
        {"step": 1, "code": FINE, "score": {"correct": True}, "error": ""},
        {
            "step": 2,
            "code": module("x = tl.tanh(x)"),
            "score": {"correct": False},
            "error": "CompilationError",
        },
    ]
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "a.json").write_text(json.dumps({"reference_src": REFERENCE, "steps": steps}))
    out = tmp_path / "lints.json"
    assert main([str(traces), "--triton", "3.7.1", "--out", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert (figures["failing_stopped"]["share"], figures["precision"]["share"]) == (1, 1)
    assert figures["command"] == "python -m tool_scripts.measure_lints TRACES"
    assert {"date", "revision", "hardware", "versions"} <= set(figures)
    assert str(tmp_path) not in out.read_text()


def test_wrong_input_is_an_exit_code(tmp_path: Path) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert main([str(tmp_path), "--triton", "1.0"]) == 2
