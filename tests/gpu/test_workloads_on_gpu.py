"""Problems of three workloads on a real GPU."""

import math

import pytest

from adaexplore.core.metrics import from_metrics
from adaexplore.core.text.dispatch import with_dispatch
from adaexplore.core.text.tunables import with_values
from tests.online_judge.live import LiveJudge

from .test_judge_on_gpu import FUSED, REFERENCE, TIMED

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

PROBLEM = REFERENCE.replace(
    "def get_inputs():\n    return [torch.randn(4096, 8192)]\n",
    """
def get_workloads():
    return [
        {"name": "large", "get_inputs": lambda: [torch.randn(4096, 8192)], "weight": 2.0},
        {"name": "wide", "get_inputs": lambda: [torch.randn(512, 8192)]},
        {"name": "tall", "get_inputs": lambda: [torch.randn(8192, 4096)]},
    ]
""",
)
HIDDEN = """
def get_workloads():
    return [{"name": "secret", "get_inputs": lambda: [torch.randn(3072, 8192)]}]
"""
AGAIN = "        for _ in range({times} if x.shape[0] == {rows} else 1):\n            kernel"


def slow_on(rows: int) -> str:
    """Return the fused kernel, launched twenty times on inputs of so many rows."""
    return FUSED.replace("        kernel", AGAIN.format(times=20, rows=rows))


def test_score_is_the_mean_of_all_workloads(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(FUSED, PROBLEM, **TIMED)
    metadata, stats = answer["metadata"], answer["runtime_stats"]
    assert metadata["status"] == "passed", metadata
    assert "worst_workload" not in metadata
    listed = metadata["workloads"]
    assert [each["name"] for each in listed] == ["large", "wide", "tall"]
    assert all(each["speedup"] > 1 and each["gpu_ms"] > 0 for each in listed), listed
    total = sum(each["weight"] * math.log(each["speedup"]) for each in listed)
    assert stats["fast_p"] == pytest.approx(math.exp(total / 4))
    assert stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"]
    assert stats["slot"]["gpu_s"] > 0


def test_slow_workload_of_passing_kernel_is_named(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(slow_on(512), PROBLEM, **TIMED)
    metadata = answer["metadata"]
    assert metadata["status"] == "passed", metadata
    assert metadata["worst_workload"]["name"] == "wide"
    by_name = {each["name"]: each["speedup"] for each in metadata["workloads"]}
    assert by_name["large"] > 1 > 0.95 > by_name["wide"]


def test_slow_hidden_workload_is_not_named(gpu_judge: LiveJudge) -> None:
    metadata = gpu_judge.evaluate(slow_on(3072), PROBLEM, hidden_workloads=HIDDEN, **TIMED)["metadata"]
    assert metadata["status"] == "passed", metadata
    assert metadata["worst_workload"]["name"] == "a hidden workload"
    assert (metadata["workloads"][3]["name"], metadata["workloads"][3]["inputs"]) == ("secret", "")


def test_one_workload_has_a_verdict_as_before(gpu_judge: LiveJudge) -> None:
    listed = PROBLEM[: PROBLEM.index('        {"name": "wide"')] + "    ]\n"
    alone = listed + "\ndef get_init_inputs():\n    return [0.5]\n"
    for problem in (alone, REFERENCE):
        answer = gpu_judge.evaluate(FUSED, problem, **TIMED)
        assert answer["metadata"]["status"] == "passed"
        assert not {"workloads", "worst_workload"} & answer["metadata"].keys()
        assert answer["runtime_stats"]["clocks"]


TUNABLE = (
    FUSED.replace("BLOCK=1024", "BLOCK=BLOCK, num_warps=WARPS")
    .replace("n, 1024)", "n, BLOCK)")
    .replace(
        "@triton.jit",
        "BLOCK = 64\nWARPS = 1\nTUNABLES = {'BLOCK': [64, 512, 4096], 'WARPS': [1, 4]}\n\n@triton.jit",
    )
)


def test_sweep_finds_numbers_for_each_workload(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(TUNABLE, PROBLEM, hidden_workloads=HIDDEN, tune_s=20.0, **TIMED)
    verdict = from_metrics(answer)
    assert verdict.correct, answer["metadata"]
    tuned = answer["metadata"]["tuned"]
    assert [each["workload"] for each in tuned["by_shape"]] == ["large", "wide", "tall"]
    assert [each["shape"] for each in tuned["by_shape"]] == [[13, 14], [10, 14], [14, 13]]
    assert all(each["best_ms"] < each["declared_ms"] for each in tuned["by_shape"]), tuned
    assert verdict.tuned_values is not None
    text = with_dispatch(with_values(TUNABLE, verdict.tuned_values), verdict.tuned_by_shape)
    again = gpu_judge.evaluate(text, PROBLEM, **TIMED)
    assert again["runtime_stats"]["fast_p"] == pytest.approx(answer["runtime_stats"]["fast_p"], rel=0.2)


def test_after_a_failure_nothing_is_timed(gpu_judge: LiveJudge) -> None:
    wrong = FUSED.replace("        return y", "        return y if x.shape[0] != 512 else y * 2")
    metadata = gpu_judge.evaluate(wrong, PROBLEM, **TIMED)["metadata"]
    assert metadata["status"] == "wrong_value"
    listed = metadata["workloads"]
    assert [each["correctness"] for each in listed] == [True, False, True]
    assert listed[0]["speedup"] > 1
    assert listed[2]["speedup"] is None
