"""Which tasks a configuration selects."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.core.errors import TaskError
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment
from adaexplore.settings.load import load_config, resolved_yaml
from adaexplore.tasks.sources import load_tasks, task_from_file

ROOT = Path(__file__).resolve().parents[2]
MODULE = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
NOTHING_SET = Environment()


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    root = tmp_path / "bench"
    for name in ("level1/1_add", "level1/10_sum", "level1/2_mul", "level2/5_gelu"):
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE + f"# {name}\n")
    (root / "level1/notes.py").write_text("not a problem")
    (root / "level1/__pycache__").mkdir()
    (root / "level3").mkdir()
    return root


def kb(root: Path, test_list: str | None = None, **values: object) -> RunConfig:
    if test_list is not None:
        path = root.parent / "list.txt"
        path.write_text(test_list)
        values["test_list_path"] = str(path)
    return RunConfig.model_validate({"problem_root": str(root), **values})


def keys(config: RunConfig, environment: Environment = NOTHING_SET) -> list[str]:
    return [task.key for task in load_tasks(config, environment)]


def refusal(config: RunConfig, environment: Environment = NOTHING_SET) -> str:
    with pytest.raises(TaskError) as caught:
        load_tasks(config, environment)
    message = str(caught.value)
    assert "" not in message.splitlines()
    return message


def test_level_and_problem_select_one_task(bench: Path) -> None:
    (task,) = load_tasks(kb(bench, level=2, problem_id=5, dtype_str="bf16"), NOTHING_SET)
    assert (task.level, task.problem_id, task.name, task.dtype) == (2, "5", "5_gelu", "bf16")
    assert task.path == bench / "level2/5_gelu.py"
    assert task.reference == MODULE + "# level2/5_gelu\n"


def test_number_written_as_text_is_a_number(bench: Path) -> None:
    assert keys(kb(bench, problem_id="02")) == ["1_2"]


def test_task_says_whether_gradients_are_judged(bench: Path) -> None:
    for direction in ("forward", "backward", "both"):
        (task,) = load_tasks(kb(bench, level=2, problem_id=5, direction=direction), NOTHING_SET)
        assert task.direction == direction


def test_level_alone_selects_its_problems_in_numeric_order(bench: Path) -> None:
    assert keys(kb(bench, "1")) == ["1_1", "1_2", "1_10"]


def test_tasks_follow_list_order_without_duplicates(bench: Path) -> None:
    assert keys(kb(bench, "2 5\n1 10,1-2\n1\n2\n")) == ["2_5", "1_10", "1_1", "1_2"]


def test_environment_wins_over_problem_root(bench: Path) -> None:
    config = kb(bench.parent / "elsewhere", "2")
    assert keys(config, Environment(kernelbench_root=bench)) == ["2_5"]


def test_clone_of_the_benchmark_is_a_root_too(bench: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    bench.rename(clone / "KernelBench")
    assert keys(kb(clone, "2")) == ["2_5"]


def test_missing_problem_says_what_is_there(bench: Path) -> None:
    message = refusal(kb(bench, "1 1-4,10\n2 6\n"))
    assert f"no problem 3-4 in level 1 of {bench}; it has 1-2, 10" in message
    assert f"no problem 6 in level 2 of {bench}; it has 5" in message


def test_missing_level_says_which_there_are(bench: Path) -> None:
    origin = "level, problem_id"
    assert refusal(kb(bench, level=4)) == f"{origin}: no level 4 in {bench}; it has level 1, 2, 3"


def test_level_without_problems_is_refused(bench: Path) -> None:
    assert "hold no problems" in refusal(kb(bench, "3"))


def test_missing_root_says_what_to_set(tmp_path: Path) -> None:
    message = refusal(kb(tmp_path / "no"))
    assert str(tmp_path / "no") in message
    assert "KERNELBENCH_ROOT" in message
    message = refusal(RunConfig(), Environment(kernelbench_root=tmp_path))
    assert f"{tmp_path} (KERNELBENCH_ROOT)" in message


def test_name_in_place_of_a_number_is_refused(bench: Path) -> None:
    assert refusal(kb(bench, problem_id="gelu")) == "problem_id: KB problems have numbers, got 'gelu'"


def test_two_files_of_one_id_are_refused(bench: Path) -> None:
    (bench / "level1/01_twin.py").write_text(MODULE)
    assert "same problem id" in refusal(kb(bench, "1"))


def test_every_file_that_is_no_problem_is_reported(bench: Path) -> None:
    (bench / "level1/1_add.py").write_text("x = (")
    (bench / "level1/2_mul.py").write_text("x = 1")
    message = refusal(kb(bench, "1"))
    assert "1_add.py: line 1: not valid Python" in message
    assert "2_mul.py: line 1: does not define Model" in message


def test_synthesised_set_is_level_1_of_numbered_files(tmp_path: Path) -> None:
    for number in (1, 2, 11):
        (tmp_path / f"{number}.py").write_text(MODULE)
    values = {"test_source": "SYN", "problem_root": str(tmp_path)}
    environment = Environment(kernelbench_root=tmp_path / "ignored")
    assert keys(RunConfig.model_validate({**values, "problem_id": 11}), environment) == ["1_11"]
    assert "no level 2" in refusal(RunConfig.model_validate({**values, "level": 2}))
    assert "no problem 3" in refusal(RunConfig.model_validate({**values, "problem_id": 3}))


def test_empty_synthesised_set_says_what_to_set(tmp_path: Path) -> None:
    config = RunConfig.model_validate({"test_source": "SYN", "problem_root": str(tmp_path)})
    assert "set problem_root" in refusal(config)


def test_single_file_is_a_task_of_level_0(tmp_path: Path) -> None:
    path = tmp_path / "my module.v2.py"
    path.write_text(MODULE)
    task = task_from_file(path, "fp16")
    assert (task.key, task.name, task.dtype, task.reference) == (
        "0_my_module_v2",
        "my module.v2",
        "fp16",
        MODULE,
    )


def test_single_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no problem file .*no\.py"):
        task_from_file(tmp_path / "no.py", "fp32")
    with pytest.raises(TaskError, match="cannot read problem file"):
        task_from_file(tmp_path, "fp32")
    (tmp_path / "bad.py").write_text("x = 1")
    with pytest.raises(TaskError, match=r"bad\.py: line 1: does not define Model"):
        task_from_file(tmp_path / "bad.py", "fp32")


def test_quickstart_has_twelve_tasks() -> None:
    tasks = load_tasks(load_config(ROOT / "config/quickstart.yaml"), NOTHING_SET)
    assert len(tasks) == 12
    assert {task.level for task in tasks} == {1, 2, 3}


WORKLOADS = "class Model: ...\ndef get_workloads(): ...\ndef get_init_inputs(): ...\n"


def test_file_beside_a_problem_holds_its_hidden_workloads(bench: Path) -> None:
    (bench / "level2/5_gelu.hidden.py").write_text("def get_workloads(): ...\n")
    config = kb(bench, level=2, problem_id=5)
    (task,) = load_tasks(config, NOTHING_SET)
    assert task.hidden_workloads == "def get_workloads(): ...\n"
    assert task_from_file(bench / "level2/5_gelu.py", "fp32").hidden_workloads == task.hidden_workloads
    (other,) = load_tasks(kb(bench, level=1, problem_id=1), NOTHING_SET)
    assert other.hidden_workloads is None


def test_hidden_workloads_that_cannot_be_are_named(bench: Path) -> None:
    hidden = bench / "level2/5_gelu.hidden.py"
    hidden.write_text("x = 1\n")
    named = f"task 2_5: {hidden}: line 1: does not define get_workloads; return a list such as"
    assert refusal(kb(bench, level=2, problem_id=5)).startswith(named)


def test_workloads_replace_inputs(tmp_path: Path) -> None:
    path = tmp_path / "several.py"
    path.write_text(WORKLOADS)
    assert task_from_file(path, "fp32").reference == WORKLOADS


def test_root_without_list_runs_all_its_problems(bench: Path, tmp_path: Path) -> None:
    assert keys(kb(bench)) == ["1_1", "1_2", "1_10", "2_5"]
    assert keys(kb(bench, level=1, problem_id=None)) == ["1_1", "1_2", "1_10"]
    assert keys(kb(bench, level=1)) == ["1_1"]
    assert keys(kb(bench, "2 5\n")) == ["2_5"]
    numbered = tmp_path / "numbered"
    numbered.mkdir()
    for number in (2, 11):
        (numbered / f"{number}.py").write_text(MODULE)
    values = {"test_source": "SYN", "problem_root": str(numbered)}
    assert keys(RunConfig.model_validate(values)) == ["1_2", "1_11"]


def test_recorded_choice_of_all_reads_back(bench: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(resolved_yaml(kb(bench)))
    assert load_config(path) == kb(bench)
    with pytest.raises(ValueError, match="set problem_id to null too"):
        kb(bench, level=None)


def named(*paths: Path) -> RunConfig:
    return RunConfig.model_validate({"task": [str(path) for path in paths]})


def test_named_files_and_folders_all_run(bench: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "soft.py").write_text(MODULE)
    (folder / "soft.hidden.py").write_text("def get_workloads(): return []\n")
    (folder / "kernel.py").write_text("class ModelNew: ...\ndef get_inputs(): ...\n")
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "add.py").write_text("def Model(x): ...\ndef get_inputs(): ...\n")
    one = bench / "level1/2_mul.py"
    assert keys(named(one, folder)) == ["0_2_mul", "0_add", "0_soft"]
    assert keys(named(folder, folder / "soft.py")) == ["0_add", "0_soft"]
    assert keys(named(bench)) == ["1_1", "1_2", "1_10", "2_5"]


def test_unusable_files_of_a_folder_are_named(tmp_path: Path) -> None:
    assert "no problems in the folder" in refusal(named(tmp_path))
    (tmp_path / "a.py").write_text("class Shiny: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
    (tmp_path / "b.py").write_text("x = (")
    message = refusal(named(tmp_path, tmp_path / "none.py"))
    assert "a.py: line 1: does not define Model; add the line 'Model = Shiny'" in message
    assert "b.py: line 1: not valid Python" in message
    assert "no problem file" in message


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "soft.py").write_text(MODULE)
    message = refusal(named(tmp_path / "one", tmp_path / "two/soft.py"))
    assert message.endswith("have the same name; rename one")
