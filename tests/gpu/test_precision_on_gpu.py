"""Tiers of kernels whose precision is known, on a real GPU."""

import pytest

from tests.gpu.precision_corpus import Entry, entries
from tests.online_judge.live import LiveJudge

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("entry", tuple(entries()), ids=lambda entry: entry.id)
def test_tier_tf32_takes_tf32_and_refuses_bf16(gpu_judge: LiveJudge, entry: Entry) -> None:
    asked = {"num_correct_trials": 5, "tf32": "on", "tier": "tf32", "timeout": 300}
    answer = gpu_judge.evaluate(entry.source, entry.problem, **asked)
    wanted = "passed" if entry.variant == "tf32" else "wrong_value"
    assert answer["metadata"]["status"] == wanted, answer["metadata"]
