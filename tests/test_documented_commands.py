"""Every shell line of README.md and docs/*.md works, on a CPU judge and with stubs for models."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import httpx
import pytest

from adaexplore.cli.main import COMMANDS, main
from adaexplore.records.run_records import RunRecords
from adaexplore.tasks.datasets import checksum
from tests.judge_server import JudgeServer
from tests.model_server import ModelServer
from tests.online_judge.live import judge_environment, wait_until
from tests.online_judge.sources import PASSING, REFERENCE
from tests.online_judge.test_benchmarks import DEFINITION, GOLD, TEST, WORKLOAD
from tests.skill_memory.test_sources import STEPS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

NOT_RUN = {
    r"make ": "make",
    r"pip install ": "installation",
    r"\. \.venv/bin/activate": "installation",
    r"adaexplore datasets download kernelbench *#": "network",
    r"ray start ": "many machines",
    r"adaexplore judge .*--ray": "many machines",
    r"adaexplore .*--task softmax.py": "test_workloads.py runs that page's example",
}
"""Lines that no test executes, with the reason."""

SERVERS = (r"uvicorn ", r"bash online_judge/start_server.sh", r"adaexplore view(?!.*--export)")
"""Lines that serve until they are stopped; each must answer. ``adaexplore judge`` is the shared judge."""

ADDED = {
    r"run(?!.*(--dry-run|--fork))": "--steps 1 --set num_processes=1 --judge JUDGE",
    r"run(?!.*(--dry-run|--fork|--task|openai.yaml|test_source=TB))": "--set test_list_path=one.txt",
    r"run.*--fork": "--steps 12 --judge JUDGE",
    r"run.*memory_update": "--out outputs/learning",
    r"run.*SYN-v1": "--set general_memory_path=adapted.txt",
    r"run.*test_source=TB[GT]": "--offline --out outputs/tritonbench",
    r"run.*test_source=FIT": "--offline --out outputs/flashinfer",
    r"compare": "--seeds 1 --set dummy=true --steps 1",
    r"(doctor|eval|profile|compile-check|re-evaluate|baseline|synth|build-memory)": "--judge JUDGE",
    r"baseline": "--set test_list_path=one.txt --out timing",
    r"datasets": "--catalogue catalogue.yaml --into downloads",
    r"synth --(count|offline)": "--count 1 --set num_processes=1",
    r"synth --offline": "--out datasets/KernelBench_syn/offline",
    r"build-memory.*--prove": "--prove 1",
    r"build-memory.*--(runs|traces)": "--offline",
    r"view(?!.*--export)": "--port 0",
}
"""What ``adaexplore`` lines get in addition, so that they end soon and ask the shared judge."""

FAILS = {
    "adaexplore baseline": 2,  # nothing is timed without a GPU
}
"""Lines that cannot succeed on this machine, with their exit code."""


KEY = "a-test-key"
KERNEL = PASSING.replace("64", "4096")  # few programs, for the interpreter
MADE = REFERENCE.replace("randn(8, 16)", "randn(1024, 64)").replace("[16]", "[64]")  # a synthesised problem
OFFLINE = "preset: default\nserver_type: offline\nproblem_root: datasets/quickstart\n"


@dataclass(frozen=True)
class Line:
    page: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def shell_blocks(page: Path) -> Iterator[tuple[str, int, str]]:
    """Yield language, first line's number and text of each code block."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield found[1], text.count("\n", 0, found.start(2)) + 1, found[2]


def lines_of(page: Path) -> Iterator[Line]:
    """Yield the commands of a page; a loop, or a block that sets a variable, is one command."""
    for language, first, text in shell_blocks(page):
        if language != "bash":
            continue
        if re.search(r"^(while|for|if) |^\w+=\$", text, re.MULTILINE):
            yield Line(page.name, first, text)
            continue
        for found in re.finditer(r"(?:.*\\\n)*.+", text):
            number = first + text.count("\n", 0, found.start())
            yield Line(page.name, number, found[0].replace("\\\n", ""))


LINES = [line for page in PAGES for line in lines_of(page)]
RUN = [line for line in LINES if not any(re.match(kind, line.text) for kind in NOT_RUN)]


def test_commands_stand_in_bash_blocks() -> None:
    commands = re.compile(rf"(\$ )?(adaexplore ({'|'.join(COMMANDS)})|python|pip|make|bash|uvicorn|export) ")
    for page in PAGES:
        for language, first, text in shell_blocks(page):
            hidden = [line for line in text.splitlines() if language != "bash" and commands.match(line)]
            assert not hidden, f"{page.name}:{first}: mark the block as bash"


