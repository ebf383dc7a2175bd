"""Output of every command in a pipe of 80 columns, ASCII, without colours."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from adaexplore.cli.main import COMMANDS, main
from adaexplore.core.judging.profile import KernelProfile, Profile
from tests.judge_server import PASSED, Answer, JudgeServer

ROOT = Path(__file__).parents[2]
PROBLEM = str(ROOT / "datasets/quickstart/level1/2_row_sum.py")
ONE = ("--set", "test_list_path=null", "--set", "level=1", "--set", "problem_id=2")
CONFIG = ("--config", str(ROOT / "config/quickstart.yaml"), *ONE)
DUMMY = ("--set", "dummy=true", "--set", "total_steps=3")
OFFLINE = ("--set", "server_type=offline")
LONG = "a reason that is much longer than the terminal is wide, as those of compilers usually are, " * 3
OWN = KernelProfile("a_kernel_with_quite_a_long_name", 2, 30.5, 0.9, True, 64, 3, 1024, 4, 512, 0.5)
PROFILE = Profile((OWN, KernelProfile("fill", 1, 3.0, 0.1)), 33.5, 40.0, 1000, 1e9, 0.4, "memory", "H200")

TYPED: dict[str, tuple[tuple[str, ...], int]] = {
    "run": (("run", *CONFIG, *DUMMY, "--set", "save_path=NEW"), 0),
    "run one": (
        ("run", "--task", PROBLEM, *DUMMY, "--set", "save_path=NEW", "--set", "server_type=offline"),
        0,
    ),
    "run, estimated": (("run", *CONFIG, "--dry-run"), 0),
    "run, forked": (("run", "--fork", "RUN", "--at", "2", "--set", "save_path=NEW"), 0),
    "replay": (("replay", "RUN", "--out", "NEW"), 0),
    "stats": (("stats", "RUN"), 0),
    "stats of three": (("stats", "RUN", "RUN", "RUN"), 0),
    "show": (("show", "RUN"), 0),
    "show task": (("show", "RUN", "1_2"), 0),
    "show step": (("show", "RUN", "1_2", "3"), 0),
    "eval": (("eval", "KERNEL", "--task", PROBLEM, "--judge", "JUDGE"), 0),
    "eval of two": (("eval", "KERNEL", "KERNEL", "--task", PROBLEM, "--judge", "JUDGE"), 0),
    "profile": (("profile", "KERNEL", "--task", PROBLEM, "--judge", "JOBS"), 0),
    "lint": (("lint", "KERNEL"), 0),
    "re-evaluate": (("re-evaluate", "RUN"), 0),
    "repair": (("repair", "RUN"), 0),
    "synth": (("synth", "--check", "SET", "--set", "dummy=true"), 1),
    "build-memory": (("build-memory", "--runs", "RUN", "--out", "NEW/m.jsonl", "--no-judge", *OFFLINE), 0),
    "doctor": (("doctor", "--judge", "JUDGE"), 0),
    "doctor alone": (("doctor", "--judge", "http://127.0.0.1:9"), 0),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "Übung-漢"
    assert main(["run", *CONFIG, *DUMMY, "--set", f"save_path={folder}"]) == 0
    return folder


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[str, str]]:
    flag = {"id": "no_own_kernel", "severity": "suspect", "evidence": LONG}
    metadata = {
        "status": "passed",
        "tier": "tf32",
        "integrity": ["no_own_kernel"],
        "integrity_evidence": [flag],
    }
    report = {"status": "passed", "profile": asdict(PROFILE), "message": ""}

    def jobs(method: str, _path: str, _body: dict[str, object], _key: str | None) -> Answer:
        if method == "POST":
            return 202, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "profile", "state": "done", "report": report}, {}

    passed = {**PASSED, "metadata": metadata}
    with JudgeServer(lambda _path, _body: (200, passed, {})) as one, JudgeServer(jobs=jobs) as two:
        yield {"JUDGE": one.url, "JOBS": two.url}


class Pipe(io.TextIOWrapper):
    """Standard output or error of a process with piped output and locale C."""

    def __init__(self, errors: str) -> None:
        self.held = io.BytesIO()
        super().__init__(self.held, encoding="ascii", errors=errors)

    def text(self) -> str:
        self.flush()
        return self.held.getvalue().decode("ascii")


def typed(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    out, err = Pipe("strict"), Pipe("backslashreplace")
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    try:
        code = main(words)
    except SystemExit as ended:
        code = int(str(ended.code))
    finally:
        monkeypatch.undo()
    return code, out.text(), err.text()


def too_long(line: str) -> bool:
    """Return whether a line has over 80 characters, unless a single word, such as a path, makes it long."""
    words = [word for word in line.split() if len(word) < 40]
    return len(line) > 80 and len(" ".join(words)) > 40


def is_neat(printed: str) -> None:
    assert "Traceback" not in printed
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", printed)


@pytest.mark.parametrize("name", TYPED)
def test_a_command_fits(
    name: str, recorded: Path, judges: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / recorded.name
    shutil.copytree(recorded, run)
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n")
    problems = tmp_path / "set"
    problems.mkdir()
    shutil.copy(PROBLEM, problems / "1.py")
    (problems / "2.py").write_text("x = 1\n")
    names = {
        "SET": str(problems),
        "RUN": str(run),
        "NEW": str(tmp_path / "new"),
        "KERNEL": str(kernel),
        **judges,
    }
    words, expected = TYPED[name]
    given = tuple(names.get(word, word) for word in words)
    given = tuple(word.replace("NEW", names["NEW"]) for word in given)
    code, out, err = typed(monkeypatch, given)
    assert code == expected, err
    is_neat(out)
    is_neat(err)
    code_lines = {line for path in run.rglob("*.py") for line in path.read_text().splitlines()}
    prose = [line for line in out.splitlines() if not {line, line[1:]} & code_lines]
    assert [line for line in prose if too_long(line)] == []
    assert [line for line in err.splitlines() if "%" in line and len(line) > 80] == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = typed(monkeypatch, (*([command] if command else []), "--help"))
    assert (code, err) == (0, "")
    is_neat(out)
    assert max(map(len, out.splitlines())) <= 80
