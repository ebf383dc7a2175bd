"""Tasks of other benchmarks from a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from adaexplore.core.errors import TaskError
from adaexplore.judge_client.access import open_judge
from adaexplore.settings.config import RunConfig, TestSource
from adaexplore.settings.environment import read_environment
from adaexplore.tasks.sources import SOURCES, load_tasks
from tests.judge_server import PASSED, JudgeServer
from tests.tool_scripts.test_benchmark_files import definition

FILE = "def {name}(x):\n    return x\n" + "#" * 146 + "\nprint({name}(1))\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("add", "sub"):
        (tmp_path / f"{name}.py").write_text(FILE.format(name=name))
    return tmp_path


def config(**values: object) -> RunConfig:
    return RunConfig.model_validate({"test_source": "TBT", **values})


@pytest.mark.parametrize("problem", [2, "sub"])
def test_task_is_chosen_by_number_or_name(folder: Path, problem: object) -> None:
    environment = read_environment({"TRITONBENCH_T_PATH": str(folder)})
    (task,) = load_tasks(config(problem_id=problem), environment)
    assert (task.key, task.name, task.dtype) == ("1_2", "sub", "native")
    assert "class Model(" in task.reference


def test_list_chooses_several(folder: Path) -> None:
    (folder / "list.txt").write_text("1\n")
    chosen = config(problem_root=str(folder), test_list_path=str(folder / "list.txt"))
    assert [task.key for task in load_tasks(chosen, read_environment({}))] == ["1_1", "1_2"]


def test_other_level_is_refused(folder: Path) -> None:
    (folder / "list.txt").write_text("2 1\n")
    chosen = config(problem_root=str(folder), test_list_path=str(folder / "list.txt"))
    with pytest.raises(TaskError, match="no level 2"):
        load_tasks(chosen, read_environment({}))


@pytest.mark.parametrize("problem", [3, "mul"])
def test_task_that_is_not_there_is_refused(folder: Path, problem: object) -> None:
    chosen = config(problem_root=str(folder), problem_id=problem)
    with pytest.raises(TaskError, match=r"no task .* it has 2 tasks"):
        load_tasks(chosen, read_environment({}))


def test_missing_number_is_named_with_its_line(folder: Path) -> None:
    (folder / "list.txt").write_text("1 1\n1 3\n")
    chosen = config(problem_root=str(folder), test_list_path=str(folder / "list.txt"))
    with pytest.raises(TaskError, match=r"list\.txt:2: no problem 3 in level 1 of .*; it has 1-2"):
        load_tasks(chosen, read_environment({}))


def test_every_test_source_has_what_opens_it() -> None:
    assert set(SOURCES) == set(get_args(TestSource))


def test_all_broken_tasks_are_named(folder: Path) -> None:
    (folder / "add.py").write_text("x")
    (folder / "sub.py").write_text("x")
    (folder / "list.txt").write_text("1 1-2\n")
    chosen = config(problem_root=str(folder), test_list_path=str(folder / "list.txt"))
    with pytest.raises(TaskError, match=r"add\.py: .*\n.*sub\.py: "):
        load_tasks(chosen, read_environment({}))


def test_all_stored_workloads_are_judged(folder: Path) -> None:
    definition(folder, 3000, 7, 2000)
    chosen = config(test_source="FIT", problem_root=str(folder), problem_id=1)
    (task,) = load_tasks(chosen, read_environment({}))
    stored = [f"_fi_stored([{count}]" for count in (3000, 7, 2000)]
    assert [text in task.reference for text in stored] == [False, True, False]
    assert [text in task.judged_reference for text in stored] == [True] * 3
    with JudgeServer(lambda _path, _body: (200, PASSED, {})) as server:
        remote = config(use_remote_eval=True, remote_eval_url=server.url)
        with open_judge(remote) as access, access.turn() as judge:
            judge.evaluate(task, "class ModelNew: pass")
    assert server.requests[-1][1]["original_model_src"] == task.judged_reference
