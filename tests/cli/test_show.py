from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli.main import main

PROBLEMS = Path(__file__).parents[2] / "datasets/quickstart/level1"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a run of one task with random verdicts; step 2 fails, step 3 is correct."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    settings = ["dummy=true", "server_type=offline", "total_steps=3", "p_large=0.4", f"save_path={folder}"]
    flags = [text for each in settings for text in ("--set", each)]
    assert main(["run", "--task", str(PROBLEMS / "2_row_sum.py"), "--set", "preset=default", *flags]) == 0
    task = folder / "0_2_row_sum"
    for step, parent, found in ((1, 0, True), (2, 1, False), (3, 1, True)):
        log = json.loads((task / f"step_{step}_log.json").read_text())
        log |= {"parent_node_id": parent, "created_by": "small_step" if parent else "large_step"}
        (task / f"step_{step}_log.json").write_text(json.dumps(log))
        (task / f"step_{step}.py").write_text(f"# a kernel \u202e\x1b[31m\nSTEP = {step}\n")
        metadata = {
            "status": "passed" if found else "compile",
            "feedback": "" if found else "no such operator",
        }
        stats = {"fast_p": float(step)} if found else {}
        metrics = {"compiled": True, "correctness": found, "metadata": metadata, "runtime": 1.0}
        (task / f"step_{step}_metrics.json").write_text(json.dumps({**metrics, "runtime_stats": stats}))
    return folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_task_shows_steps_lineage_and_best_kernel(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown(capsys, recorded)
    assert "0_2_row_sum: 3.00x" in page
    assert "lineage: 1 (1.00x) > 3 (3.00x)" in page
    assert ["2", "small", "1", "compile", "no", "such", "operator"] in [
        line.split() for line in page.splitlines()
    ]
    assert page.endswith("STEP = 3\n")


def test_a_step_shows_verdict_and_differences(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(capsys, recorded, "0_2_row_sum", 2)
    assert "step 2: small step, compile" in page
    assert "no such operator" in page
    assert "Differences from step 1:" in page
    assert "-STEP = 1\n+STEP = 2" in page
    assert "Differences" not in shown(capsys, recorded, "0_2_row_sum", 1)


def test_colours_only_in_terminals_and_none_from_kernels(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = shown(capsys, recorded)
    assert "\x1b" not in plain
    assert "\\u202e\\x1b[31m" in plain
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = shown(capsys, recorded)
    assert "\x1b[" in coloured
    assert "\x1b[31m\n" not in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(capsys, recorded) == plain


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["0_2_row_sun"], "no task '0_2_row_sun'; did you mean 0_2_row_sum?"),
        (["0_2_row_sum", "9"], "no step 9; its steps are 1 to 3"),
        (["0_2_row_sum", "0"], "no step 0"),
    ],
)
def test_missing_input_prints_one_line(
    recorded: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(recorded), *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)


def test_run_shows_one_row_per_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key in ("1_1", "1_2"):
        (tmp_path / key).mkdir()
        (tmp_path / key / "task_failure.json").write_text('{"error_type": "X", "message": "too large"}')
    page = shown(capsys, tmp_path)
    assert [line.split()[0] for line in page.splitlines() if line.startswith("1_")] == ["1_1", "1_2"]
