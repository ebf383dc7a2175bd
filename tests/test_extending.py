"""docs/extending.md: each example applies and does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .online_judge.live import LiveJudge, running_judge
from .online_judge.sources import HONEST, PASSING, REFERENCE, with_forward

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## Add an? (.+?)\n(.+?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
AGENT = ("search policy", "step action", "vendor", "task source")
JUDGE = ("check", "status", "baseline kind")


def copy_with(folder: Path, *parts: str) -> Path:
    """Copy the code, write the examples' new files and apply their changes."""
    for package in ("adaexplore", "online_judge", "skill_memory", "synthesis"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for part in parts:
        for name, text in re.findall(r"`(\S+\.py)`:\s+```python\n(.+?)^```", SECTIONS[part], re.M | re.S):
            (folder / name).write_text(text, encoding="utf-8")
        (changes,) = re.findall(r"^```diff\n(.+?)^```", SECTIONS[part], re.M | re.S)
        for name, change in re.findall(r"^--- (\S+)\n(.+?)(?=^--- |\Z)", changes, re.M | re.S):
            apply(change, folder / name)
    return folder


def apply(change: str, file: Path) -> None:
    """Replace the lines marked ``-`` and keep the others, each group at its one place in the file."""
    text = file.read_text(encoding="utf-8")
    for group in change.removeprefix("@@\n").split("@@\n"):
        lines = group.splitlines(keepends=True)
        old = "\n" + "".join(line[1:] for line in lines if line[0] != "+")
        new = "\n" + "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"{file.name} is not as the page says: {old}"
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def test_every_section_is_tested() -> None:
    assert tuple(SECTIONS) == AGENT + JUDGE


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Apply the examples of the agent side together, beside two problems."""
    return with_problems(copy_with(tmp_path_factory.mktemp("extended") / "copy", *AGENT))


def with_problems(folder: Path) -> Path:
    (folder / "problems").mkdir()
    for name in ("a", "b"):
        (folder / "problems" / f"{name}.py").write_text(REFERENCE)
    return folder


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "adaexplore", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )


def run(folder: Path, *settings: str) -> list[dict[str, object]]:
    """Search with random verdicts; return the logs of the steps."""
    words = ["dummy=true", "total_steps=6", "test_source=FLAT", f"save_path=out/{settings[0]}", *settings]
    chosen = [word for setting in words for word in ("--set", setting)]
    done = command(folder, "run", *chosen)
    assert done.returncode in (0, 1), done.stderr  # 1: no verdict was right by chance
    logs = [json.loads(log.read_text()) for log in (folder / "out" / settings[0]).glob("*/*_log.json")]
    return [log for log in logs if log["node_id"]]


@pytest.mark.slow
def test_policy_and_source_of_the_examples_work(agent: Path) -> None:
    logs = run(agent, "selection=greedy", "server_type=offline", "problem_id=2", "seed=1")
    assert len(logs) == 6
    edits = [log for log in logs if log["context_node_ids"]]
    assert edits
    assert all(log["context_node_ids"] == [log["parent_node_id"]] for log in edits)
    assert (agent / "out/selection=greedy/1_2/reference_src.py").read_text() == REFERENCE


@pytest.mark.slow
def test_step_of_the_example_is_known_everywhere(tmp_path: Path) -> None:
    copy = with_problems(copy_with(tmp_path / "copy", "search policy", "step action", "task source"))
    policy = copy / "adaexplore/search/greedy.py"
    policy.write_text(policy.read_text().replace("StepKind.SMALL", "StepKind.COMBINE"))
    settings = ("selection=greedy", "server_type=offline", "problem_id=2", "seed=1", "preset=default")
    logs = run(copy, *settings, "general_memory_path=null")
    combined = [log for log in logs if log["created_by"] == "combine_step"]
    assert combined
    folder = copy / "out" / settings[0]
    prompt = (folder / "1_2" / f"step_{combined[0]['node_id']}_prompt.txt").read_text()
    assert "## Now: a kernel\nCombine what is fastest in each of the 1 kernels above." in prompt
    statistics = json.loads((folder / "1_2/tree_stats.json").read_text())
    assert statistics["combine_step_nodes"] == len(combined)
    shown = command(copy, "show", str(folder), "1_2")
    assert shown.stdout.count(" combine ") == len(combined), shown.stderr
    replayed = command(copy, "replay", str(folder), "--out", str(copy / "again"))
    assert replayed.returncode in (0, 1), replayed.stderr


@pytest.mark.slow
def test_client_of_the_example_asks_its_server(agent: Path) -> None:
    prompts = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            prompts.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            answer = f"```python\n{PASSING}\n```".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"base_url=http://127.0.0.1:{server.server_port}"
        logs = run(agent, "server_type=plain", url, "preset=paper", "agent_type=PS", "problem_id=1")
        server.shutdown()
    assert len(logs) == len(prompts) == 6
    assert "class Model" in prompts[0]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Serve with the examples of the judge applied."""
    folder = tmp_path_factory.mktemp("extended")
    copy = copy_with(folder / "copy", *JUDGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(copy)
        with running_judge(folder, PYTHONPATH=str(copy)) as live:
            yield live


@pytest.mark.slow
def test_checks_of_the_examples_work(judge: LiveJudge) -> None:
    launches = "relu_kernel[(triton.cdiv(h.numel(), 64),)](h, y, h.numel(), BLOCK=64)"
    many = judge.evaluate(PASSING.replace(launches, f"for _ in range(40): {launches}"))["metadata"]
    assert many["status"] == "passed"
    assert "many_launches" in many["integrity"]
    turned = HONEST.replace("return ", "y = ") + "\nreturn y.t().contiguous().t()"
    rejected = judge.evaluate(with_forward(turned))
    assert (rejected["correctness"], rejected["metadata"]["status"]) == (False, "integrity")
    assert "an output has the strides" in rejected["metadata"]["feedback"]


def test_status_of_the_example_is_known_everywhere(tmp_path: Path) -> None:
    copy = copy_with(tmp_path / "copy", "status")
    program = (
        "from adaexplore.core.draft import DraftOutcome\n"
        "from adaexplore.core.plan import StepKind\n"
        "from adaexplore.core.step import StepResult\n"
        "from adaexplore.core.verdict import Verdict\n"
        "from adaexplore.view.model import shape_of\n"
        "from online_judge.checks.facts.endings import WrongForm\n"
        "from online_judge.verdict.endings import explain\n"
        "from skill_memory.failures.failure import is_failure\n"
        "found = explain(WrongForm(part='device', expected='cuda', got='cpu'), '')\n"
        "verdict = Verdict(status=found.status)\n"
        "shape = shape_of(StepResult(StepKind.SMALL, DraftOutcome.WRITTEN, verdict))\n"
        "print(found.status.value, shape.value, is_failure(verdict), found)\n"
    )
    told = output(copy, program)
    assert told.startswith("wrong_device wrong True ")
    assert "Next: Return outputs on the device of the inputs." in told


@pytest.mark.slow
def test_status_without_row_is_a_type_error(tmp_path: Path) -> None:
    copy = copy_with(tmp_path / "copy", "status")
    file = copy / "adaexplore/core/judging/status.py"
    file.write_text(file.read_text().replace("case Status.WRONG_DEVICE:", "case Status.WRONG_DTYPE:"))
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(file)]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert "Missing return statement" in found.stdout


def test_baseline_of_the_example_is_compiled(tmp_path: Path) -> None:
    copy = copy_with(tmp_path / "copy", "baseline kind")
    program = (
        "from typing import get_args\n"
        "import torch\n"
        "from adaexplore.core.wire import BaselineKind\n"
        "from online_judge.evaluator.timing.baselines.baseline import all_baselines\n"
        "torch.compile = lambda model, mode: print(mode)\n"
        "all_baselines()['reduce-overhead'].prepare(torch.nn.Identity())\n"
        "assert all_baselines().keys() == set(get_args(BaselineKind))\n"
    )
    assert output(copy, program) == "reduce-overhead\n"


def output(folder: Path, program: str) -> str:
    """Return what a program prints that imports the packages in ``folder``."""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout
