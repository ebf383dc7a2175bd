"""Figures of lints and compile gate from what they found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.environment import Environment, TritonFacts
from tests.preflight.cases import FINE, REFERENCE, module
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.measure_checks import Checked, class_of, gate, main, sample, summary


def candidate(name: str, error: str = "", *, correct: bool = False) -> Candidate:
    return Candidate(name, "p", "reference", f"source of {name}", correct, error)


def checked(error: str, *rules: str, correct: bool = False) -> Checked:
    return Checked(candidate("p/1", error, correct=correct), rules, bool(rules), 0.5)


class JudgeThatCompiles:
    """A client of a judge whose gate answers with one status."""

    def __init__(self, status: str | None) -> None:
        self.answer = {"report": status and {"status": status}, "execution_time": 0.5, "queue_time": 0.2}

    def finished(self, body: dict[str, Any], limit_s: float) -> dict[str, Any]:
        assert body["kind"] == "compile"
        return self.answer


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
    assert class_of(checked(error).candidate) == name
    assert class_of(checked(error, correct=True).candidate) == "correct"


def test_shares_are_given_for_each_denominator() -> None:
    figures = summary(
        [
            checked("CompilationError", "block-index", "called-dtype"),
            checked("CompilationError"),
            checked("NameError", "undefined-name"),
            checked("incorrect output"),
            checked("", correct=True),
            checked("", "block-index", correct=True),
        ]
    )
    assert figures["failing_stopped"] == {"count": 4, "stopped": 2, "share": 0.5}
    assert figures["failing_without_wrong_values_stopped"]["count"] == 3
    assert figures["compile_errors_stopped"] == {"count": 2, "stopped": 1, "share": 0.5}
    assert figures["precision"] == {"count": 3, "right": 2, "share": 0.6667}
    assert figures["classes"]["correct"]["found"] == {"block-index": 1}
    assert figures["correct_but_stopped"] == ["p/1: block-index"]
    assert figures["compile_errors_missed"] == ["p/1: "]
    assert figures["inside_s"] is None


@pytest.mark.parametrize(
    ("status", "stopped"),
    [("passed", False), ("not_checked", False), (None, False), ("compile", True), ("syntax", True)],
)
def test_gate_stops_what_it_refuses(status: str | None, stopped: bool) -> None:
    found = gate(JudgeThatCompiles(status), candidate("a"))  # type: ignore[arg-type]
    assert (found.stopped, found.found) == (stopped, (status or "failed",))
    assert summary([found])["inside_s"]["p50"] == 0.3


def test_sample_takes_so_many_of_each_class() -> None:
    found = [candidate(f"c{i}", correct=True) for i in range(5)] + [candidate("e", "CompilationError")]
    chosen = sample(found, 2, seed=1)
    assert sorted(class_of(each) for each in chosen) == ["compile_errors", "correct", "correct"]
    assert chosen == sample(found, 2, seed=1)


def test_figures_record_command_hardware_and_versions(tmp_path: Path) -> None:
    steps = [
        {"code": FINE, "score": {"correct": True}, "error": ""},
        {"code": module("x = tl.tanh(x)"), "score": {"correct": False}, "error": "CompilationError"},
    ]
    steps = [{"step": n, "node_id": n, "created_by": "large_step", **step} for n, step in enumerate(steps, 1)]
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "a.json").write_text(json.dumps({"reference_src": REFERENCE, "steps": steps}))
    out = tmp_path / "lints.json"
    names = {"triton.language": ["arange", "constexpr", "load", "program_id", "store"]}
    environment = tmp_path / "judge_environment.json"
    environment.write_text(Environment(hardware="CPU", triton=TritonFacts(names=names)).model_dump_json())
    assert main(["lints", str(traces), "--triton", str(environment), "--out", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert (figures["failing_stopped"]["share"], figures["precision"]["share"]) == (1, 1)
    assert (
        figures["command"]
        == "python -m tool_scripts.measure_checks lints TRACES --triton judge_environment.json"
    )
    assert {"date", "revision", "hardware", "versions"} <= set(figures)
    assert str(tmp_path) not in out.read_text()


def test_wrong_input_is_an_exit_code(tmp_path: Path) -> None:
    assert main(["lints", str(tmp_path / "none")]) == 2
    assert main(["lints", str(tmp_path), "--triton", str(tmp_path / "none")]) == 2
