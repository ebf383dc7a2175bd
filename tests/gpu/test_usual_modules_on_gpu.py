"""Timed modules that users bring, as their own candidates, on a real GPU."""

import pytest

from tests.online_judge.live import LiveJudge
from tests.online_judge.test_timed_contents import RAGGED, ROUTER, SYMMETRIC
from tests.online_judge.test_usual_modules import MODULES
from tool_scripts.judge_bench.candidates import as_candidate

from .test_judge_on_gpu import TIMED, rejects_and_suspects

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

DROPOUT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, True) * 2.0

def get_inputs():
    return [torch.randn({size})]

def get_init_inputs():
    return []
"""
TRANSPOSED = as_candidate(SYMMETRIC).replace("x @ x", "x @ x.T")
ROUTER_ON_GPU = ROUTER.replace("torch.arange(256 * 64,", "torch.arange(256 * 64, device=x.device,")
RAGGED_ON_GPU = RAGGED.replace("torch.arange(longest)", "torch.arange(longest, device=x.device)")
IN_DOUBLE = as_candidate(ROUTER_ON_GPU).replace("x @ weight", "x.double() @ weight.double()")
NO_OWN_KERNEL = ["no_own_kernel"]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "sizes by value"])
def test_module_equals_itself_when_timed(gpu_judge: LiveJudge, name: str) -> None:
    answer = gpu_judge.evaluate(as_candidate(MODULES[name]), MODULES[name], **TIMED)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]
    assert rejects_and_suspects(answer) == NO_OWN_KERNEL
    assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("candidate", "reference", "suspicions"),
    [
        (TRANSPOSED, SYMMETRIC, ["fails_mixed_inputs"]),
        (as_candidate(RAGGED_ON_GPU), RAGGED_ON_GPU, []),
        (IN_DOUBLE, ROUTER_ON_GPU, []),
    ],
    ids=["symmetric", "ragged", "near ties"],
)
def test_right_candidates_are_no_cheats(
    gpu_judge: LiveJudge, candidate: str, reference: str, suspicions: list[str]
) -> None:
    answer = gpu_judge.evaluate(candidate, reference, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]
    assert set(rejects_and_suspects(answer)) == {*NO_OWN_KERNEL, *suspicions}


@pytest.mark.parametrize("size", ["64, 1024", "8192, 8192"])
@pytest.mark.parametrize("baseline", ["eager", "compile"])
def test_random_reference_is_timed_fairly(gpu_judge: LiveJudge, size: str, baseline: str) -> None:
    reference = DROPOUT.format(size=size)
    answer = gpu_judge.evaluate(as_candidate(reference), reference, baseline=baseline, **TIMED)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]
    assert rejects_and_suspects(answer) == NO_OWN_KERNEL
    if baseline == "eager":
        assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.1)


def test_sizes_by_value_are_refused(gpu_judge: LiveJudge) -> None:
    reference = MODULES["sizes by value"]
    answer = gpu_judge.evaluate(as_candidate(reference), reference, **TIMED)
    assert "send measure_performance: false" in str(answer["metadata"])
    checked = gpu_judge.evaluate(as_candidate(reference), reference, num_correct_trials=5)
    assert checked["metadata"]["status"] == "passed"
