import hashlib
import json
from pathlib import Path

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.queue.evaluations import Evaluations
from online_judge.queue.metrics import Metrics
from online_judge.settings import Settings
from online_judge.slots.baselines import recorded_ms
from online_judge.slots.devices import Machine

VERSIONS = {"torch": "2.11.0", "triton": "3.6.0"}
CONDITIONS = {
    "baseline": "eager",
    "dtype": "fp32",
    "tf32": "paper",
    "reference": hashlib.sha256(b"class Model: pass").hexdigest(),
    "versions": VERSIONS,
    "hardware": "NVIDIA H200",
}
H200 = {"NVIDIA H200"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "NVIDIA H200"
    folder.mkdir()
    data = {
        "level2": {
            "6_Other.py": {"mean": 9.0},
            "9_Older.py": {"mean": 4.0} | CONDITIONS | {"dtype": "fp16"},
            "9_Own.py": {"mean": 3.0} | CONDITIONS,
            "10_Huge.py": {"mean": 10**400},
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


def of_problem(
    number: str | None, gpu: str | None = "NVIDIA H200", level: str | None = "2"
) -> EvaluationRequest:
    return EvaluationRequest(gpu_name=gpu, level=level, problem_id=number)


def test_recorded_mean_is_found_by_problem_number(root: Path) -> None:
    assert recorded_ms(root, of_problem("63"), VERSIONS, H200) == 1.25
    assert recorded_ms(root, of_problem("6"), VERSIONS, H200) == 9.0


def test_recorded_time_of_other_conditions_is_not_used(root: Path) -> None:
    same = of_problem("9").model_copy(update={"original_model_src": "class Model: pass"})
    assert recorded_ms(root, same, VERSIONS | {"numpy": "2.5.2"}, H200) == 3.0
    assert recorded_ms(root, same, VERSIONS | {"torch": "2.12.0"}, H200) is None
    for hardware in ({"NVIDIA H100"}, {"NVIDIA H200", "NVIDIA H100"}, set[str]()):
        assert recorded_ms(root, same, VERSIONS, hardware) is None
    for other in (
        {"baseline": "compile"},
        {"dtype_str": "bf16"},
        {"tf32": "on"},
        {"original_model_src": "class Model: ..."},
        {"hidden_workloads": "[]"},
    ):
        assert recorded_ms(root, same.model_copy(update=other), VERSIONS, H200) is None


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
        ("NVIDIA H200", "2", "10"),
        ("A100", "2", "63"),
        ("broken", "2", "63"),
        ("../" + "NVIDIA H200", "2", "63"),
        ("..", "2", "63"),
    ],
)
def test_without_a_usable_record_there_is_none(root: Path, gpu: str, level: str, problem: str) -> None:
    assert recorded_ms(root, of_problem(problem, gpu, level), VERSIONS, H200) is None
