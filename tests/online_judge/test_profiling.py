"""Evaluate a candidate process's claims about its kernels: occupancy, roofline, bottleneck."""

from types import SimpleNamespace
from typing import Any

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.facts.kernels import Resources
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.dialogue import CandidateGone
from online_judge.evaluator.profile import occupancy, profile_of

H200 = SimpleNamespace(
    major=9,
    minor=0,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_multiprocessor=233472,
)
A10 = SimpleNamespace(
    major=8,
    minor=6,
    max_threads_per_multi_processor=1536,
    regs_per_multiprocessor=65536,
    shared_memory_per_multiprocessor=102400,
)


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "device", "expected"),
    [
        (32, 0, 4, H200, 1.0),  # 16 blocks of 4 warps are all 64
        (128, 0, 4, H200, 0.25),  # 16 warps of 4096 registers
        (255, 0, 8, H200, 0.125),  # 8 warps of 8192
        (129, 0, 4, H200, 12 / 64),  # 4352 registers a warp: 15 warps, in fours 12
        (32, 100_000, 4, H200, 8 / 64),  # two blocks' shared memory
        (32, 233_000, 4, H200, 0.0),  # with the system's own it does not fit
        (16, 0, 1, H200, 0.5),  # no more than 32 blocks
        (40, 0, 4, A10, 1.0),  # 48 warps in all
        (16, 0, 1, A10, 1 / 3),  # no more than 16 blocks
    ],
)
def test_occupancy_is_that_of_the_calculator(
    registers: int, shared: int, warps: int, device: Any, expected: float
) -> None:
    assert occupancy(registers, shared, warps, device) == pytest.approx(expected)


def test_device_without_known_limits_has_no_occupancy() -> None:
    assert occupancy(32, 0, 4, SimpleNamespace(major=9, minor=0)) is None


def share(*kernels: tuple[str, float, int]) -> dict[str, Any]:
    total = sum(ms for _, ms, _ in kernels)
    return {"own": 1.0, "total_ms": total, "streams": 1, "kernels": [list(kernel) for kernel in kernels]}


def profile(
    claim: dict[str, Any], *, flops: float = 0.0, hardware: str = "NVIDIA H200", **fields: Any
) -> Any:
    cost = Cost(output_bytes=24_000_000, read_bytes=24_000_000, flops=flops, depth=1.0)
    return profile_of(claim, cost, hardware, H200, EvaluationRequest(**fields))


CLAIM = {
    "shares": [
        share(("mine", 0.02, 2), ("fill", 0.02, 1)),
        share(("mine", 0.09, 2)),
        share(("mine", 0.03, 2)),
    ],
    "resources": {"mine": Resources(64, 3, 1000, 4, 512).to_json()},
    "wall_ms": 0.05,
}


def test_profile_shows_median_call_with_compiler_resources() -> None:
    found = profile(CLAIM)
    mine = found.kernels[0]
    assert found.gpu_us == pytest.approx(40.0)
    assert (mine.name, mine.calls, mine.own, mine.spills, mine.programs) == ("mine", 2, True, 3, 512)
    assert (mine.us, mine.share) == pytest.approx((20.0, 0.5))
    assert mine.occupancy == pytest.approx(0.5)
    assert (found.kernels[1].own, found.kernels[1].registers) == (False, None)
    assert found.bytes == 48_000_000
    assert found.roofline == pytest.approx(10.0 / 40.0)
    assert found.bound == "memory"


@pytest.mark.parametrize(
    ("fields", "flops", "bound"),
    [
        ({"dtype_str": "fp16"}, 9.894e9 * 2, "compute"),
        ({"dtype_str": "fp32", "tf32": "off"}, 67e7 * 2, "compute"),
        ({"dtype_str": "fp32", "tf32": "on"}, 67e7 * 2, "memory"),
    ],
)
def test_roofline_uses_the_requested_arithmetic(fields: dict[str, Any], flops: float, bound: str) -> None:
    found = profile(CLAIM, flops=flops, **fields)
    assert found.bound == bound
    assert found.roofline == pytest.approx((20.0 if bound == "compute" else 10.0) / 40.0)


def test_calls_slowed_by_host_are_launch_bound() -> None:
    assert profile(CLAIM | {"wall_ms": 0.2}).bound == "launch"


def test_unknown_gpu_has_no_roofline() -> None:
    found = profile(CLAIM, hardware="A GPU of tomorrow")
    assert (found.roofline, found.bound) == (None, None)
    assert found.kernels


@pytest.mark.parametrize("shares", [[], [None], [{"own": 1.0, "total_ms": 0.0, "kernels": []}]])
def test_profiler_that_saw_nothing_gives_none(shares: list[Any]) -> None:
    assert profile(CLAIM | {"shares": shares}) is None


def test_malformed_profile_claim_ends_the_candidate_process() -> None:
    with pytest.raises(CandidateGone, match="profile that cannot be"):
        profile({"shares": 3})


@pytest.mark.parametrize(
    "resources",
    [
        None,
        [1],
        {"mine": 3},
        {"mine": {"warps": 4}},
        {"mine": Resources(64, 3, 1000, 4).to_json() | {"spills": "a"}},
    ],
)
def test_impossible_resources_are_unknown(resources: Any) -> None:
    kernel = profile(CLAIM | {"resources": resources}).kernels[0]
    assert kernel.registers is None
    assert kernel.occupancy is None
