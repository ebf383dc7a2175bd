from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import RecordError
from adaexplore.records.run_records import RunRecords

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    settings = ["dummy=true", "server_type=offline", "total_steps=4", f"save_path={tmp_path / 'run'}"]
    flags = [text for each in settings for text in ("--set", each)]
    return ["run", "--task", str(PROBLEM), *flags]


def contents(folder: Path) -> dict[str, bytes]:
    told = ("judge.log", ".run.lock", "environment.json", "usage.jsonl")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in told and "damaged" not in path.name
    }


WRONG_TYPE = '{"compiled": true, "correctness": true, "metadata": {}, "runtime_stats": {"fast_p": [2]}}'
DAMAGES: dict[str, Callable[[Path], object]] = {
    "step_2_metrics.json": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "step_3_log.json": lambda path: path.write_text('{"node_id": 7}'),
    "step_2_log.json": lambda path: path.write_bytes(b"\0" * 100),
    "step_4.py": lambda path: path.unlink(),
    "step_4_usage.json": lambda path: path.write_text("{"),
    "rules.json": lambda path: path.write_text("["),
    "../environment.json": lambda path: path.write_text(""),
    "step_1_metrics.json": lambda path: path.write_text(WRONG_TYPE),
    "global_best_metrics_4.json": lambda path: path.write_text(WRONG_TYPE),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_repaired_run_ends_like_an_undamaged_one(
    name: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    folder = tmp_path / "run"
    before = contents(folder)
    DAMAGES[name](folder / "0_2_row_sum" / name)
    assert main(["repair", str(folder)]) == 0
    assert "set aside" in capsys.readouterr().out
    assert main(["stats", str(folder)]) == 0
    assert main(command) == 0
    if name in ("rules.json", "step_4_usage.json"):  # a step is readable without it, and is not repeated
        del before[f"0_2_row_sum/{name}"]
    after = contents(folder)
    assert {path: text for path, text in after.items() if "superseded" not in path} == before
    assert main(["repair", str(folder)]) == 0
    assert "is damaged" in capsys.readouterr().out.splitlines()[-1]


HIDDEN = """
def get_workloads():
    return [{"name": "hidden", "get_inputs": get_inputs}]
"""


@pytest.mark.parametrize("step", [3, 4])
def test_missing_log_is_named_and_repaired(
    step: int, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    task = folder / "0_2_row_sum"
    assert main([*command, "--set", "total_steps=2"]) == 0
    assert main(command) == 0
    before = contents(folder)
    (task / f"step_{step}_log.json").unlink()
    for words in (["stats", str(folder)], command):
        assert main(words) == 2
        assert f"step_{step}_log.json is missing" in capsys.readouterr().err.splitlines()[-1]
    assert main(["repair", str(folder)]) == 0
    told = capsys.readouterr().out
    assert f"{task / 'global_best_metrics_4.json'} renamed" in told
    assert "global_best_metrics_2.json" not in told
    assert (f"{task / 'step_4_log.json'} renamed" in told) == (step == 3)
    assert main(["stats", str(folder)]) == 0
    assert main(command) == 0
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", b"\xff"),
        ("config.yaml", b"seed: [1\n"),
        ("0_sum/reference_src.py", b"\xff"),
        ("0_sum/hidden_workloads_src.py", b"\xff"),
    ],
)
def test_damaged_config_or_problem_is_set_aside(
    name: str, text: bytes, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command[2] = str(tmp_path / "sum.py")
    Path(command[2]).write_text(PROBLEM.read_text())
    (tmp_path / "sum.hidden.py").write_text(HIDDEN)
    assert main(command) == 0
    folder = tmp_path / "run"
    before = contents(folder)
    assert "0_sum/hidden_workloads_src.py" in before
    (folder / name).write_bytes(text)
    assert main([*command, "--set", "total_steps=4"]) == 2
    assert "`adaexplore repair RUN`" in capsys.readouterr().err
    assert main(["repair", str(folder)]) == 0
    assert f"{folder / name} renamed" in capsys.readouterr().out
    assert main(command) == 0
    assert contents(folder) == before


def test_missing_reference_is_written_again(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    reference = tmp_path / "run" / "0_2_row_sum" / "reference_src.py"
    before = reference.read_bytes()
    reference.unlink()
    assert main(["replay", str(tmp_path / "run"), "--out", str(tmp_path / "again")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "reference_src.py is missing; " in said
    assert "repair" not in said
    assert main(command) == 0
    assert reference.read_bytes() == before


def test_damage_is_reported_with_the_repair_command(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(command)
    (tmp_path / "run" / "0_2_row_sum" / "step_2_metrics.json").write_text("{")
    assert main(["stats", str(tmp_path / "run")]) == 2
    assert "`adaexplore repair RUN`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    ["judge_environment.json", "0_2_row_sum/reference_facts.json", "0_2_row_sum/rules.json"],
)
def test_json_of_wrong_shape_is_set_aside(
    name: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    path = tmp_path / "run" / name
    path.write_text('{"tensors": 3, "torch": []}')
    assert main(["repair", str(tmp_path / "run")]) == 0
    assert f"{path} renamed" in capsys.readouterr().out
    assert main(command) == 0


@pytest.mark.parametrize("words", [["stats"], ["show"]])
def test_metrics_of_wrong_type_are_reported_as_damaged(
    words: list[str], command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(command)
    (tmp_path / "run" / "0_2_row_sum" / "step_2_metrics.json").write_text(WRONG_TYPE)
    assert main([*words, str(tmp_path / "run")]) == 2
    assert "step_2_metrics.json is damaged" in capsys.readouterr().err


def test_damage_is_reported_without_addresses(tmp_path: Path) -> None:
    (tmp_path / "judge_environment.json").write_text('{"torch": []}')
    with pytest.raises(RecordError, match="is damaged: hardware: Field required;") as error:
        RunRecords(tmp_path).judge_environment()
    assert "http" not in str(error.value)


def test_repair_refuses_run_in_use_and_non_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run" / "1_1").mkdir(parents=True)
    damaged = tmp_path / "run" / "1_1" / "task_failure.json"
    damaged.write_text("{")
    with RunRecords(tmp_path / "run").lock():
        assert main(["repair", str(tmp_path / "run")]) == 2
    assert damaged.read_text() == "{"
    assert main(["repair", str(tmp_path / "none")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
