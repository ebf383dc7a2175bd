"""docs/extending.md: each example applies, touches few files and does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .online_judge.live import LiveJudge, running_judge
from .online_judge.sources import HONEST, PASSING, with_forward

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = dict(
    re.findall(
        r"^## Add an? (.+?)\n(.+?)(?=^## |\Z)",
        (ROOT / "docs" / "extending.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
PARTS = ("status", "flag", "check", "device kind")
SCRIPTS = {
    "status": """
from online_judge.protocol.endings import WrongForm
verdict = evaluated(ending=WrongForm(part="structure", expected="T", got="['T']"))
print(json.dumps([verdict.status, verdict.feedback]))
""",
    "flag": """
from online_judge.protocol.kernels import Launches
verdict = evaluated(ending=Passed(), launches=Launches({"add[1, 1, 1]": 40}, 40, 1))
print(json.dumps([verdict.status, verdict.metadata["integrity_evidence"]]))
""",
    "check": """
from online_judge.protocol.endings import WroteInputs
verdict = evaluated(ending=WroteInputs())
print(json.dumps([verdict.status, verdict.feedback]))
""",
    "device kind": """
from online_judge.processes.fork_client import ForkClient
from online_judge.settings import Settings
from online_judge.slots import devices
machine = devices.find(ForkClient(), Settings.from_environment({"JUDGE_DEVICE": "cpu_pair"}))
print(json.dumps([machine.kind, len(machine.devices)]))
""",
}
RESULTS: dict[str, Any] = {
    "status": [
        "wrong_structure",
        "wrong_structure: Output structure mismatch: expected T, got ['T'] (T is a tensor)\n"
        "Next: Return the same number of tensors as Model, in the same containers.",
    ],
    "flag": [
        "passed",
        [{"id": "many_launches", "severity": "note", "evidence": "one call launches 40 kernels"}],
    ],
    "check": [
        "integrity",
        "integrity: a call changed its inputs; write to tensors of its own\n"
        "Next: Compute every output from the inputs of its own call, on the current stream.",
    ],
    "device kind": ["cpu_pair", 2],
}
PRELUDE = """
import json
from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.endings import Passed
from online_judge.protocol.result import EvaluationResult
from online_judge.verdict import assemble

def evaluated(**facts):
    request = EvaluationRequest(custom_model_src="x = 1", backend="triton")
    result = EvaluationResult.from_json(EvaluationResult(**facts).to_json())
    end = assemble.ProcessEnd("/job", "with exit code 0", "")
    return assemble.evaluated(request, assemble.Target("a CPU", "cpu", cuda=False), result, end)
"""


def change(part: str) -> str:
    (block,) = re.findall(r"^```diff\n(.+?)^```", SECTIONS[part], re.MULTILINE | re.DOTALL)
    return str(block)


def copy_with(folder: Path, *parts: str) -> Path:
    """Copy what a judge needs and apply the examples."""
    for package in ("adaexplore", "online_judge"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for part in parts:
        applied = subprocess.run(
            ["git", "apply", "-"],
            cwd=folder,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
            input=change(part),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert applied.returncode == 0, f"the example of {part!r} does not apply: {applied.stderr}"
    return folder


def test_every_section_is_tested() -> None:
    assert tuple(SECTIONS) == PARTS


@pytest.mark.parametrize("part", PARTS)
def test_example_touches_the_named_files_at_most_three(part: str) -> None:
    named = re.findall(r"^- `(.+?\.py)`", SECTIONS[part], re.MULTILINE)
    touched = re.findall(r"^\+\+\+ b/(.+)$", change(part), re.MULTILINE)
    assert 1 <= len(named) <= 3
    assert set(touched) <= set(named)
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.parametrize("part", PARTS)
def test_example_works_without_the_others(part: str, tmp_path: Path) -> None:
    copy = copy_with(tmp_path / "copy", part)
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + SCRIPTS[part]],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == RESULTS[part]


@pytest.fixture(scope="module")
def extended_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Serve with all four examples applied."""
    folder = tmp_path_factory.mktemp("extended")
    copy = copy_with(folder / "copy", *PARTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(copy)
        with running_judge(folder, JUDGE_DEVICE="cpu_pair", PYTHONPATH=str(copy)) as live:
            yield live


@pytest.mark.slow
def test_new_device_kind_is_named_and_documented(extended_judge: LiveJudge) -> None:
    health = extended_judge.client.get("/health").json()
    assert health["judge_device"] == "cpu_pair"
    assert len(health["queue_status"]["per_device"]) == 2
    schemas = extended_judge.client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Health"]["properties"]["judge_device"]["enum"] == ["cuda", "cpu", "cpu_pair"]


@pytest.mark.slow
def test_candidates_meet_the_extended_judge(extended_judge: LiveJudge) -> None:
    passed = extended_judge.evaluate(PASSING)["metadata"]
    assert (passed["status"], passed["device"]) == ("passed", "cpu_pair")
    launches = "relu_kernel[(triton.cdiv(h.numel(), 64),)](h, y, h.numel(), BLOCK=64)"
    many = extended_judge.evaluate(PASSING.replace(launches, f"for _ in range(40): {launches}"))["metadata"]
    assert many["status"] == "passed"
    assert "many_launches" in many["integrity"]
    tuple_ = extended_judge.evaluate(with_forward("return (torch.relu(self.linear(x)),)"))["metadata"]
    assert tuple_["status"] == "wrong_structure"
    assert "in the same containers" in tuple_["feedback"]
    writes = with_forward(HONEST.replace("return ", "y = ") + "\nx.zero_()\nreturn y")
    rejected = extended_judge.evaluate(writes)
    assert (rejected["correctness"], rejected["metadata"]["status"]) == (False, "integrity")
    assert "a call changed its inputs" in rejected["metadata"]["feedback"]
