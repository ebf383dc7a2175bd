"""Steps are read back as written, and only complete steps exist."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import ProblemError, RecordError, StorageError
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import StepKind
from adaexplore.core.verdict import Score, Verdict
from adaexplore.records.step_writer import SEPARATOR
from adaexplore.records.task_records import TaskRecords
from tests.verdicts import make_verdict, metadata_of

WRONG = make_verdict(
    status=Status.WRONG_VALUE, metadata={"max_difference": ["0.500000"], "feedback": "got 1"}
)


def without_times(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("_usage.json")
    }


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRL", "IRB", "IRLE", "PS"])
def test_steps_read_back_equal(tmp_path, agent_type, make_step, passed, root, small_step):
    records = TaskRecords(tmp_path / "2_63", agent_type)
    steps = [
        make_step(1, verdict=passed(1.25)),
        small_step,
        make_step(3, verdict=WRONG, evaluated=False, outcome=DraftOutcome.UNCHANGED, context_ids=(1, 2)),
        make_step(4, outcome=DraftOutcome.EMPTY, source="", evaluated=False),
    ]
    for step in [root, *steps]:
        records.write_step(step)
    read = records.steps()
    assert read == ([root, *steps] if agent_type == "MCTS" else steps)
    assert read[-1].verdict is None


def test_elite_context_reads_back(tmp_path, make_step, passed):
    for agent_type in ("MCTS", "IRLE"):
        records = TaskRecords(tmp_path / agent_type, agent_type)
        step = make_step(3, verdict=passed(2.0), context_ids=(2,), elite_ids=(1,))
        for written in (make_step(1, verdict=passed(1.0)), make_step(2, verdict=WRONG), step):
            records.write_step(written)
        assert records.steps()[-1] == step


def test_tree_log_has_release_keys_in_order(tmp_path, root, small_step, make_step):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (root, make_step(1), small_step):
        records.write_step(step)
    log = json.loads((tmp_path / "step_2_log.json").read_text())
    assert list(log) == [
        "node_id", "parent_node_id", "context_node_ids", "depth", "created_by", "visits", "total_reward",
        "max_reward", "avg_reward", "score", "total_nodes", "global_best_node_id", "global_best_score",
        "outcome", "evaluated",
    ]  # fmt: skip
    assert log["created_by"] == "small_step"
    assert log["score"] == [1.0, 1.0, 1.5]
    assert log["parent_node_id"] == 1
    assert json.loads((tmp_path / "step_0_log.json").read_text())["parent_node_id"] is None


def test_proposal_log_has_release_keys_and_context(tmp_path, make_step, passed):
    records = TaskRecords(tmp_path, "IRLE")
    records.write_step(make_step(1, verdict=passed(1.25)))
    records.write_step(make_step(2, verdict=WRONG))
    records.write_step(make_step(3, verdict=passed(2.0), context_ids=(2,), elite_ids=(1,)))
    log = json.loads((tmp_path / "proposal_3_log.json").read_text())
    assert list(log)[:9] == [
        "step", "step_type", "context", "context_metrics", "context_size", "compiled", "correctness",
        "runtime", "score",
    ]  # fmt: skip
    assert log["context"] == {"recent": [2], "elite": [1]}
    assert log["context_size"] == 2
    assert [shown["correctness"] for shown in log["context_metrics"]] == [True, False]
    assert log["context_metrics"][0] == {
        "compiled": True,
        "correctness": True,
        "runtime": 2.0,
        "fast_p": 1.25,
    }


def test_names_are_the_releases(tmp_path, root, make_step, passed):
    expected = {
        "MCTS": {"step_1.py", "step_1_metrics.json", "step_1_prompt.txt", "step_1_log.json", "step_0.py"},
        "IRS": {"proposal_0_1_prompt.txt", "proposal_0_1.py", "proposal_0_1_metrics.txt",
                "tune_0_2_prompt.txt", "tune_0_2.py", "tune_0_2_metrics.txt"},
        "PS": {"proposal_1.txt", "proposal_1.py", "proposal_1_metrics.txt", "proposal_1_log.json"},
    }  # fmt: skip
    for agent_type, names in expected.items():
        records = TaskRecords(tmp_path / agent_type, agent_type)
        for step in (root, make_step(1, verdict=passed(1.0)), make_step(2, verdict=passed(1.0))):
            records.write_step(step)
        assert names <= set(os.listdir(records.folder))
    assert not (tmp_path / "PS" / "proposal_0.py").exists()


def test_an_unknown_agent_is_refused(tmp_path):
    with pytest.raises(ValueError, match="MCTS, IRS"):
        TaskRecords(tmp_path, "mcts")


def test_prompts_and_replies_of_step_are_separated(tmp_path, small_step):
    TaskRecords(tmp_path, "MCTS").write_step(small_step)
    prompt = (tmp_path / "step_2_prompt.txt").read_bytes().decode()
    assert prompt == "review this\r\n" + SEPARATOR + "now edit" + SEPARATOR + "no match"
    assert SEPARATOR == "\n" + "-" * 100 + "\n"
    assert (tmp_path / "step_2_reply.txt").read_bytes().decode().startswith("too slow \\ud83d é" + SEPARATOR)


def test_text_metrics_are_one_line_in_order(tmp_path, make_step, passed):
    TaskRecords(tmp_path, "PS").write_step(make_step(1, verdict=passed(1.5)))
    assert (tmp_path / "proposal_1_metrics.txt").read_text() == (
        "compiled=True correctness=True metadata={'status': 'passed', 'hardware': 'GPU', "
        "'correctness_trials': '(5 / 5)'} runtime=2.0 "
        "runtime_stats={'mean': 2.0, 'fast_p': 1.5, 'baseline_time': 3.0}"
    )


def test_a_step_without_code_says_why(tmp_path, make_step):
    TaskRecords(tmp_path, "MCTS").write_step(make_step(1, outcome=DraftOutcome.REFUSED, source=""))
    assert json.loads((tmp_path / "step_1_metrics.json").read_text()) == {
        "compiled": False,
        "correctness": False,
        "metadata": {"outcome": "refused", "error": "the model declined to answer"},
        "runtime": -1.0,
        "runtime_stats": {},
    }


def test_root_has_its_own_cause(tmp_path, root):
    TaskRecords(tmp_path, "MCTS").write_step(root)
    assert json.loads((tmp_path / "step_0_metrics.json").read_text())["metadata"]["outcome"] == "dummy_root"


def test_writing_a_step_twice_gives_same_bytes(tmp_path, small_step, root, make_step):
    for name in ("a", "b"):
        records = TaskRecords(tmp_path / name, "MCTS")
        for step in (root, make_step(1), small_step):
            records.write_step(step)
    assert without_times(tmp_path / "a") == without_times(tmp_path / "b")
    assert len(without_times(tmp_path / "a")) == 3 * 6


def test_rereading_and_rewriting_gives_same_bytes(tmp_path, small_step, root, make_step):
    first, second = TaskRecords(tmp_path / "a", "MCTS"), TaskRecords(tmp_path / "b", "MCTS")
    for step in (root, make_step(1), small_step):
        first.write_step(step)
    for step in first.steps():
        second.write_step(step)
    assert without_times(first.folder) == without_times(second.folder)


def test_a_step_without_its_log_does_not_exist(tmp_path, root, make_step):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (root, make_step(1), make_step(2), make_step(3)):
        records.write_step(step)
    (tmp_path / "step_3_log.json").unlink()
    assert [record.node.plan.step for record in records.steps()] == [0, 1, 2]


def test_interrupted_irs_step_is_not_complete(tmp_path, make_step, passed):
    records = TaskRecords(tmp_path, "IRS")
    for step in (1, 2):
        records.write_step(make_step(step, verdict=passed(1.0)))
    (tmp_path / "tune_0_2_log.json").unlink()
    assert len(records.steps()) == 1


def test_the_log_is_written_last(tmp_path, monkeypatch, make_step, passed):
    written = []
    real = os.replace

    def replace(source, target):
        written.append(Path(target).name)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    TaskRecords(tmp_path, "IRL").write_step(make_step(1, verdict=passed(1.0)))
    assert written[-1] == "proposal_1_log.json"
    assert set(written) == set(os.listdir(tmp_path))


@pytest.mark.parametrize("failing", range(7))
def test_crash_at_any_file_keeps_earlier_steps(tmp_path, monkeypatch, root, make_step, passed, failing):
    records = TaskRecords(tmp_path, "MCTS")
    records.write_step(root)
    records.write_step(make_step(1, verdict=passed(1.0)))
    done = records.steps()
    calls = iter(range(100))
    real = os.replace

    def replace(source, target):
        if next(calls) == failing:
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(StorageError, match="No space left"):
            records.write_step(make_step(2, verdict=passed(9.0)))
    assert records.steps() == done
    records.write_step(make_step(2, verdict=passed(3.0)))
    assert records.steps()[-1].verdict == passed(3.0)


def test_crash_in_repeated_step_mixes_no_files(tmp_path, monkeypatch, make_step, passed):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (1, 3):
        records.write_step(make_step(step, verdict=passed(1.0)))
    records.write_step(make_step(2, verdict=passed(1.0)))
    real, calls = os.replace, iter(range(100))

    def replace(source, target):
        if next(calls) == 3:
            raise OSError(5, "Input/output error")
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(StorageError):
            records.write_step(make_step(3, verdict=passed(7.0)))
    assert [record.node.plan.step for record in records.steps()] == [1, 2]
    assert (tmp_path / "step_3_log_superseded.json").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("step_1_log.json", '{"node_id": 1, "par'),
        ("step_1_log.json", "[]"),
        ("step_1_log.json", '{"node_id": 1}'),
        ("step_1_log.json", '{"node_id": 2}'),
        ("step_1_log.json", '{"created_by": "giant_step"}'),
        ("step_1_metrics.json", '{"compiled": true}'),
        ("step_1_metrics.json", '{"compiled": true, "correctness": fal'),
        ("step_1_metrics.json", '{"compiled": true, "correctness": true, "metadata": {"status": "fine"}}'),
        ("step_1_exchanges.json", '[{"purpose": "large"}]'),
        ("step_1_usage.json", '{"tokens": 5}'),
        ("step_1.py", None),
        ("step_1_metrics.json", None),
    ],
)
def test_a_damaged_file_in_the_middle_is_named(tmp_path, root, make_step, passed, name, content):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (root, make_step(1, verdict=passed(1.0)), make_step(2, verdict=passed(1.0))):
        records.write_step(step)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(RecordError, match=name.replace(".", r"\.")) as caught:
        records.steps()
    assert "\n" not in str(caught.value)


def test_reading_changes_nothing(tmp_path, root, make_step, passed):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (root, make_step(1, verdict=passed(1.0))):
        records.write_step(step)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    records.steps()
    records.summaries()
    records.best()
    records.failure()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_summaries_agree_with_steps(tmp_path, root, make_step, passed):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (root, make_step(1, verdict=passed(1.0)), make_step(2, outcome=DraftOutcome.CUT)):
        records.write_step(step)
    assert [(s.step, s.kind, s.outcome, s.verdict, s.evaluated, s.usage) for s in records.summaries()] == [
        (r.node.plan.step, r.node.plan.kind, r.draft.outcome, r.verdict, r.evaluated, r.draft.usage)
        for r in records.steps()
    ]


def test_task_is_finished_with_both_best_files(tmp_path, passed):
    records = TaskRecords(tmp_path, "MCTS")
    assert records.best() is None
    records.write_best(5, "x = 1\n", passed(2.0))
    assert records.finished(5)
    assert not records.finished(6)
    best = records.best()
    assert best is not None
    assert (best.total_steps, best.source, best.verdict) == (5, "x = 1\n", passed(2.0))
    (tmp_path / "global_best_kernel_5.py").unlink()
    assert not records.finished(5)


@pytest.mark.parametrize("verdict", [None, Verdict(status=Status.WRONG_VALUE)])
def test_only_a_correct_kernel_gets_a_file(tmp_path, verdict):
    records = TaskRecords(tmp_path, "MCTS")
    records.write_best(5, "x = 1\n", verdict)
    assert os.listdir(tmp_path) == ["global_best_metrics_5.json"]
    assert records.finished(5)


def test_best_without_candidates_has_no_verdict(tmp_path):
    records = TaskRecords(tmp_path, "MCTS")
    records.write_best(5, "", None)
    best = records.best(5)
    assert best is not None
    assert best.verdict is None


def test_finished_task_outranks_its_earlier_failure(tmp_path, passed):
    records = TaskRecords(tmp_path, "MCTS")
    records.write_failure(ProblemError("the reference needs 90 GB"))
    failure = records.failure()
    assert failure is not None
    assert (failure.error_type, failure.message) == ("ProblemError", "the reference needs 90 GB")
    records.write_best(5, "", passed(1.0))
    assert records.failure() is None


def test_copy_takes_steps_without_best_or_failure(tmp_path, root, make_step, passed):
    source, target = TaskRecords(tmp_path / "a", "MCTS"), TaskRecords(tmp_path / "b", "MCTS")
    for step in (root, make_step(1, verdict=passed(1.0))):
        source.write_step(step)
    source.write_reference("reference", "hidden")
    source.write_best(1, "", passed(1.0))
    source.write_failure(ProblemError("x"))
    target.copy_from(source)
    assert target.steps() == source.steps()
    assert (target.reference(), target.hidden_workloads()) == ("reference", "hidden")
    assert not [name for name in os.listdir(target.folder) if "best" in name or "failure" in name]
    target.write_step(make_step(2, verdict=passed(2.0)))
    target.copy_from(source)
    assert target.steps()[-1].verdict == passed(2.0)


def test_log_of_another_step_is_reported(tmp_path, make_step, passed):
    records = TaskRecords(tmp_path, "MCTS")
    for step in (1, 2):
        records.write_step(make_step(step, verdict=passed(1.0)))
    (tmp_path / "step_1_log.json").write_bytes((tmp_path / "step_2_log.json").read_bytes())
    with pytest.raises(RecordError, match=r"step_1_log\.json is damaged: it belongs to step 2"):
        records.steps()


def test_rewriting_equal_step_leaves_no_old_log(tmp_path, root):
    records = TaskRecords(tmp_path, "MCTS")
    records.write_step(root)
    before = without_times(tmp_path)
    records.write_step(root)
    assert without_times(tmp_path) == before


def test_re_evaluation_is_written_beside_step_curve(tmp_path, root, make_step, passed):
    records = TaskRecords(tmp_path, "MCTS")
    slower = make_verdict(Status.PASSED, runtime_ms=8.0, runtime_stats={"fast_p": 0.5})
    for step in (root, make_step(1), make_step(2, verdict=passed(2.0)), make_step(3, verdict=slower)):
        records.write_step(step)
    records.write_re_evaluation(3, passed(1.9), tmp_path / "step_2.py")
    found = json.loads((tmp_path / "global_best_metrics_on_sf_3.json").read_text())
    assert (found["runtime_stats"]["fast_p"], found["kernel_path"]) == (1.9, "step_2.py")
    assert json.loads((tmp_path / "global_best_metrics_re_evaluated.json").read_text()) == found
    assert json.loads((tmp_path / "step_best_curve.json").read_text()) == [
        {"step": 1, "current_runtime": None, "best_runtime": None, "fast_p": None},
        {"step": 2, "current_runtime": 2.0, "best_runtime": 2.0, "fast_p": 2.0},
        {"step": 3, "current_runtime": 8.0, "best_runtime": 2.0, "fast_p": 2.0},
    ]
    assert records.best() is None


def release_mcts(folder: Path) -> None:
    folder.mkdir()
    for step, (correct, parent) in enumerate([(False, None), (True, 0), (False, 1)]):
        kind = ("dummy_root", "large_step", "small_step")[step]
        log = {
            "node_id": step, "parent_node_id": parent, "context_node_ids": [1] if step == 2 else [],
            "depth": step, "created_by": kind, "visits": min(step, 1), "total_reward": 0.5, "max_reward": 0.5,
            "avg_reward": 0.5, "score": [bool(step), correct, 1.1 if correct else 0.0],
            "total_nodes": step + 1, "global_best_node_id": min(step, 1),
            "global_best_score": [1, 1, 1.1] if step else [0, 0, 0.0],
        }  # fmt: skip
        found = {
            "compiled": bool(step), "correctness": correct, "metadata": {"hardware": "A6000"},
            "runtime": 1.5 if correct else -1.0, "runtime_stats": {"fast_p": 1.1} if correct else {},
        }  # fmt: skip
        (folder / f"step_{step}_log.json").write_text(json.dumps(log))
        (folder / f"step_{step}_metrics.json").write_text(json.dumps(found))
        (folder / f"step_{step}.py").write_text("pass\n" if step else "")
        (folder / f"step_{step}_prompt.txt").write_text(f"prompt {step}")


def test_a_tree_of_the_release_is_read(tmp_path):
    release_mcts(tmp_path / "2_63")
    records = TaskRecords(tmp_path / "2_63", "MCTS").steps()
    assert [record.node.plan.kind for record in records] == list(StepKind)
    assert [record.verdict and record.verdict.status for record in records] == [
        None,
        Status.PASSED,
        Status.LAUNCH,
    ]
    assert records[0].node.plan.parent_id == 0
    assert records[2].node.plan.context_ids == (1,)
    assert records[2].node.global_best_score == Score(True, True, 1.1)
    assert [exchange.prompt for exchange in records[2].draft.exchanges] == ["prompt 2"]
    assert records[2].draft.usage.usd is None
    assert records[2].evaluated


def test_release_proposals_are_read_from_text_metrics(tmp_path):
    speedups = {1: "1.5", 2: "3.0"}
    for step, speedup in speedups.items():
        (tmp_path / f"proposal_{step}.py").write_text("pass\n")
        (tmp_path / f"proposal_{step}.txt").write_text("prompt")
        (tmp_path / f"proposal_{step}_metrics.txt").write_text(
            "compiled=True correctness=True metadata={'hardware': 'A6000', 'note': 'a runtime=3 b'} "
            f"runtime=0.7 runtime_stats={{'mean': 0.7, 'fast_p': {speedup}}}\n"
        )
        log = {
            "step": step,
            "step_type": "large",
            "context": {"recent": [1], "elite": []},
            "score": [1, 1, 2.0],
        }
        (tmp_path / f"proposal_{step}_log.json").write_text(json.dumps(log))
    records = TaskRecords(tmp_path, "IRL").steps()
    assert [record.verdict.speedup for record in records if record.verdict] == [1.5, 3.0]
    assert records[0].verdict is not None
    assert metadata_of(records[0].verdict)["note"] == "a runtime=3 b"
    assert records[1].node.plan.context_ids == (1,)
    assert records[1].node.global_best_node_id == 2


def test_release_chain_without_logs_is_read(tmp_path):
    for stem, correct in (("proposal_0_1", True), ("tune_0_2", False), ("tune_0_3", True)):
        (tmp_path / f"{stem}.py").write_text("pass\n")
        stats = "{'fast_p': 1.5}" if correct else "{}"
        (tmp_path / f"{stem}_metrics.txt").write_text(
            f"compiled=True correctness={correct} metadata={{}} runtime=1.0 runtime_stats={stats}"
        )
    records = TaskRecords(tmp_path, "IRS").steps()
    assert [(record.node.plan.parent_id, record.node.depth) for record in records] == [(0, 1), (1, 2), (2, 3)]
    assert [record.node.global_best_node_id for record in records] == [1, 1, 1]


def test_invalid_text_metrics_are_reported(tmp_path, make_step, passed):
    records = TaskRecords(tmp_path, "IRL")
    records.write_step(make_step(1, verdict=passed(1.0)))
    (tmp_path / "proposal_1_metrics.json").unlink()
    for text in ("compiled=True", "compiled=True correctness=True metadata={a} runtime=1 runtime_stats={}"):
        (tmp_path / "proposal_1_metrics.txt").write_text(text)
        with pytest.raises(RecordError, match=r"proposal_1_metrics\.txt is damaged"):
            records.steps()
