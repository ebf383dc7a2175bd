"""Where tasks of other benchmarks are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.core.dialects.catalogue import VARIABLES, Source, open_benchmark, source_of
from adaexplore.core.errors import TaskError

FILE = "def {name}(x):\n    return x\n" + "#" * 146 + "\nprint({name}(1))\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "checkout" / "data" / "TritonBench_T_v1"
    inside.mkdir(parents=True)
    for name in ("sub", "add"):
        (inside / f"{name}.py").write_text(FILE.format(name=name))
    return tmp_path / "checkout"


@pytest.mark.parametrize(
    ("given", "source"),
    [("tbg", "TBG"), ("TritonBench-T", "TBT"), ("TRITONBENCH_G", "TBG"), ("FIT", "FIT"), ("KB", None)],
)
def test_spellings_of_a_source_are_known(given: str, source: str | None) -> None:
    assert source_of(given) == source
    assert source_of(None) is None


@pytest.mark.parametrize("task", ["add", "add.py", "1"])
def test_task_is_found_by_name_and_number(folder: Path, task: str) -> None:
    benchmark = open_benchmark("TBT", {"TRITONBENCH_T_PATH": str(folder)})
    assert benchmark.find(task) == "add"
    assert "def get_workloads" in benchmark.problem("add")


@pytest.mark.parametrize("task", ["mul", "3", "../add", "0"])
def test_unknown_task_is_named(folder: Path, task: str) -> None:
    with pytest.raises(TaskError, match="it has 2 tasks"):
        open_benchmark("TBT", {}, str(folder)).find(task)


def test_variable_goes_before_the_folder_given(folder: Path, tmp_path: Path) -> None:
    benchmark = open_benchmark("TBT", {"TRITONBENCH_T_PATH": str(folder)}, str(tmp_path / "none"))
    assert list(benchmark.paths) == ["add", "sub"]


def test_benchmark_is_found_in_data_sets_by_default(folder: Path) -> None:
    inside = folder.parent / "data"
    (inside / "tritonbench-t").mkdir(parents=True)
    (inside / "tritonbench-t" / "mul.py").write_text(FILE.format(name="mul"))
    none = folder.parent / "none"  # the first folder lacks this benchmark
    assert list(open_benchmark("TBT", {}, datasets=(none, inside)).paths) == ["mul"]


@pytest.mark.parametrize("source", ["TBG", "FIT"])
def test_unknown_home_directory_is_named(source: Source) -> None:
    with pytest.raises(TaskError, match="~nouser/x starts with an unknown home directory"):
        open_benchmark(source, {VARIABLES[source]: "~nouser/x"})


def test_folder_without_tasks_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="set FIB_DATASET_PATH to the folder"):
        open_benchmark("FIT", {}, str(tmp_path))
