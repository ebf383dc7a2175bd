from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.agent.checks import compiled, linted
from adaexplore.core.draft import Draft
from adaexplore.core.errors import JudgeUnavailableError, RecordError
from adaexplore.core.metrics import from_metrics
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE
from adaexplore.core.wire import CompileReport
from adaexplore.preflight.findings import finding
from adaexplore.records.run_records import RunRecords
from skill_memory.build import build, explained
from skill_memory.failures.failure import is_infrastructure
from skill_memory.failures.sources import Collected, from_run, from_trees
from skill_memory.proof.compiling import located
from skill_memory.store import read_rules
from tests.skill_memory.test_update import Model

CODE = "import triton.language as tl\n\n\ndef kernel(n):\n    v = tl.float32(n)\n"


def step(number: int, error: str | None, *, parent: int = 0, small: bool = False, correct: bool = False,
         compiled: bool = True) -> dict[str, Any]:  # fmt: skip
    return {
        "step": number,
        "node_id": number,
        "parent_node_id": parent,
        "created_by": "small_step" if small else "large_step",
        "score": {"compiled": compiled, "correct": correct, "fast_p": 0.0},
        "error": error,
        "code": CODE,
    }


DTYPE = "triton.compiler.errors.CompilationError: TypeError(\"'dtype' object is not callable\")"
CAST = "at 2:4:\ndef kernel(n):\n    v = tl.float32(n)\n        ^\n" + DTYPE.partition(" ")[2]
CHECKS = {
    "lint": linted(CODE, [finding("called-dtype", 6, name="tl.float32")]),
    "gate": compiled(CODE, CompileReport(ok=False, status="compile", kernel="kernel", line=6, message=CAST)),
}
KEYS = {
    "lint": "compile |  | lint called-dtype tl.fp# | ",
    "gate": "compile | TypeError | 'dtype' object is not callable | call tl.<dtype>",
}
STEPS = [
    {**step(0, None), "created_by": "dummy_root", "code": "", "parent_node_id": None},
    step(1, DTYPE),
    step(2, DTYPE, parent=1, small=True),
    step(3, DTYPE),
    step(4, "incorrect output"),
    step(5, None, correct=True),
    step(6, "Subprocess timeout", compiled=False),
    step(7, "triton.compiler.errors.CompilationError:         ^"),
    step(8, "builtins.OSError: OSError: [Errno 28] No space left on device"),
    step(9, "Subprocess failed", compiled=False),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tree = {"label": "a tree", "reference_src": "class Model: ...", "steps": STEPS}
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    return tmp_path


def test_trees_give_failures_grouped_by_lineage(folder: Path) -> None:
    found = from_trees(folder)
    assert (found.failures, found.infrastructure) == (5, 2)
    (task,) = found.tasks
    assert [(failure.step, task.occurrence(failure)) for failure in task.failures] == [
        (1, "tree#1"),
        (2, "tree#1"),
        (3, "tree#3"),
        (7, "tree#7"),
        (9, "tree#9"),
    ]
    assert task.failures[-1].signature is None


def test_invalid_tree_file_is_named_and_skipped(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "other.json").write_text('{"steps": [{}]}')
    (folder / "broken.json").write_text("{")
    (folder / "deep.json").write_text("[" * 100_000)
    assert from_trees(folder).failures == 5
    assert "deep.json" in caplog.text
    assert "other.json" in caplog.text
    assert "broken.json" in caplog.text


def test_a_folder_without_trees_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no recorded trees"):
        from_trees(tmp_path)


def test_truncated_errors_are_recovered_by_compiling_again(folder: Path) -> None:
    reason = "TypeError(\"'dtype' object is not callable\")"
    message = f"at 2:4:\ndef kernel(n):\n    v = tl.float32(n)\n        ^\n{reason}"
    report = CompileReport(
        ok=False, status="compile", line=5, message=message, error_name="x.CompilationError"
    )
    found = located(from_trees(folder), lambda reference, source: report)
    keys = [failure.signature and failure.signature.key for task in found.tasks for failure in task.failures]
    assert keys == ["compile | TypeError | 'dtype' object is not callable | call tl.<dtype>"] * 4 + [None]
    passes = CompileReport(ok=True, status="passed")
    assert located(from_trees(folder), lambda reference, source: passes) == from_trees(folder)


NEEDS_VALUES = CompileReport(ok=True, status="not_checked", message="aten.index.Tensor needs values")
UNDECIDED = [
    NEEDS_VALUES,
    CompileReport(ok=False, status="timeout", message="not done after 120 s during forward"),
    CompileReport(ok=False, status="crash", message="the process ended by signal 11 during load"),
    CompileReport(ok=False, status="out_of_memory", message="the process ended by signal 9 during load"),
    CompileReport(ok=False, status="load", message="MemoryError: ", error_name="builtins.MemoryError"),
]


@pytest.mark.parametrize("report", UNDECIDED, ids=lambda report: report.status)
def test_undecided_candidate_leaves_other_errors_recovered(
    folder: Path, report: CompileReport, caplog: pytest.LogCaptureFixture
) -> None:
    tree = json.loads((folder / "tree.json").read_text())
    tree["steps"][1]["code"] = CODE + "    ODD = 1\n"
    (folder / "tree.json").write_text(json.dumps(tree))
    message = f"at 2:4:\ndef kernel(n):\n    v = tl.float32(n)\n        ^\n{DTYPE.partition(' ')[2]}"
    complete = CompileReport(ok=False, status="compile", line=5, message=message)
    before = from_trees(folder).tasks[0].failures
    found = located(from_trees(folder), lambda _, source: report if "ODD" in source else complete)
    after = found.tasks[0].failures
    assert after[0] == before[0]
    assert [failure.line for failure in after[1:4]] == [5, 5, 5]
    assert "tree, step 1: its error stays truncated: " in caplog.text


def test_recovered_errors_are_kept_if_the_judge_dies(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([CompileReport(ok=False, status="compile", line=5, message="TypeError: no")])

    def compile_(reference: str, source: str) -> CompileReport:
        for answer in answers:
            return answer
        raise JudgeUnavailableError("no judge answers")

    (task,) = located(from_trees(folder), compile_).tasks
    assert [failure.line for failure in task.failures] == [5, None, None, None, None]
    assert caplog.text.count("no judge answers") == 1


def test_half_of_a_surrogate_pair_is_escaped(folder: Path) -> None:
    tree = json.loads((folder / "tree.json").read_text())
    tree["steps"][1]["code"] = CODE + "# \ud800"
    (folder / "tree.json").write_text(json.dumps(tree))
    (task,) = from_trees(folder).tasks
    assert task.failures[0].source == CODE + "# \\ud800"
    assert json.dumps(task.failures[0].source, ensure_ascii=False).encode()


def test_building_a_memory_again_changes_nothing(folder: Path) -> None:
    path, model = folder / "memory.jsonl", Model()
    built = build(from_trees(folder), path, model)
    assert (built.failures, built.infrastructure, built.model_calls, built.rules) == (5, 2, 1, 0)
    assert built.explained == 0.0  # the model answered: no rule
    assert build(from_trees(folder), path, model).model_calls == 0

    class Answering(Model):
        def complete(self, request: Any) -> Any:
            return super().complete(type(request)(request.prompt + "tanh ", request.purpose, request.key))

    other = folder / "other.jsonl"
    built = build(from_trees(folder), other, Answering())
    assert (built.rules, built.explained) == (1, 0.6)
    before = other.read_bytes()
    assert build(from_trees(folder), other, Answering()).model_calls == 0
    assert other.read_bytes() == before
    assert [rule.count for rule in read_rules(other)] == [2]
    assert explained(Collected(), other) == 0.0


@pytest.mark.parametrize(
    ("metadata", "infrastructure"),
    [
        ({"error": "Subprocess timeout", "timeout": 300}, True),
        ({"error": "Failed to parse result", "stdout": "hello"}, True),
        ({"error": "HTTP 503", "attempts": 3}, True),
        ({"compilation_error": "PermissionError: [Errno 13] denied"}, True),
        ({"error": "Subprocess failed", "returncode": -11}, False),
        ({"compilation_error": "ImportError: no module named x"}, False),
    ],
)
def test_infrastructure_errors_of_the_release_are_no_failures(
    metadata: dict[str, Any], infrastructure: bool
) -> None:
    verdict = from_metrics({"compiled": False, "correctness": False, "metadata": metadata})
    assert is_infrastructure(verdict) is infrastructure


def test_folder_that_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="save_path"):
        from_run(tmp_path)


@pytest.mark.parametrize("check", ["lint", "gate"])
def test_failures_stopped_before_the_judge_teach_a_rule(tmp_path: Path, check: str) -> None:
    run = RunRecords(tmp_path / "run")
    for number, name in enumerate(("a", "b"), 1):
        source = CODE.replace("v = ", f"{name} = ")
        objection = CHECKS[check]
        assert objection is not None
        node = NodeState(Plan(number, StepKind.LARGE, 0), 1, 1, 0.0, 0.0, NO_SCORE, number + 1, 0, NO_SCORE)
        draft = Draft(objection.outcome, source, (), Usage(), objection.verdict)
        run.task("1_1").write_step(StepRecord(node, draft, objection.verdict, evaluated=False))
    found = from_run(tmp_path / "run")
    assert found.failures == 2
    (first, second) = found.tasks[0].failures
    assert first.signature == second.signature
    assert first.signature is not None
    assert first.signature.key == KEYS[check]
    assert build(found, tmp_path / "memory.jsonl", Model()).model_calls == 1
