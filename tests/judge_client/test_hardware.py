from __future__ import annotations

import pytest

from adaexplore.judge_client.hardware import contradiction, prompt_hardware
from adaexplore.judge_client.protocol import JudgeIdentity

H200 = JudgeIdentity("cuda", "NVIDIA H200")
CPU = JudgeIdentity("cpu", "CPU (Triton interpreter, sm_90)")


def test_auto_names_the_judges_gpu() -> None:
    assert prompt_hardware("auto", None, H200, "sm_90") == ("NVIDIA H200", "Hopper")


def test_auto_without_a_gpu_names_the_compile_target() -> None:
    name, architecture = prompt_hardware("auto", None, CPU, "sm_80")
    assert (name, architecture) == ("NVIDIA GPU of compute capability 8.0", "Ampere")
    assert prompt_hardware("auto", None, CPU, "sm_120")[0].endswith("12.0")


def test_configured_names_stay() -> None:
    assert prompt_hardware("A6000", "Ampere", H200, "sm_90") == ("A6000", "Ampere")


@pytest.mark.parametrize(
    ("name", "warned"),
    [("A6000", True), ("NVIDIA H100", True), ("H200", False), ("NVIDIA GPU", False), ("auto", False)],
)
def test_gpu_name_contradicting_the_judge_is_a_warning(name: str, warned: bool) -> None:
    assert (contradiction(name, H200) is not None) is warned
