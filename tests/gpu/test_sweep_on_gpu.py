"""Sweeps of tunables on a real GPU."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from adaexplore.core.text.tunables import read_tunables, with_values
from online_judge.candidate import config_sweep
from tests.gpu.measure_sweep import job
from tests.gpu.tunable_kernels import GELU, MATMUL, ROW_SUM, SOFTMAX, Case
from tests.online_judge.live import LiveJudge

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def passed(judge: LiveJudge, case: Case, **fields: Any) -> dict[str, Any]:
    answer = job(judge, case, **fields)
    assert answer["verdict"] is not None, answer["error"]
    verdict: dict[str, Any] = answer["verdict"]
    assert verdict["status"] == "passed", verdict["metadata"]
    return verdict


@pytest.mark.parametrize("case", [GELU, SOFTMAX], ids=["gelu", "softmax"])
def test_bad_numbers_are_replaced_by_faster_ones(gpu_judge: LiveJudge, case: Case) -> None:
    declared = passed(gpu_judge, case)
    swept = passed(gpu_judge, case, tune_s=20.0)
    tuned = swept["metadata"]["tuned"]
    assert swept["runtime_stats"]["fast_p"] > 1.1 * declared["runtime_stats"]["fast_p"]
    assert tuned["best_ms"] < tuned["declared_ms"]
    assert tuned["tried"] > 8
    # what was judged is the recorded source: judged as it stands, it is as fast
    recorded = replace(case, candidate=with_values(case.candidate, tuned["values"]))
    again = passed(gpu_judge, recorded)
    assert again["runtime_stats"]["gpu_ms"] == pytest.approx(swept["runtime_stats"]["gpu_ms"], rel=0.1)


def test_good_numbers_are_not_made_worse(gpu_judge: LiveJudge) -> None:
    best = passed(gpu_judge, GELU, tune_s=20.0)["metadata"]["tuned"]["values"]
    good = replace(GELU, candidate=with_values(GELU.candidate, best))
    declared = passed(gpu_judge, good)
    swept = passed(gpu_judge, good, tune_s=20.0)
    assert swept["runtime_stats"]["fast_p"] > 0.95 * declared["runtime_stats"]["fast_p"]


def test_large_weights_leave_time_for_the_sweep(gpu_judge: LiveJudge) -> None:
    large = replace(
        MATMUL,
        reference=MATMUL.reference.replace("2048", "8192"),
        candidate=MATMUL.candidate.replace("2048", "8192"),
    )
    tuned = passed(gpu_judge, large, tune_s=20.0)["metadata"]["tuned"]
    assert config_sweep.SLOW not in tuned["reasons"]
    assert tuned["tried"] > 32
    assert tuned["best_ms"] < tuned["declared_ms"]


def test_configurations_without_resources_drop_out(gpu_judge: LiveJudge) -> None:
    huge = replace(
        MATMUL,
        candidate=MATMUL.candidate.replace("[16, 32, 64, 128],\n", "[16, 128],\n")
        .replace("[32, 64, 128, 256]", "[32, 256]")
        .replace('"NUM_STAGES": [1, 2, 3, 4]', '"NUM_STAGES": [1, 5]'),
    )
    tuned = passed(gpu_judge, huge, tune_s=30.0)["metadata"]["tuned"]
    assert tuned["failed"] > 0
    assert any("OutOfResources" in reason for reason in tuned["reasons"]), tuned


def test_sweep_rescues_candidate_with_broken_declared_values(gpu_judge: LiveJudge) -> None:
    values = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 128, "NUM_WARPS": 8, "NUM_STAGES": 4}
    broken = replace(MATMUL, candidate=with_values(MATMUL.candidate, values))
    assert job(gpu_judge, broken)["verdict"]["status"] != "passed"
    tuned = passed(gpu_judge, broken, tune_s=20.0)["metadata"]["tuned"]
    assert tuned["values"] != values
    assert tuned["declared_ms"] is None


def test_configuration_with_illegal_access_is_excluded(gpu_judge: LiveJudge) -> None:
    wild = replace(
        ROW_SUM,
        candidate=ROW_SUM.candidate.replace(
            '"BLOCK": [64, 256, 1024, 4096, 16384]', '"BLOCK": [64, 256, 1024]'
        )
        .replace('"NUM_WARPS": [1, 2, 4, 8, 16]', '"NUM_WARPS": [2, 4]')
        .replace(
            "x_ptr + row * columns + at", "x_ptr + (row * columns + at) * (1 + (BLOCK == 256) * 2000000000)"
        ),
    )
    assert len(read_tunables(wild.candidate)) == 2
    tuned = passed(gpu_judge, wild, tune_s=40.0)["metadata"]["tuned"]
    assert tuned["values"]["BLOCK"] != 256
    assert tuned["failed"] >= 1


def test_sweep_beside_a_timed_evaluation_disturbs_it_little(gpu_judge: LiveJudge) -> None:
    alone = passed(gpu_judge, SOFTMAX)["runtime_stats"]
    with ThreadPoolExecutor(1) as pool:
        sweep = pool.submit(passed, gpu_judge, GELU, tune_s=20.0)
        time.sleep(2.0)
        beside = passed(gpu_judge, SOFTMAX)["runtime_stats"]
        sweep.result()
    assert beside["gpu_ms"] == pytest.approx(alone["gpu_ms"], rel=0.1)


def test_cancelled_sweep_leaves_no_process(gpu_judge: LiveJudge) -> None:
    request = {
        "original_model_src": MATMUL.reference,
        "custom_model_src": MATMUL.candidate,
        "backend": "triton",
        "dtype_str": "fp16",
        "measure_performance": True,
        "tune_s": 60.0,
    }
    ticket = gpu_judge.post("/v2/jobs", {"request": request, "force": True}).json()
    time.sleep(6.0)
    answer = gpu_judge.client.delete(f"/v2/jobs/{ticket['id']}").json()
    assert answer["state"] == "cancelled"
    assert passed(gpu_judge, GELU)["runtime_stats"]["fast_p"] > 0