def test_every_exception_is_needed() -> None:
    for kind in (*NOT_RUN, *SERVERS, *FAILS):
        assert any(re.match(kind, line.text) for line in LINES), kind
    for kind in ADDED:
        assert any(re.match(f"adaexplore {kind}", line.text) for line in LINES), kind


def test_options_in_running_text_exist(capsys: pytest.CaptureFixture[str]) -> None:
    helped: dict[str, str] = {}
    for page in PAGES:
        for span in re.findall(r"`adaexplore ([a-z-]+) ([^`]*)`", page.read_text(encoding="utf-8")):
            command, words = span
            if command not in helped:
                with pytest.raises(SystemExit):
                    main([command, "--help"])
                helped[command] = capsys.readouterr().out
            for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", words):
                assert option in helped[command], f"{page.name}: adaexplore {command} {option}"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the files that the pages assume."""
    place = tmp_path_factory.mktemp("documented")
    answer = f"```python\n{KERNEL}\n```"
    run = ["--set", "dummy=true", "--set", "server_type=offline", "--set", "save_path=outputs/my_run"]
    tolerance = {"max_atol": 0.1, "max_rtol": 0.05, "required_matched_ratio": 1.0}
    texts = {
        "trees/tree.json": json.dumps({"label": "t", "reference_src": "x", "steps": STEPS}),
        "one.txt": "1 1\n",
        "list.txt": "1 1\n",
        "two.txt": "2 17,40\n",
        "my_module.py": REFERENCE,
        "my_problems/relu.py": REFERENCE,
        "problem.py": REFERENCE,
        "kernel.py": KERNEL,
        "other.py": KERNEL,
        "kernels/level1/1.py": KERNEL,
        "plain.yaml": OFFLINE,
        "other.yaml": f"{OFFLINE}p_large: 0.5\n",
        "openai.yaml": "server_type: openai\nsave_path: outputs/openai\n",
        "mine.yaml": "server_type: mailbox\nsave_path: outputs/mine\ntotal_steps: 1\n"
        "use_remote_eval: true\nremote_eval_url: JUDGE\n",
        "adapted.txt": "",
        "agent/reply.md": answer,
        "TritonBench/double.py": f"{GOLD}\n{'#' * 146}\n{TEST}",
        "TritonBench/twice.py": f"{GOLD}\n{'#' * 146}\n{TEST}",
        "TritonBench/softmax.py": f"{GOLD}\n{'#' * 146}\n{TEST}",
        "SOL-ExecBench/examples/double/definition.json": json.dumps(DEFINITION),
        "SOL-ExecBench/examples/double/workload.jsonl": json.dumps(WORKLOAD | {"tolerance": tolerance}),
        "home/KernelBench/level1/1_add.py": REFERENCE,
    }
    for level in (1, 2):
        for number in (1, 17, 40):
            texts[f"datasets/KernelBench/level{level}/{number}_linear.py"] = REFERENCE
    for name, text in texts.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    entry = {
        "title": "KernelBench", "folder": "KernelBench", "repository": "https://example.org/us/bench",
        "revision": "abc123", "parts": {"level1": checksum(place / "home/KernelBench/level1")},
        "licence": "MIT", "citation": "none", "archive": "http://127.0.0.1:1/none.tar.gz",
    }  # fmt: skip
    listed = {"checked": "2026-11-23", "datasets": {"kernelbench": entry}}
    (place / "catalogue.yaml").write_text(json.dumps(listed), encoding="utf-8")
    for folder in ("online_judge", "tool_scripts"):
        (place / folder).symlink_to(ROOT / folder)
    for name, command in {
        "adaexplore": f'exec {sys.executable} -m adaexplore "$@"',
        "python": f'exec {sys.executable} "$@"',
        "uvicorn": f'exec {sys.executable} -m uvicorn "$@"',
        "my-agent": f"cat >/dev/null; cat {place}/agent/reply.md",
        "ollama": f"cat >/dev/null; cat {place}/agent/reply.md",
    }.items():
        script = place / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        steps = ["--set", "total_steps=12", "--set", "test_list_path=two.txt", "--set", "preset=default"]
        assert main(["run", *run, *steps]) == 0
    return place


@contextmanager
def serving(place: Path, command: str, environment: dict[str, str]) -> Iterator[str]:
    """Start a documented server, yield its address, and stop it as ctrl-C does."""
    with NamedTemporaryFile("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=place, env=environment, stdout=log, stderr=log
        )
        try:
            told = Path(log.name)
            address = re.compile(r"http://127\.0\.0\.1:\d+")
            wait_until(lambda: process.poll() is not None or address.search(told.read_text()), 120)
            found = address.search(told.read_text())
            assert found, told.read_text()
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.reply = lambda prompt: f"```python\n{KERNEL if 'ModelNew' in prompt else MADE}\n```"
        yield server


@pytest.fixture(scope="module")
def environment(workplace: Path, model: ModelServer) -> Iterator[dict[str, str]]:
    """Start the documented ``adaexplore judge``; JUDGE is its address, all models are the stub."""
    given = judge_environment(
        PATH=f"{workplace}/bin:{os.environ['PATH']}",
        PYTHONPATH=str(ROOT),
        HOME=str(workplace / "home"),
        XDG_STATE_HOME=str(workplace / "state"),
        OPENAI_API_KEY=KEY,
        ANTHROPIC_API_KEY=KEY,
        AZURE_API_KEY=KEY,
        OPENAI_BASE_URL=model.openai_url,
        ANTHROPIC_BASE_URL=model.url,
        AZURE_OPENAI_ENDPOINT=model.url,
    )
    with serving(workplace, "adaexplore judge --port 0", given) as judge:
        mine = workplace / "mine.yaml"
        mine.write_text(mine.read_text().replace("JUDGE", judge))
        yield given | {"JUDGE": judge}


@pytest.fixture
def at_work(workplace: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in the folder, with the variables."""
    monkeypatch.chdir(workplace)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def extended(line: Line, judge: str) -> str:
    """Return the command with what ends it soon and names the shared judge."""
    command = re.sub(r" {2,}#.*", "", line.text)
    if command.startswith("python -m tool_scripts.judge_benchmark"):
        return f"{command} --judge {judge}"
    if "curl " in command:
        return command.replace("http://127.0.0.1:12017", judge)
    added = [more for kind, more in ADDED.items() if re.match(f"adaexplore {kind}", command)]
    return re.sub(r"\bJUDGE\b", judge, " ".join([command.replace("12017", "0"), *added]))


