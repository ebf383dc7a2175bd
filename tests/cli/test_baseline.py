from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from tests import judge_server
from tests.judge_server import PASSED, JudgeServer

PROBLEM = """
class Model:
    pass

def get_inputs():
    return []

def get_init_inputs():
    return []
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    folder = tmp_path / "problems" / "level1"
    folder.mkdir(parents=True)
    for name in ("1_one.py", "2_two.py"):
        (folder / name).write_text(PROBLEM)
    (tmp_path / "list.txt").write_text("1\n")
    settings = [
        f"problem_root={folder.parent}",
        f"test_list_path={tmp_path / 'list.txt'}",
        "use_remote_eval=true",
    ]
    flags = [part for setting in settings for part in ("--set", setting)]
    return ["baseline", "--out", str(tmp_path / "timing"), *flags]


def test_references_are_timed_as_their_own_candidates(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELBENCH_ROOT", raising=False)
    gpu = {**judge_server.HEALTH, "cuda_available": True, "judge_device": "cuda", "hardware": "NVIDIA Test"}
    monkeypatch.setattr(judge_server, "HEALTH", gpu)
    timed = {**PASSED, "runtime_stats": {"mean": 2.5, "std": 0.1, "num_trials": 90, "fast_p": 1.0}}
    with JudgeServer(lambda _path, _body: (200, timed, {})) as server:
        assert main([*arguments, "--set", f"remote_eval_url={server.url}"]) == 0
        assert all("class ModelNew(Model)" in body["custom_model_src"] for _, body in server.requests)
    record = json.loads((tmp_path / "timing" / "NVIDIA Test" / "baseline_time_torch.json").read_text())
    assert record == {
        "level1": {
            "1_one.py": {"mean": 2.5, "std": 0.1, "num_trials": 90},
            "2_two.py": {"mean": 2.5, "std": 0.1, "num_trials": 90},
        }
    }


def test_without_a_gpu_nothing_is_recorded(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELBENCH_ROOT", raising=False)
    with JudgeServer() as server:
        assert main([*arguments, "--set", f"remote_eval_url={server.url}"]) == 2
    assert "need a GPU" in capsys.readouterr().err
