"""Every way in which a task cannot be loaded: one line with task, file, line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.cli.main import main

GOOD = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
WORKLOADS = "class Model: ...\ndef get_init_inputs(): ...\n"
SMALL = '{"name": "small", "get_inputs": small}'


def returns(value: str) -> str:
    return f"{WORKLOADS}def get_workloads():\n    return {value}\n"


FILES = {
    "empty": (b"", 1, "the file is empty; a problem defines Model"),
    "blank": (b"\n  \n", 1, "the file is empty"),
    "syntax": (b"x = 1\ny = (\n", 2, "not valid Python: '(' was never closed; correct this line"),
    "indentation": (b"x = 1\n  y = 2\n", 2, "not valid Python: unexpected indent; correct"),
    "null byte": (b"x = 1\na\x00b\n", 2, "not valid Python"),
    "nested too deeply": (b"x = " + b"(" * 300 + b")" * 300, 1, "not valid Python"),
    "latin-1": (GOOD.encode() + b"# caf\xe9\n", 4, "is not UTF-8 text"),
    "utf-16": (GOOD.encode("utf-16"), 1, "save it as UTF-8"),
    "a kernel": (GOOD.replace("Model", "ModelNew").encode(), 1, "(did you mean ModelNew of this line?)"),
    "no model": (GOOD.replace("Model", "Other").encode(), 1, "add the line 'Model = Other'"),
    "no inputs": (GOOD.replace("get_inputs", "inputs").encode(), 2, "define get_inputs (did you mean"),
    "no init inputs": (GOOD.replace("get_init_inputs", "more").encode(), 1, "define get_init_inputs;"),
    "inputs with arguments": (GOOD.replace("get_inputs()", "get_inputs(n)").encode(), 2, "without arguments"),
    "workloads with arguments": (
        (GOOD + "def get_workloads(*, n): x = n").encode(), 4, "get_workloads is called without arguments",
    ),
    "workloads of nothing": ((GOOD + "def get_workloads(): x = 1").encode(), 4, "returns nothing"),
    "empty workloads": (returns("[]").encode(), 4, "returns no workload; return a list such as"),
    "workloads in a dict": (returns('{"small": small}').encode(), 4, "does not return a list"),
    "workload is text": (returns('["small"]').encode(), 4, "a workload is not a dict"),
    "workload without a name": (returns('[{"get_inputs": small}]').encode(), 4, "has no 'name'"),
    "workload without inputs": (returns('[{"name": "small"}]').encode(), 4, "has no 'get_inputs'"),
    "workload with another key": (
        returns('[{"name": "a", "get_inputs": b, "wight": 2}]').encode(), 4, "has an unknown key 'wight'",
    ),
    "workload with a number for a name": (
        returns('[{"name": 1, "get_inputs": b}]').encode(), 4, "has a name that is not text",
    ),
    "two workloads of one name": (returns(f"[{SMALL}, {SMALL}]").encode(), 4, "'small' of another"),
    "workload with inputs in place of a function": (
        returns('[{"name": "a", "get_inputs": [1]}]').encode(), 4, "get_inputs that is not a function",
    ),
    "workload of weight 0": (
        returns('[{"name": "a", "get_inputs": b, "weight": 0}]').encode(), 4, "not a positive number",
    ),
    "workload of negative weight": (
        returns('[{"name": "a", "get_inputs": b, "weight": -1}]').encode(), 4, "not a positive number",
    ),
}  # fmt: skip


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a run without a model and without a judge prints."""
    offline = ["--set", "server_type=offline", "--set", "dummy=true", "--set", "save_path=out"]
    assert main(["run", *arguments, *offline]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert printed.out == ""
    assert "Traceback" not in line
    return line


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KERNELBENCH_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("by", ["file", "list"])
def test_bad_problem_file_is_one_line(
    name: str, by: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, number, text = FILES[name]
    path = folder / "bench/level1/7_sum.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    one = ["--task", str(path)]
    chosen = ["--set", f"problem_root={folder / 'bench'}", "--set", "problem_id=7"]
    line = refused(one if by == "file" else chosen, capsys)
    assert line.startswith(f"adaexplore: task {'0_7_sum' if by == 'file' else '1_7'}: ")
    assert str(path) in line
    assert f"line {number}" in line
    assert text in line


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("none.py", "no problem file none.py; check the path"),
        ("folder.py", "no problems in the folder folder.py; a problem file defines Model and get_inputs"),
        ("loop.py", "cannot read problem file loop.py: Too many levels of symbolic links"),
        ("pipe/x.py", "cannot read problem file pipe/x.py: Not a directory"),
    ],
)
def test_missing_problem_file_is_one_line(
    place: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "folder.py").mkdir()
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "pipe").write_text("")
    assert text in refused(["--task", place], capsys)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("1\n1 8\n", "list.txt:2: no problem 8 in level 1 of bench; it has 7"),
        ("3\n", "list.txt:1: no level 3 in bench; it has level 1"),
        ("one\n", "list.txt:1: expected 'LEVEL' or 'LEVEL IDS', got 'one'"),
        ("1 7-x\n", "list.txt:1: expected ids such as 5 or 1-50,77, got '7-x'"),
        ("1 9-7\n", "list.txt:1: range 9-7 runs backwards"),
        ("# 1\n", "test list list.txt selects nothing; write lines such as"),
    ],
)
def test_wrong_line_of_a_list_is_one_line(
    lines: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "bench/level1/7_sum.py"
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    (folder / "list.txt").write_text(lines)
    chosen = ["--set", "problem_root=bench", "--set", "test_list_path=list.txt"]
    assert text in refused(chosen, capsys)


@pytest.mark.parametrize(
    "source",
    [
        returns(f"[{SMALL}]"),
        returns("[make(n) for n in (1, 2)]"),
        returns('[{"name": f"m{m}", "get_inputs": inputs_of(m), "weight": 1 / m} for m in SIZES]'),
        returns('[{"name": "a", "get_inputs": lambda: [1], "weight": 2}, {**BASE}]'),
        f"{WORKLOADS}def get_workloads():\n    def inner():\n        return 1\n    yield inner\n",
        f"{WORKLOADS}get_workloads = make\n",
        GOOD.replace("get_inputs()", "get_inputs(n=3, *rest, **more)"),
    ],
)
def test_faults_visible_only_at_runtime_are_accepted(source: str, folder: Path) -> None:
    (folder / "x.py").write_text(source)
    arguments = ["--task", "x.py", "--set", "server_type=offline", "--set", "dummy=true", "--dry-run"]
    assert main(["run", *arguments]) == 0
