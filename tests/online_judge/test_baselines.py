import json
from pathlib import Path

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.queue.evaluations import Evaluations
from online_judge.queue.metrics import Metrics
from online_judge.settings import Settings
from online_judge.slots.baselines import recorded_ms
from online_judge.slots.devices import Machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "NVIDIA H200"
    folder.mkdir()
    data = {
        "level2": {
            "6_Other.py": {"mean": 9.0},
            "63_Gemm.py": {"mean": 1.25},
            "7_Bad.py": {},
            "8_No.py": {"mean": -1},
        }
    }
    (folder / "baseline_time_torch.json").write_text(json.dumps(data))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "baseline_time_torch.json").write_text("[")
    return tmp_path


def test_recorded_time_applies_only_to_eager_forward(root: Path) -> None:
    evaluations = Evaluations(Settings(timing_root=root), Machine(False, 0, (), "sm_90"), {}, Metrics())
    named = EvaluationRequest(gpu_name="NVIDIA H200", level="2", problem_id="63")
    assert evaluations.recorded_ms(named) == 1.25
    for other in ({"baseline": "compile"}, {"direction": "backward"}, {"direction": "both"}):
        assert evaluations.recorded_ms(named.model_copy(update=other)) is None


def test_recorded_mean_is_found_by_problem_number(root: Path) -> None:
    assert recorded_ms(root, "NVIDIA H200", "2", "63") == 1.25
    assert recorded_ms(root, "NVIDIA H200", "2", "6") == 9.0


@pytest.mark.parametrize(
    ("gpu", "level", "problem"),
    [
        (None, "2", "63"),
        ("NVIDIA H200", None, "63"),
        ("NVIDIA H200", "2", None),
        ("NVIDIA H200", "1", "63"),
        ("NVIDIA H200", "2", "64"),
        ("NVIDIA H200", "2", "7"),
        ("NVIDIA H200", "2", "8"),
        ("A100", "2", "63"),
        ("broken", "2", "63"),
        ("../" + "NVIDIA H200", "2", "63"),
        ("..", "2", "63"),
    ],
)
def test_without_a_usable_record_there_is_none(root: Path, gpu: str, level: str, problem: str) -> None:
    assert recorded_ms(root, gpu, level, problem) is None
