"""Gradients on a real GPU: 20 tasks, and candidates that are wrong or odd."""

from typing import Any

import pytest

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from tests.backward_tasks import sources
from tests.online_judge.live import LiveJudge
from tests.online_judge.test_backward import HONEST, REFERENCE, WRONG, changed
from tool_scripts.judge_bench.candidates import as_candidate

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

TASKS = sources("large")
LARGE = {"torch.randn(8, 16)": "torch.randn(4096, 1024)", "return [16]": "return [1024]"}
WIDE = REFERENCE
for old, new in LARGE.items():
    WIDE = WIDE.replace(old, new)


def judged(judge: LiveJudge, candidate: str, reference: str, **fields: Any) -> dict[str, Any]:
    asked = {"direction": "both", "measure_performance": True, "num_correct_trials": 2, "timeout": 300}
    return judge.evaluate(candidate, reference, **(asked | fields))


def rejects(answer: dict[str, Any]) -> list[str]:
    found = answer["metadata"].get("integrity", [])
    return [flag for flag in found if all_flags()[flag].severity is Severity.REJECT]


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("name", TASKS)
def test_reference_passes_as_its_own_candidate(gpu_judge: LiveJudge, name: str, dtype: str) -> None:
    answer = judged(gpu_judge, as_candidate(TASKS[name]), TASKS[name], dtype_str=dtype)
    assert answer["correctness"] is True, answer["metadata"]
    assert rejects(answer) == []
    assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.2), answer


@pytest.mark.parametrize("baseline", ["eager", "compile"])
def test_own_autograd_function_is_timed(gpu_judge: LiveJudge, baseline: str) -> None:
    answer = judged(gpu_judge, HONEST, WIDE, baseline=baseline)
    assert answer["correctness"] is True, answer["metadata"]
    assert rejects(answer) == []
    stats = answer["runtime_stats"]
    assert 0 < stats["forward_gpu_ms"] < stats["gpu_ms"]
    assert 0 < stats["baseline_forward_gpu_ms"] < stats["baseline_gpu_ms"]
    forward = judged(gpu_judge, HONEST, WIDE, direction="forward")
    for time in ("gpu_ms", "baseline_gpu_ms"):  # the backward pass has two of the three products
        assert stats[time] > 1.5 * forward["runtime_stats"][time]
    assert "forward_gpu_ms" not in forward["runtime_stats"]


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_wrong_gradient_is_named(gpu_judge: LiveJudge, old: str, new: str, said: str) -> None:
    answer = judged(gpu_judge, changed(old, new), WIDE)
    assert answer["correctness"] is False
    assert said in answer["metadata"]["feedback"], answer["metadata"]


def test_changed_upstream_gradient_is_seen(gpu_judge: LiveJudge) -> None:
    answer = judged(gpu_judge, changed("return found", "gradient.zero_()\n        return found"), WIDE)
    assert "inputs_changed" in answer["metadata"]["integrity"]