@pytest.mark.slow
@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize("line", RUN, ids=str)
def test_command_works(line: Line, workplace: Path, environment: dict[str, str]) -> None:
    command = extended(line, environment["JUDGE"])
    if line.text.startswith("adaexplore judge"):
        assert httpx.get(environment["JUDGE"], trust_env=False).status_code == 200
        return
    if any(re.match(kind, line.text) for kind in SERVERS):
        with serving(workplace, command, environment | {"PORT": "0", "JUDGE_STATE": ""}) as url:
            assert httpx.get(url, trust_env=False).status_code == 200
        return
    expected = next((code for kind, code in FAILS.items() if re.match(kind, line.text)), 0)
    if not command.startswith("adaexplore "):
        done = subprocess.run(["bash", "-ec", command], timeout=120, capture_output=True, text=True)
        assert done.returncode == expected, done.stderr
        if "curl " in command:
            assert '"correctness":true' in done.stdout
        return
    words = [os.path.expanduser(word) for word in shlex.split(command)]
    running = RunRecords(Path("outputs/my_run")).lock() if words[1] == "steer" else nullcontext()
    with running:
        assert main(words[1:]) == expected


SETTINGS = [
    text
    for language, _, text in shell_blocks(ROOT / "docs/models.md")
    if language == "yaml" and not re.search(r"mailbox|replay", text)
]


@pytest.mark.slow
@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize(
    "text", SETTINGS, ids=lambda text: text.splitlines()[1].partition(" ")[2].partition(" ")[0]
)
def test_settings_of_the_models_page_work(text: str, model: ModelServer, tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text(re.sub(r"(?m)^base_url: .*", f"base_url: {model.openai_url}", text))
    asked = len(model.requests)
    with JudgeServer() as judge:
        more = ["--set", "total_steps=1", "--set", f"save_path={tmp_path}/run", "--judge", judge.url]
        assert main(["run", "--config", str(file), "--task", "my_module.py", *more]) == 0
    if "command:" not in text and "offline" not in text:
        (request,) = model.requests[asked:]
        assert KEY in "".join(request.headers.values())
