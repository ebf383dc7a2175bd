"""Profiles of candidates on a real GPU."""

from dataclasses import replace
from typing import Any

import pytest

from adaexplore.core.text.tunables import with_values
from tests.gpu.measure_sweep import job
from tests.gpu.tunable_kernels import GELU, MATMUL, SOFTMAX, Case
from tests.online_judge.live import LiveJudge

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def profile(judge: LiveJudge, case: Case) -> dict[str, Any]:
    answer = job(judge, case, "profile")
    report = answer["report"]
    assert report is not None, answer["error"]
    assert report["profile"] is not None, report
    found: dict[str, Any] = report["profile"]
    return found


def test_profile_of_a_memory_bound_kernel(gpu_judge: LiveJudge) -> None:
    good = replace(GELU, candidate=with_values(GELU.candidate, {"BLOCK": 1024, "NUM_WARPS": 4}))
    found = profile(gpu_judge, good)
    verdict = job(gpu_judge, good)["verdict"]
    kernel = found["kernels"][0]
    assert (kernel["name"], kernel["calls"], kernel["own"]) == ("gelu_kernel", 1, True)
    assert kernel["warps"] == 4
    assert kernel["programs"] == 4096 * 4096 // 1024
    assert 8 <= kernel["registers"] <= 255
    assert kernel["spills"] == 0
    assert 0 < kernel["occupancy"] <= 1
    assert found["bound"] == "memory"
    assert found["bytes"] == 2 * 4 * 4096 * 4096
    assert 0.3 < found["roofline"] <= 1
    assert found["gpu_us"] == pytest.approx(1e3 * verdict["runtime_stats"]["gpu_ms"], rel=0.25)


def test_profile_marks_own_kernels(gpu_judge: LiveJudge) -> None:
    mixed = replace(
        SOFTMAX, candidate=SOFTMAX.candidate.replace("        return y\n", "        return y * 1.0\n")
    )
    kernels = profile(gpu_judge, mixed)["kernels"]
    assert {kernel["own"] for kernel in kernels} == {True, False}
    assert sum(kernel["share"] for kernel in kernels) == pytest.approx(1.0, abs=0.01)
    assert all(kernel["registers"] is None for kernel in kernels if not kernel["own"])


def test_spills_and_shared_memory_show(gpu_judge: LiveJudge) -> None:
    values = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_WARPS": 1, "NUM_STAGES": 3}
    kernel = profile(gpu_judge, replace(MATMUL, candidate=with_values(MATMUL.candidate, values)))["kernels"][
        0
    ]
    assert kernel["spills"] > 0
    assert kernel["shared_bytes"] > 10_000


def test_short_calls_are_launch_bound(gpu_judge: LiveJudge) -> None:
    small = replace(GELU, reference=GELU.reference.replace("4096, 4096", "16, 16"))
    assert profile(gpu_judge, small)["bound"] == "launch"


def test_known_profile_is_not_measured_again(gpu_judge: LiveJudge) -> None:
    request = {"original_model_src": GELU.reference, "custom_model_src": GELU.candidate, "backend": "triton"}
    answers = []
    for _ in range(2):
        ticket = gpu_judge.post("/v2/jobs", {"kind": "profile", "request": request}).json()
        answers.append(gpu_judge.client.get(f"/v2/jobs/{ticket['id']}?wait=60").json())
    assert [answer["cached"] for answer in answers] == [False, True]
    assert answers[0]["report"] == answers[1]["report"]


def test_failing_candidate_has_reason_but_no_profile(gpu_judge: LiveJudge) -> None:
    broken = replace(GELU, candidate=GELU.candidate.replace("tl.erf", "tl.no_such_function"))
    report = job(gpu_judge, broken, "profile")["report"]
    assert report["profile"] is None
    assert report["status"] == "compile"
    assert "no_such_function" in report["message"]
