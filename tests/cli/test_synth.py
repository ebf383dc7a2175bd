from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import BudgetReached
from tests.model_server import ModelServer
from tests.synthesis.test_synthesiser import PROBLEM

ROOT = Path(__file__).parents[2]
OFFLINE = ["--set", "server_type=offline", "--set", "dummy=true", "--set", "num_processes=2"]


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.*") if path.is_file()}


def test_json_account_has_the_promised_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", *OFFLINE, "--count", "3", "--out", str(tmp_path / "set"), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert (account["asked"], account["written"], account["rejected"]) == (3, 3, {})
    assert account["operators"] >= 3
    assert main(["synth", *OFFLINE, "--count", "3", "--out", str(tmp_path / "set")]) == 0
    assert "3 of 3 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "requests"), [("max_cost_usd=0.0001", 1), ("max_total_tokens=1", 1), ("max_wall_s=0.001", 0)]
)
def test_synth_ends_at_its_limit_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, requests: int
) -> None:
    numbers = count(1)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ModelServer() as server:
        server.reply = lambda _: f"```python\n{PROBLEM.format(number=next(numbers))}```"
        model = [f"base_url={server.openai_url}", "model_name=gpt-5-mini", "dummy=true", "num_processes=4"]
        command = ["synth", "--count", "3", "--out", str(tmp_path / "set")]
        command += [text for setting in model for text in ("--set", setting)]
        assert main([*command, "--set", limit]) == BudgetReached.exit_code
        assert len(server.requests) == requests
        assert main(command) == 0
        assert len(server.requests) == 3


def test_synth_uses_given_style_and_sizes(tmp_path: Path) -> None:
    chosen = ["--style", "creative", "--elements", "900", "600", "--count", "4", "--out", str(tmp_path)]
    assert main(["synth", *OFFLINE, *chosen]) == 0
    lines = (tmp_path / "manifest.jsonl").read_text().splitlines()
    assert {json.loads(line)["style"] for line in lines} == {"creative"}
    for path in tmp_path.glob("*.py"):
        size = 1
        shape = re.search(
            r"get_inputs\(\):\n    return \[\n        torch.randn\(([\d, ]+)\)", path.read_text()
        )
        assert shape is not None
        for part in shape[1].split(","):
            size *= int(part)
        assert 600 <= size <= 900


def test_wrong_use_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", *OFFLINE]) == 2
    assert (
        main(["synth", "--set", "server_type=replay", "--set", "replay_path=x", "--out", str(tmp_path)]) == 2
    )
    assert main(["synth", *OFFLINE, "--check", str(tmp_path)]) == 2
    assert main(["synth", *OFFLINE, "--seeds", str(tmp_path), "--out", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    wanted = ("--out DIR", "replay", "no problems", "no seed problems")
    said = [line for line in lines if line.startswith("adaexplore: ")]
    assert len(said) == len(wanted)
    assert all(words in line for words, line in zip(wanted, said, strict=True))


def test_check_reports_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set"
    main(["synth", *OFFLINE, "--count", "3", "--out", str(folder)])
    capsys.readouterr()
    report = tmp_path / "report.json"
    assert main(["synth", *OFFLINE, "--check", str(folder), "--report", str(report), "--json"]) == 0
    facts = json.loads(report.read_text())
    assert facts == json.loads(capsys.readouterr().out)
    assert (facts["tasks"], facts["valid"], facts["invalid"], facts["duplicates"]) == (3, 3, {}, {})
    (folder / "4.py").write_text((folder / "2.py").read_text())
    (folder / "5.py").write_text("x = 1\n")
    assert main(["synth", *OFFLINE, "--check", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "4 of 5 problems are usable" in said
    assert "1 duplicate" in said
    assert "5.py: no problem module" in said


def test_killed_synthesis_continues_to_the_same_set(tmp_path: Path) -> None:
    def command(name: str) -> list[str]:
        rest = ["--count", "20", "--out", str(tmp_path / name)]
        return [sys.executable, "-m", "adaexplore", "synth", *OFFLINE, *rest]

    subprocess.run(command("whole"), cwd=ROOT, check=True, capture_output=True, timeout=120)
    rng = random.Random(7)
    killed = 0
    for _ in range(4):
        process = subprocess.Popen(
            command("torn"), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        journal = tmp_path / "torn" / ".synth" / "attempts.jsonl"
        before = journal.stat().st_size if journal.exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.stat().st_size > before + rng.randint(1, 6000):
                break
            time.sleep(0.001)
        if process.poll() is None:
            killed += 1
        process.kill()
        process.wait()
    assert killed >= 2
    ended = subprocess.run(command("torn"), cwd=ROOT, check=True, capture_output=True, text=True, timeout=120)
    assert "20 of 20 problems" in ended.stdout
    assert contents(tmp_path / "torn") == contents(tmp_path / "whole")
    attempts = [
        json.loads(line)["attempt"]
        for line in (tmp_path / "torn" / "manifest.jsonl").read_text().splitlines()
    ]
    assert attempts == sorted(set(attempts))


def test_invalid_python_or_text_is_unusable_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", *OFFLINE, "--count", "1", "--out", str(tmp_path)]) == 0
    (tmp_path / "2.py").write_text("class Model(:\n")
    (tmp_path / "3.py").write_bytes((tmp_path / "1.py").read_bytes() + b"# \xff\n")
    capsys.readouterr()
    assert main(["synth", *OFFLINE, "--check", str(tmp_path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["tasks"], report["valid"], set(report["invalid"])) == (3, 1, {"2.py", "3.py"})


def test_invalid_catalogue_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.json").write_text("[]")
    chosen = ["--catalogue", str(tmp_path / "list.json"), "--out", str(tmp_path / "set")]
    assert main(["synth", *OFFLINE, *chosen]) == 2
    assert "cannot read the catalogue" in capsys.readouterr().err
