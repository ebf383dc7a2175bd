"""Where paths lead and what a run directory is called."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.settings import paths
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.settings.paths import REPOSITORY_ROOT, datasets_folder, locate, run_directory

NOON = datetime(2026, 3, 4, 12, 0, 5)


def test_current_directory_comes_before_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("config/quickstart.yaml") == REPOSITORY_ROOT / "config/quickstart.yaml"
    (tmp_path / "config").mkdir()
    (tmp_path / "config/quickstart.yaml").touch()
    assert locate("config/quickstart.yaml") == Path("config/quickstart.yaml")


def test_an_installed_wheel_brings_the_default_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bundled = tmp_path / "bundled"
    (bundled / "config").mkdir(parents=True)
    (bundled / "config/own.yaml").touch()
    monkeypatch.setattr(paths, "_BUNDLED", bundled)
    assert locate("config/own.yaml") == bundled / "config/own.yaml"
    assert locate("config/quickstart.yaml") == Path("config/quickstart.yaml")
    (bundled / "datasets").mkdir()
    assert datasets_folder() == Path("datasets")  # nothing is written among the files of the wheel


def test_path_that_is_nowhere_stays_as_written() -> None:
    assert locate("no/such/file") == Path("no/such/file")
    assert locate("/no/such/file") == Path("/no/such/file")


def test_data_sets_of_a_checkout_are_kept_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert datasets_folder() == REPOSITORY_ROOT / "datasets"


def test_save_path_is_taken_as_given() -> None:
    assert run_directory(RunConfig(save_path="out/x", suffix="s"), NOON) == Path("out/x")


def test_default_name_tells_runs_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in ("", "_2", "_3"):
        folder = run_directory(RunConfig(), NOON)
        assert folder == Path(f"outputs/MCTS_v1_200_KB_level1-1_25_20260304-120005{number}")
        folder.mkdir(parents=True)
    named = RunConfig(agent_type="PS", general_memory_path=None, total_steps=3, suffix="try")
    assert run_directory(named, NOON) == Path("outputs/PS_no-memory_KB_level1-1_3_20260304-120005_try")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"task": "models/my soft.max.py"}, "v1_200_my-soft-max_25"),
        ({"task": ["a.py", "b", "c.py"]}, "v1_200_a-and-2-more_25"),
        ({"test_list_path": "lists/short.txt", "problem_root": "mine"}, "v1_200_KB_short_25"),
        ({"problem_root": "sets/mine"}, "v1_200_KB_mine_25"),
        ({"problem_root": "mine", "level": 3, "problem_id": 7}, "v1_200_KB_level3-7_25"),
        ({"problem_root": "mine", "level": 3, "problem_id": None}, "v1_200_KB_level3_25"),
    ],
)
def test_default_name_holds_the_tasks(
    settings: dict[str, object], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert part in run_directory(RunConfig.model_validate(settings), NOON).name


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x", "~nobody-of-that-name"])
def test_unknown_home_directory_is_an_error(path: str) -> None:
    with pytest.raises(ConfigError, match="unknown home directory"):
        locate(path)
    with pytest.raises(ConfigError, match="unknown home directory"):
        run_directory(RunConfig(save_path=path), NOON)
    with pytest.raises(ConfigError, match="unknown home directory"):
        read_environment({"KERNELBENCH_ROOT": path})
