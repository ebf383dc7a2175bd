"""A run's folder: its tasks, its environment, its lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from adaexplore.core.errors import RecordError, StorageError, UsageError
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords


def test_tasks_come_in_natural_order(tmp_path):
    for name in ("2_10", "2_2", "10_1", "0_my_module", "2_2b"):
        (tmp_path / name).mkdir()
    assert RunRecords(tmp_path).tasks() == ["0_my_module", "2_2", "2_2b", "2_10", "10_1"]


def test_moved_or_removed_run_is_not_written_again(tmp_path, make_step):
    run = RunRecords(tmp_path / "run")
    said = "the run's folder was moved or removed; .*save_path"
    with run.lock():
        task = run.task("2_1", "MCTS")
        task.write_step(make_step(1))
        run.folder.rename(tmp_path / "elsewhere")
        for write in (
            lambda: task.write_step(make_step(2)),
            lambda: task.write_findings({}),
            lambda: run.replies.append({"request": "2_1/2/large"}),
            lambda: run.write_config("level: 2\n"),
        ):
            with pytest.raises(StorageError, match=said) as error:
                write()
            assert "\n" not in str(error.value)
        assert not run.folder.exists()
        with RunRecords(run.folder).lock():  # another run there
            with pytest.raises(StorageError, match=said):
                task.write_step(make_step(2))
            run.remove_empty()
            assert os.listdir(run.folder) == [".run.lock"]
    assert len(RunRecords(tmp_path / "elsewhere").task("2_1").steps()) == 1


def test_only_task_folders_are_tasks(tmp_path):
    for name in ("logs", ".git_x", "__pycache__", "old_stuff", "gemm_n256"):
        (tmp_path / name).mkdir()
    (tmp_path / "2_file").write_text("")
    (tmp_path / "gemm_n256" / "reference_src.py").write_text("")
    assert RunRecords(tmp_path).tasks() == ["gemm_n256"]


def test_planned_tasks_are_given_or_have_folders(tmp_path):
    run = RunRecords(tmp_path)
    (tmp_path / "2_3").mkdir()
    assert run.planned() == ["2_3"]
    run.write_environment({"tasks": ["2_10", "2_2"]})
    assert run.planned("1_1", "2_2") == ["1_1", "2_2", "2_3", "2_10"]
    run.write_environment({"tasks": {"2_10": 1}})
    with pytest.raises(RecordError, match=r"environment\.json is damaged: tasks"):
        run.planned()


def test_agent_is_detected_from_file_names(tmp_path, make_step, passed):
    run = RunRecords(tmp_path)
    for agent_type in ("MCTS", "IRS", "PS"):
        run.task(f"2_{agent_type}", agent_type).write_step(make_step(1, verdict=passed(1.0)))
    assert [run.task(key).agent_type for key in ("2_MCTS", "2_IRS", "2_PS", "2_none")] == [
        "MCTS",
        "IRS",
        "IRL",
        "MCTS",
    ]
    assert len(run.task("2_PS").steps()) == 1


def test_config_reads_back_as_text(tmp_path):
    run = RunRecords(tmp_path / "run")
    assert run.config() is None
    run.write_config("level: 2\n")
    assert (tmp_path / "run" / "config.yaml").read_text() == run.config() == "level: 2\n"


def test_environment_has_format_and_earlier_values(tmp_path):
    run = RunRecords(tmp_path)
    run.write_environment({"seed": 1, "torch": "2.13.0"})
    first = (tmp_path / "environment.json").read_bytes()
    run.write_environment({"seed": 1, "torch": "2.13.0"})
    assert (tmp_path / "environment.json").read_bytes() == first
    run.write_environment({"seed": 1, "torch": "2.14.0"})
    run.write_environment({"seed": 1, "torch": "2.14.0"})
    assert run.environment() == {
        "format": 1,
        "seed": 1,
        "torch": "2.14.0",
        "earlier": [{"format": 1, "seed": 1, "torch": "2.13.0"}],
    }


def test_alternating_environment_values_are_kept_once(tmp_path):
    run = RunRecords(tmp_path)
    for version in ("a", "b", "a", "b", "c", "a"):
        run.write_environment({"torch": version})
    assert [each["torch"] for each in run.environment()["earlier"]] == ["b", "c"]


def test_a_run_of_a_newer_version_is_refused(tmp_path):
    (tmp_path / "2_1").mkdir()
    (tmp_path / "environment.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(RecordError, match="upgrade adaexplore"):
        RunRecords.existing(tmp_path)


def test_non_run_is_refused_with_advice(tmp_path, make_step):
    with pytest.raises(RecordError, match="not a folder"):
        RunRecords.existing(tmp_path / "missing")
    with pytest.raises(RecordError, match="holds no task"):
        RunRecords.existing(tmp_path)
    run = RunRecords(tmp_path)
    run.task("2_1", "MCTS").write_step(make_step(1))
    with pytest.raises(RecordError, match=f"give the run directory {tmp_path}$"):
        RunRecords.existing(tmp_path / "2_1")
    assert RunRecords.existing(tmp_path).tasks() == ["2_1"]


def test_second_writer_is_refused_until_first_ends(tmp_path):
    run = RunRecords(tmp_path / "run")
    script = (
        "import sys, pathlib\n"
        "from adaexplore.core.errors import UsageError\n"
        "from adaexplore.records.run_records import RunRecords\n"
        "try:\n"
        "    with RunRecords(pathlib.Path(sys.argv[1])).lock():\n"
        "        sys.exit(0)\n"
        "except UsageError as error:\n"
        "    sys.exit(error.exit_code)\n"
    )
    command = [sys.executable, "-c", script, str(run.folder)]
    with run.lock():
        with pytest.raises(UsageError, match="another process is writing"), RunRecords(run.folder).lock():
            pass
        assert subprocess.run(command, check=False).returncode == 2
    assert subprocess.run(command, check=False).returncode == 0


def test_uncreatable_folder_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("")
    said = "file is a file, not a folder; choose another save_path"
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(StorageError, match=said), RunRecords(folder).lock():
            pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_says_what_helps(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    said = "make the folder writable or choose another save_path"
    with pytest.raises(StorageError, match=said), RunRecords(tmp_path / "run").lock():
        pass


def test_invalid_cost_note_is_left_out(tmp_path: Path) -> None:
    records = RunRecords(tmp_path)
    records.replies.append({"request": "1_1/1/large", **asdict(Usage(input_tokens=3))})
    with (tmp_path / "usage.jsonl").open("a") as out:
        out.write('{"request": "1_1/2/large", "input_tokens": "many"}\n')
    assert records.usage() == [("1_1/1/large", Usage(input_tokens=3))]


@pytest.mark.parametrize("origins", ['{"1_1": [1]}', '{"1_1": {"x": "4"}}'])
def test_damaged_origins_are_named(tmp_path: Path, origins: str) -> None:
    (tmp_path / "origins.json").write_text(origins)
    with pytest.raises(RecordError, match=r"origins\.json is damaged"):
        RunRecords(tmp_path).makers("1_1", 2)


def test_settings_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    records = RunRecords(tmp_path)
    assert records.settings() == {}
    records.write_config("{tf32: off, total_steps: 3}\n")
    assert records.settings() == {"tf32": "off", "total_steps": 3}
    records.write_config("tf32: [\n")
    with pytest.raises(RecordError, match=r"config\.yaml is damaged: .*; restore it"):
        records.settings()
