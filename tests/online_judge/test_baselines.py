import json
from pathlib import Path

import pytest

from online_judge.slots.baselines import recorded_ms


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


def test_recorded_mean_is_found_by_the_number_before_the_underscore(root: Path) -> None:
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
