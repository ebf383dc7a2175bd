"""Hostile invocations: each ends with its exit code and one line per mistake, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from tests.judge_server import Answer, JudgeServer
from tests.model_server import Fail, ModelServer, Raw

ROOT = Path(__file__).parents[2]
PROBLEM = str(ROOT / "datasets/quickstart/level1/2_row_sum.py")
OFFLINE = ("--set", "dummy=true", "--set", "server_type=offline", "--set", "total_steps=1")
KB = (*OFFLINE, "--set", f"problem_root={ROOT / 'datasets/quickstart'}")
DRY = (*OFFLINE, "--set", "save_path=OUT")
RUN = ("run", "--task", PROBLEM, *OFFLINE, "--set", "save_path=OUT")
FILES: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "latin.py": "x = 'ü'\n".encode("latin-1"),
    "nul.py": b"x = 1\0\n",
    "syntax.py": b"def f(:\n",
    "deep.py": b"x = " + b"(" * 5000 + b")" * 5000,
    "deep_minus.py": b"x = " + b"-" * 20000 + b"1\n",
    "huge_line.py": b"x = '" + b"a" * 2_000_000 + b"'\n",
    "many_lines.py": b"x = 1\n" * 100_000,
    "returns.py": b"class ModelNew:\r    pass\r",
    "surrogate.py": b"class ModelNew:\n    x = '\\ud800'\n",
    "nothing.py": b"x = 1\n",
    "no_inputs.py": b"class Model:\n    pass\n",
    "kernel.py": b"class ModelNew: ...\n",
    "syntax.yaml": b"seed: [1,\n",
    "tab.yaml": b"seed: 1\n\tlevel: 2\n",
    "list.yaml": b"- 1\n- 2\n",
    "scalar.yaml": b"hello\n",
    "twice.yaml": b"seed: 1\nseed: 2\n",
    "unknown.yaml": b"sed: 1\n",
    "anchors.yaml": b"a: &a [1]\nb: &b [*a,*a]\n",
    "tag.yaml": b"seed: !!python/object/apply:os.system ['true']\n",
    "number_key.yaml": b"1: 2\n",
    "null_key.yaml": b"null: 2\n",
    "list_key.yaml": b"[1, 2]: 3\n",
    "documents.yaml": b"seed: 1\n---\nseed: 2\n",
    "deep.yaml": b"seed: " + b"[" * 5000,
    "utf16.yaml": "seed: 1\n".encode("utf-16"),
    "nul.yaml": b'save_path: "a\\0b"\n',
    "control.yaml": b"seed: \x01\n",
    "seven.yaml": b"a: 1\nb: 2\nlevel: x\nseed: y\np_large: 7\nnum_processes: 0\ntier: best\n",
    "bad_list.txt": b"level2\n1 5-\n",
    "binary_list.txt": bytes(range(256)) * 20,
    "no_list.txt": b"# nothing\n",
    "memory.jsonl": b"{\n",
    "memory.txt": bytes(range(128, 256)),
    "run/1_1/task_failure.json": b"{",
    "newer/environment.json": b'{"format": 99}',
    "newer/1_1/step_1_log.json": b"{}",
    "nested/environment.json": b"[" * 100_000,
    "nested/1_1/step_1_log.json": b"{}",
    "replies/1_1/step_0_log.json": b"{}",
    "traces/2_1.json": b'{"steps": []}',
}


@dataclass(frozen=True)
class Case:
    """One command; ``PLACE`` and ``OUT`` in its words are folders, ``JUDGE`` and ``MODEL`` addresses."""

    words: tuple[str, ...]
    code: int
    said: str
    lines: int = 1
    variables: dict[str, str] = field(default_factory=dict)


def sets(*settings: str) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("--set", setting))


def configured(name: str, code: int, said: str, lines: int = 1) -> Case:
    return Case((*RUN, "--config", f"PLACE/{name}"), code, said, lines)


def setting(text: str, said: str, lines: int = 1) -> Case:
    return Case((*RUN, "--set", text), 2, said, lines)


CONFIG = [
    configured("none.yaml", 2, "no configuration file"),
    configured("syntax.yaml", 2, "syntax.yaml:2: "),
    configured("tab.yaml", 2, "tab.yaml:2: "),
    configured("list.yaml", 2, "found a list"),
    configured("scalar.yaml", 2, "found a single value"),
    configured("twice.yaml", 2, "key 'seed' is given twice"),
    configured("unknown.yaml", 2, "the nearest known one is 'seed'"),
    configured("anchors.yaml", 2, "unknown key", 2),
    configured("tag.yaml", 2, "could not determine a constructor"),
    configured("number_key.yaml", 2, "expected a name as key"),
    configured("null_key.yaml", 2, "expected a name as key"),
    configured("list_key.yaml", 2, "list_key.yaml"),
    configured("documents.yaml", 2, "documents.yaml"),
    configured("deep.yaml", 2, "deep.yaml"),
    configured("utf16.yaml", 2, "is not UTF-8 text"),
    configured("binary", 2, "is not UTF-8 text"),
    configured("nul.yaml", 2, "NUL character"),
    configured("control.yaml", 2, "control.yaml"),
    configured("seven.yaml", 2, "seven.yaml:7: tier", 7),
    configured("run", 2, "Is a directory"),
    setting("total_steps", "expected key=value"),
    setting("=3", "expected key=value"),
    setting("total_steps=", "total_steps=: expected a value after ="),
    setting("total_steps=-1", "total_steps: expected a number"),
    setting("total_steps=1e400", "total_steps: expected"),
    setting("total_steps=true", "total_steps: expected an integer"),
    setting("total_steps=[", "--set total_steps=["),
    setting("p_large=.nan", "p_large: expected"),
    setting("p_large=2", "p_large: expected a number"),
    setting("agent_type=MCST", "'MCTS'"),
    setting("gpu_ids=[0,0]", "names a GPU twice"),
    setting("gpu_ids=[-1]", "gpu_ids"),
    setting("num_processes=0", "num_processes"),
    setting("server_type=command", "command: missing"),
    setting("server_type=replay", "replay_path: missing"),
    setting("server_type=gpt", "server_type: expected one of"),
    setting("dtype_str=fp64", "dtype_str: expected one of"),
    setting("seed=1.5", "seed: expected an integer"),
    setting("suffix=7", "put it in quotes"),
    Case(("run", *OFFLINE, *sets("test_source=MLSYS", "problem_root=PLACE/none")), 2, "no MLSYS tasks in"),
    setting("use_remote_eval=maybe", "use_remote_eval: expected true or false"),
    Case((*RUN, "--judge", "localhost:12017"), 2, "expected an address that starts with http://"),
    Case((*RUN, "--judge", "http://:0"), 2, "expected an address that starts with http://"),
    Case(("run", *KB, *sets("test_list_path=PLACE/bad_list.txt")), 2, "bad_list.txt:1: ", 2),
    Case(("run", *KB, *sets("test_list_path=PLACE/no_list.txt")), 2, "selects nothing"),
    Case(("run", *KB, *sets("test_list_path=PLACE/binary_list.txt")), 2, "is not UTF-8 text"),
    Case(("run", *OFFLINE, *sets("problem_root=PLACE/none", "level=1")), 2, "none"),
]

DISK = [
    Case((*RUN, *sets("save_path=PLACE/empty")), 5, "cannot"),
    Case((*RUN, *sets("save_path=PLACE/empty/below")), 5, "cannot"),
    Case((*RUN, *sets("save_path=/proc/none/run")), 5, "cannot"),
    Case((*RUN, *sets("save_path=/dev/null/run")), 5, "cannot"),
    Case((*RUN, *sets(f"save_path={'x' * 300}")), 5, "File name too long"),
    Case((*RUN, *sets("save_path=~nobody-here/run")), 2, "starts with an unknown home directory"),
    Case((*RUN, *sets("save_path=PLACE/loop/run")), 5, "loop"),
    Case((*RUN, *sets("save_path=PLACE/newer")), 2, "upgrade adaexplore"),
    Case((*RUN, *sets("seed_kernel=PLACE/binary")), 2, "binary"),
    Case((*RUN, *sets("seed_kernel=PLACE/none.py")), 2, "none.py"),
    Case((*RUN, *sets("resume_from=PLACE/none")), 2, "none"),
    Case(("stats", "PLACE/none"), 2, "is not a folder"),
    Case(("stats", "PLACE/empty"), 2, "is not a folder"),
    Case(("stats", "PLACE"), 2, "PLACE"),
    Case(("stats", "PLACE/traces"), 2, "packed traces are for adaexplore view"),
    Case(("show", "PLACE/traces/2_1.json"), 2, "packed traces are for adaexplore view"),
    Case(("stats", "PLACE/run/1_1"), 2, "is one task's folder"),
    Case(("stats", "PLACE/run"), 2, "is damaged"),
    Case(("stats", "PLACE/newer"), 2, "upgrade adaexplore"),
    Case(("stats", "PLACE/nested"), 2, "nested"),
    Case(("stats", "PLACE/loop"), 2, "loop"),
    Case(("stats", "x" * 300), 5, "File name too long"),
    Case(("stats", "PLACE/newer", "--step", "0"), 2, "--step must be at least 1"),
    Case(("stats", "PLACE/newer", "--step", "many"), 2, "invalid int value"),
    Case(("stats", "PLACE/run", "PLACE/run", "--best-prefix", "OUT"), 2, "one run at a time"),
    Case(("show", "PLACE/none"), 2, "is not a folder"),
    Case(("show", "PLACE/run", "9_9"), 2, "no task '9_9'"),
    Case(("show", "PLACE/run", "1_1", "last"), 2, "invalid int value"),
    Case(("show", "PLACE/run"), 2, "is damaged"),
    Case(("replay", "PLACE/none", "--out", "OUT"), 2, "none"),
    Case(("replay", "PLACE/replies", "--out", "PLACE/replies"), 2, "is the recorded run itself"),
    Case(("run", "--fork", "PLACE/none", "--at", "1", *OFFLINE), 2, "none"),
    Case(("run", "--fork", "PLACE/run", *OFFLINE), 2, "--fork RUN and --at STEP go together"),
    Case(("re-evaluate", "PLACE/none"), 2, "is not a folder"),
    Case(("repair", "PLACE/none"), 2, "is not a folder"),
    Case(("build-memory", "--runs", "PLACE/none", "--out", "OUT/m.jsonl"), 2, "none"),
    Case(("build-memory", "--out", "OUT/m.jsonl"), 2, "name the input"),
    Case(("build-memory", "--verify", "PLACE/memory.txt"), 2, "holds no proofs"),
    Case(("synth", "--count", "0", "--out", "OUT"), 2, "expected a number from 1"),
    Case(("synth",), 2, "synth needs --out DIR"),
]

CANDIDATE = [
    Case(("run", "--task", f"PLACE/{name}", *OFFLINE, *sets("save_path=OUT")), 2, name)
    for name in (
        "empty", "binary", "latin.py", "nul.py", "syntax.py", "deep.py", "deep_minus.py", "nothing.py",
        "no_inputs.py", "none.py", "run", "loop",
    )
] + [
    Case((*words, *(DRY if words[0] == "run" else ())), 2, "is no regular file")
    for words in (
        ("run", "--task", "/dev/zero"),
        ("run", "--task", "PLACE/pipe"),
        ("run", *sets(f"problem_root={ROOT / 'datasets/quickstart'}", "test_list_path=PLACE/pipe")),
        ("run", "--task", PROBLEM, "--config", "/dev/zero"),
        ("run", "--task", PROBLEM, *sets("seed_kernel=PLACE/seeds")),
        ("run", "--task", PROBLEM, *sets("general_memory_path=/dev/zero")),
        ("eval", "/dev/zero", "--task", PROBLEM),
        ("eval", "PLACE/kernel.py", "--task", "PLACE/pipe"),
        ("lint", "PLACE/pipe"),
        ("lint", "PLACE/kernel.py", "--task", "/dev/zero"),
        ("lint", "PLACE/kernel.py", "--triton", "/dev/zero"),
        ("compile-check", "/dev/zero", "--task", PROBLEM),
        ("profile", "PLACE/pipe", "--task", PROBLEM),
    )
] + [
    Case(("build-memory", "--traces", "PLACE/pipes", "--out", "OUT/m.jsonl"), 2, "holds no recorded trees"),
    Case(("lint", "PLACE/none.py"), 2, "none.py"),
    Case(("lint", "PLACE/run"), 2, "Is a directory"),
    Case(("lint", "PLACE/loop"), 2, "loop"),
    Case(("lint", "--triton", "one", "PLACE/kernel.py"), 2, "no judge's environment one"),
    Case(("eval", "PLACE/none.py", "--task", PROBLEM), 2, "none.py"),
    Case(("eval", "PLACE/binary", "--task", PROBLEM), 2, "is not UTF-8 text"),
    Case(("eval", "PLACE/kernel.py", "--task", "PLACE/nothing.py"), 2, "nothing.py"),
    Case(("eval", "a.py", "b.py", "c.py", "--task", PROBLEM), 2, "eval takes one kernel, or two"),
    Case(("compile-check", "PLACE/latin.py", "--task", PROBLEM), 2, "is not UTF-8 text"),
    Case(("compile-check", "PLACE/kernel.py", "--task", PROBLEM, "--target", "h100"), 2, "sm_90"),
    Case(("profile", "PLACE/none.py", "--task", PROBLEM), 2, "none.py"),
]  # fmt: skip

FOUND_BY_LINT = (
    "empty", "binary", "latin.py", "nul.py", "syntax.py", "deep.py", "deep_minus.py", "huge_line.py",
    "many_lines.py", "nothing.py",
)  # fmt: skip

OPENAI = sets("server_type=openai", "model_name=m", "base_url=MODEL")
MODEL = [
    Case((*RUN, *sets("server_type=openai")), 3, "OPENAI_API_KEY"),
    Case((*RUN, *sets("server_type=claude")), 3, "ANTHROPIC_API_KEY"),
    Case((*RUN, *sets("server_type=azure")), 3, "AZURE"),
    Case((*RUN, *sets("server_type=openai", "base_url=ftp://x")), 2, "base_url"),
    Case((*RUN, *sets("server_type=openai", "base_url=")), 2, "base_url=: expected a value after ="),
    Case((*RUN, *sets("server_type=command", "command=/none/program")), 3, "/none/program"),
    Case((*RUN, *sets("server_type=command", "command='\"'")), 2, "command"),
    Case((*RUN, *sets("server_type=command", "command=cat", "max_cost_usd=1")), 2, "max_cost_usd"),
    Case((*RUN, *sets("server_type=command", "command='sh -c \"exit 3\"'")), 3, "3"),
    Case((*RUN, *sets("server_type=replay", "replay_path=PLACE/none")), 2, "none"),
    Case((*RUN, *sets("server_type=replay", "replay_path=PLACE/replies")), 2, "replies"),
    Case((*RUN, *OPENAI, *sets("max_cost_usd=1")), 2, "price"),
]

ANSWERS: dict[str, tuple[Fail | Raw, str]] = {
    "unauthorised": (Fail(401, "wrong key"), "wrong key"),
    "forbidden": (Fail(403, "not yours"), "not yours"),
    "no such model": (Fail(404, "no such model"), "no such model"),
    "malformed request": (Fail(400, "bad parameter"), "bad parameter"),
    "no money": (Fail(429, "quota", code="insufficient_quota"), "quota"),
    "two lines": (Fail(400, "first\nsecond"), "first"),
    "escape codes": (Fail(400, "\x1b[31mred"), "red"),
}

JUDGES: dict[str, Answer] = {
    "html": (200, "<html>", {}),
    "empty object": (200, "{}", {}),
    "list": (200, "[1]", {}),
    "not found": (404, {"detail": "no"}, {}),
    "wants a token": (401, {"detail": "This judge needs a bearer token"}, {}),
    "too large": (413, {"detail": "The body is larger than 1 bytes"}, {}),
    "not implemented": (501, {"detail": "not here"}, {}),
    "own fault": (200, {"success": False, "error": "zygote died", "metadata": {}}, {}),
}


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write invalid files; no command may change them."""
    folder = tmp_path_factory.mktemp("place")
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "loop").symlink_to(folder / "loop")
    for name in ("pipe", "pipes/2_1.json", "seeds/0_2_row_sum/a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
    return folder


@pytest.fixture(autouse=True)
def _nothing_is_lost(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    for name in ("KERNELBENCH_ROOT", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    for name, content in FILES.items():
        assert (place / name).read_bytes() == content


def ended(words: tuple[str, ...], place: Path, **addresses: str) -> int:
    names = {"PLACE": str(place), "OUT": str(Path.cwd() / "out"), **addresses}
    given = list(words)
    for name, value in names.items():
        given = [word.replace(name, value) for word in given]
    try:
        return main(given)
    except SystemExit as exit_:
        return int(str(exit_.code))


def is_told(printed: str, said: str, lines: int = 1) -> None:
    told = [line for line in printed.splitlines() if not line.startswith(("INFO ", "WARNING "))]
    assert "Traceback" not in printed
    assert "\x1b" not in printed
    assert len(told) == lines, printed
    assert all(line.startswith("adaexplore: ") for line in told)
    assert any(said in line for line in told), printed


AREAS = {"config": CONFIG, "disk": DISK, "candidate": CANDIDATE, "model": MODEL}
CASES = {f"{area}-{number}": case for area, cases in AREAS.items() for number, case in enumerate(cases)}


@pytest.mark.parametrize("name", CASES)
def test_mistake_prints_one_line_with_exit_code(
    name: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    code = ended(case.words, place, MODEL="http://127.0.0.1:9")
    printed = capfd.readouterr()
    is_told(printed.err, case.said.replace("PLACE", str(place)), case.lines)
    assert (code, printed.out) == (case.code, "")


@pytest.mark.parametrize("name", FOUND_BY_LINT)
def test_file_without_kernel_is_a_finding(name: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(("lint", "--strict", f"PLACE/{name}"), place) == 1
    printed = capfd.readouterr()
    assert printed.err == ""
    assert all(line.startswith(f"{place}/{name}:") for line in printed.out.splitlines())
    assert len(printed.out) < 2000


@pytest.mark.parametrize("name", ANSWERS)
def test_refusing_model_prints_one_line(
    name: str, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    answer, said = ANSWERS[name]
    with ModelServer() as server:
        server.script(*[answer] * 20)
        assert ended((*RUN, *OPENAI), place, MODEL=server.openai_url) == 3
    printed = capfd.readouterr()
    assert "very-secret" not in printed.err
    is_told("\n".join(line for line in printed.err.splitlines() if "%" not in line), said)


@pytest.mark.parametrize("name", JUDGES)
def test_invalid_judge_answer_prints_one_line(
    name: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer(lambda _path, _body: JUDGES[name]) as server:
        words = ("eval", "PLACE/kernel.py", "--task", PROBLEM, "--judge", "JUDGE")
        assert ended(words, place, JUDGE=server.url) == 4
    printed = capfd.readouterr()
    assert printed.out == ""
    is_told(printed.err, "")


TERMINALS: dict[str, dict[str, str]] = {
    "one column": {"COLUMNS": "1"},
    "no column": {"COLUMNS": "0"},
    "less than none": {"COLUMNS": "-5"},
    "no number": {"COLUMNS": "wide"},
    "very wide": {"COLUMNS": "100000"},
    "dumb": {"TERM": "dumb", "COLUMNS": "20"},
    "unknown": {"TERM": "nonsense", "NO_COLOR": "1"},
    "no home": {"HOME": "/none", "XDG_CACHE_HOME": "/none"},
}


@pytest.mark.parametrize("name", TERMINALS)
def test_any_terminal_shows_a_run(
    name: str, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in TERMINALS[name].items():
        monkeypatch.setenv(variable, value)
    assert ended(RUN, place) == 0
    for words in (("stats", "OUT"), ("stats", "OUT", "OUT"), ("show", "OUT"), ("doctor",), ("--help",)):
        assert ended(words, place) == 0
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    assert "\x1b" not in printed.out + printed.err
    assert "\r" not in printed.out + printed.err


def test_the_table_holds_120_invocations() -> None:
    count = len(CASES) + len(FOUND_BY_LINT) + len(ANSWERS) + len(JUDGES) + len(TERMINALS)
    assert count >= 120
