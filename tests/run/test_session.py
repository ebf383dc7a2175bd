from __future__ import annotations

import threading
from pathlib import Path

import pytest

from adaexplore.core.errors import AdaExploreError, ConfigError, RecordError
from adaexplore.core.task import Task
from adaexplore.records.recorded import recorded_tasks
from adaexplore.records.run_records import RunRecords
from adaexplore.run.session import open_session
from adaexplore.settings.config import RunConfig

PROBLEM = (Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py").read_text()


def run(
    folder: Path,
    problem: str = PROBLEM,
    hidden: str | None = None,
    full: str | None = None,
    **settings: object,
) -> int:
    """Return the number of steps that a run took or found."""
    config = RunConfig.model_validate(
        {"dummy": True, "server_type": "offline", "total_steps": 2, "general_memory_path": None, **settings}
    )
    task = Task(1, "2", "2_row_sum", problem, "fp32", Path("2_row_sum.py"), hidden, full_reference=full)
    with open_session(config, [task], folder, threading.Event()) as session:
        news = list(session.progress())
    steps = {item.result.node.plan.step for item in news if item.result is not None}
    return len(steps - {0})


def test_same_folder_continues(tmp_path: Path) -> None:
    assert run(tmp_path) == 2
    assert run(tmp_path, total_steps=3) == 3
    assert run(tmp_path, total_steps=1) == 1


@pytest.mark.parametrize("settings", [{"agent_type": "PS"}, {"dummy": False, "judge_device": "cpu"}])
def test_steps_of_different_kinds_do_not_mix(tmp_path: Path, settings: dict[str, object]) -> None:
    begun = tmp_path / "run"
    run(begun, agent_type="IRL")
    config = (begun / "config.yaml").read_text()
    with pytest.raises(ConfigError, match=r"was started with .*; choose another save_path"):
        run(begun, **{"agent_type": "IRL", **settings})
    assert (begun / "config.yaml").read_text() == config
    with pytest.raises(ConfigError, match="resume_from needs a run of the same kind"):
        run(tmp_path / "new", **{"agent_type": "IRL", **settings, "resume_from": str(begun)})


@pytest.mark.parametrize(
    "settings", [{"tier": "strict"}, {"baseline": "compile"}, {"direction": "both", "server_type": "openai"}]
)
def test_verdicts_that_cannot_be_compared_do_not_mix(tmp_path: Path, settings: dict[str, object]) -> None:
    run(tmp_path)
    with pytest.raises(ConfigError, match=f"was started with {next(iter(settings))}: "):
        run(tmp_path, **settings)


def test_other_hidden_workloads_are_another_problem(tmp_path: Path) -> None:
    run(tmp_path, hidden="a")
    assert run(tmp_path, hidden="a", total_steps=3) == 3
    with pytest.raises(RecordError, match="another problem"):
        run(tmp_path, hidden="b", total_steps=4)


def test_judged_problem_is_recorded_and_compared(tmp_path: Path) -> None:
    run(tmp_path, full=f"{PROBLEM}# all")
    (task,) = recorded_tasks(RunRecords(tmp_path), "fp32")
    assert (task.reference, task.judged_reference) == (PROBLEM, f"{PROBLEM}# all")
    assert run(tmp_path, full=f"{PROBLEM}# all", total_steps=3) == 3
    with pytest.raises(RecordError, match="another problem"):
        run(tmp_path, full=f"{PROBLEM}# others", total_steps=4)


def test_run_of_version_without_tiers_continues(tmp_path: Path) -> None:
    run(tmp_path)
    config = tmp_path / "config.yaml"
    kept = [line for line in config.read_text().splitlines() if not line.startswith(("tier:", "baseline:"))]
    config.write_text("\n".join(kept) + "\n")
    assert run(tmp_path, total_steps=3, tier="strict") == 3


@pytest.mark.parametrize("finished", [True, False])
def test_changed_problem_with_same_number_is_refused(tmp_path: Path, finished: bool) -> None:
    run(tmp_path)
    with pytest.raises(RecordError, match="another problem"):
        run(tmp_path, PROBLEM.replace("sum(", "mean("), total_steps=2 if finished else 3)


def test_line_ends_of_a_problem_do_not_matter(tmp_path: Path) -> None:
    run(tmp_path)
    assert run(tmp_path, PROBLEM + "\n") == 2


def test_steps_are_copied_from_another_run(tmp_path: Path) -> None:
    run(tmp_path / "first")
    (tmp_path / "first" / "1_2" / "step_1_reply.txt").write_text("told apart")
    assert run(tmp_path / "second", total_steps=3, resume_from=str(tmp_path / "first")) == 3
    assert (tmp_path / "second" / "1_2" / "step_1_reply.txt").read_text() == "told apart"


@pytest.mark.parametrize("name", ["a/b/c", "a/" + "x" * 300])
def test_refused_run_leaves_no_parent_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").mkdir()
    for above in ("", "kept", "new/er"):
        with pytest.raises((AdaExploreError, OSError)):
            run(tmp_path / above / name, seed_kernel="no/such/file")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept"]
