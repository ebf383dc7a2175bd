from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.core.task import Task
from adaexplore.settings.config import RunConfig
from adaexplore.tasks.seeds import load_seeds

TASKS = [Task(1, str(number), "x", "", "fp32", Path("x.py")) for number in (1, 3)]


def load(path: Path, tasks: list[Task] | None = None, **settings: Any) -> dict[str, tuple[str, ...]]:
    config = RunConfig.model_validate({"seed_kernel": str(path), **settings})
    return {key: seeds for key, seeds in load_seeds(config, tasks or TASKS).items() if seeds}


def test_without_the_key_there_are_none() -> None:
    assert load_seeds(RunConfig(), TASKS) == {}


def test_a_file_is_for_every_task(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    assert load(tmp_path / "mine.py") == {"1_1": ("x = 1\n",), "1_3": ("x = 1\n",)}


def test_a_folder_holds_them_by_task(tmp_path: Path) -> None:
    (tmp_path / "1_3.py").write_text("x = 3\n")
    (tmp_path / "1_3").mkdir()
    for name in ("b", "a"):
        (tmp_path / "1_3" / f"{name}.py").write_text(f"x = '{name}'\n")
    (tmp_path / "2_7.py").write_text("not for these tasks")
    assert load(tmp_path) == {"1_3": ("x = 3\n", "x = 'a'\n", "x = 'b'\n")}


def test_single_task_takes_every_kernel_in_folder(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.py").write_text(f"x = '{name}'\n")
    assert load(tmp_path, TASKS[:1]) == {"1_1": ("x = 'a'\n", "x = 'b'\n")}
    with pytest.raises(ConfigError, match=r"no kernel for any task; name files .* such as 1_1\.py"):
        load(tmp_path)


def test_unusable_seeds_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file and no folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "1_1.py").write_text(" \n")
    with pytest.raises(ConfigError, match=r"1_1\.py is empty"):
        load(tmp_path)
    (tmp_path / "1_1.py").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(tmp_path)
    (tmp_path / "1_1").mkdir()
    for name in "ab":
        (tmp_path / "1_1" / f"{name}.py").write_text("x = 1")
    with pytest.raises(ConfigError, match="has 3 kernels for one task and each is a step"):
        load(tmp_path, total_steps=2)
