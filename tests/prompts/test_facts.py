"""Facts of the judge in prompts: stated from its answer, absent where that is; each can be omitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from adaexplore.core.environment import (
    CheckRules,
    DeviceFacts,
    Environment,
    FactName,
    Flags,
    PrecisionTest,
    ReferenceFacts,
    TierLimits,
    TimingRules,
    TritonFacts,
)
from adaexplore.core.judging.profile import Profile
from adaexplore.core.plan import StepKind
from adaexplore.core.task import Task
from adaexplore.core.wire import TensorFacts, Tier
from adaexplore.prompts.actions.action import all_actions
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.steps import StepPrompts

LARGE, SMALL = (all_actions()[kind] for kind in (StepKind.LARGE, StepKind.SMALL))

TASK = Task(1, "7", "7_double", "class Model: ...\n", "fp32", Path("7.py"))
DEVICE = DeviceFacts(
    name="NVIDIA H200",
    capability="9.0",
    multiprocessors=132,
    shared_bytes_per_block=232448,
    registers_per_multiprocessor=65536,
    l2_bytes=62914560,
    bytes_per_s=4.8e12,
    flops={"fp32": 67e12, "half": 989.4e12},
)
ENVIRONMENT = Environment(
    hardware="NVIDIA H200",
    versions={"torch": "2.13.0", "triton": "3.7.1", "cuda": "13.0", "numpy": "2"},
    triton=TritonFacts(
        range_options=["num_stages", "flatten"],
        range_note="Only on some GPUs.",
        descriptors=["triton.language.make_tensor_descriptor"],
        gone=["triton.language.math.tanh"],
    ),
    precision=PrecisionTest(
        sets=2,
        strict_times=4.0,
        strict_floor_ulp=16.0,
        rounded_times=1.3,
        mantissa_bits={"tf32": 10, "half": 7},
        noise={"tf32": 1e-3, "half": 1e-2},
    ),
    checks=CheckRules(
        gradients=False,
        mode="constructed",
        flags={
            "off": Flags(allow_tf32=False, dot="ieee"),
            "on": Flags(allow_tf32=True, dot=None),
        },
        inputs="get_inputs",
        output_strides="any",
        failed_combinations="skipped",
    ),
    timing=TimingRules(statistic="median", warmup_s=0.03, least_calls=20, cold_l2=True),
    devices=[DEVICE],
)
REFERENCE = ReferenceFacts(
    tensors=[TensorFacts(role="input", name="0", shape=(16, 64), dtype="float32", bytes=4096)],
    limits={"strict": TierLimits(rms=3.2e-7, peak=4.1e-6)},
    profile=Profile((), 400.0, 420.0, 134_200_000, 0.0, 0.35, "memory", "NVIDIA H200"),
)
FACTS = JudgeFacts(
    "NVIDIA H200",
    "Hopper",
    "fp32",
    "off",
    0.05,
    5,
    100,
    10,
    tier="strict",
    tunes=True,
    environment=ENVIRONMENT,
)
STATED: dict[FactName, tuple[str, ...]] = {
    "hardware": ("132 SMs", "227 KiB of shared memory", "65536 registers an SM", "60 MiB of L2 cache"),
    "peaks": ("4.8 TB/s of memory", "67 fp32", "989.4 half precision"),
    "versions": ("PyTorch 2.13.0, Triton 3.7.1, CUDA 13.0",),
    "language": (
        "`tl.range` takes `num_stages`, `flatten`",
        "Only on some GPUs",
        "`triton.language.make_tensor_descriptor`",
        "No longer in this Triton: `tl.math.tanh`",
    ),
    "measurement": (
        "autograd is off",
        "mode that their constructor leaves",
        "may be hard-coded",
        "any strides",
        "`allow_tf32` off",
        "`input_precision` 'ieee'",
        "median GPU time of at least 20 calls",
        "cold L2",
        "after 0.03 s",
    ),
    "sweep": ("is skipped and never fatal",),
    "precision": (
        "On 2 sets",
        "4 times the error of PyTorch",
        "16 units in the last place",
        "error at most about 3.2e-07, largest error at most about 4.1e-06",
    ),
    "reference": ("input 0: float32 [16, 64], 4096 B", "One call: 400 us of GPU time", "134.2 MB"),
}


def text_of(facts: JudgeFacts, reference: ReferenceFacts | None = REFERENCE) -> str:
    return StepPrompts(TASK, facts, layout="shared", reference=reference).step(LARGE, ()).text


@pytest.mark.parametrize("name", get_args(FactName))
def test_each_fact_is_stated_and_can_be_omitted(name: FactName) -> None:
    whole, without = text_of(FACTS), text_of(replace(FACTS, omitted=frozenset({name})))
    assert all(part in whole for part in STATED[name])
    assert not any(part in without for part in STATED[name])
    for other in set(STATED) - {name, "reference" if name == "precision" else name}:
        kept = STATED[other] if name != "reference" else STATED[other][:3]
        assert all(part in without for part in kept)


def test_run_and_reference_facts_have_separate_parts() -> None:
    prompts = StepPrompts(TASK, FACTS, layout="shared", reference=REFERENCE)
    prompt = prompts.step(LARGE, ())
    run = [part for name, parts in STATED.items() if name != "reference" for part in parts[:2]]
    assert all(part in prompt.fixed for part in run)
    assert "may be hard-coded" in prompt.task
    assert all(part in prompt.task for part in STATED["reference"])
    assert prompts.step(LARGE, ()).cuts == prompt.cuts


def test_several_workloads_forbid_hard_coded_shapes() -> None:
    several = replace(TASK, reference=TASK.reference + "\ndef get_workloads():\n    ...\n")
    hidden = replace(TASK, hidden_workloads="def get_workloads():\n    ...\n")
    for task in (several, hidden):
        text = StepPrompts(task, FACTS, layout="shared", reference=REFERENCE).step(LARGE, ()).task
        assert "none may be hard-coded" in text
    assert "shapes that are not shown" in text


def test_module_tolerance_replaces_the_precision_test() -> None:
    task = replace(TASK, reference=TASK.reference + "\nTOLERANCE = {'max_atol': 0.1}\n")
    text = StepPrompts(task, FACTS, layout="shared", reference=REFERENCE).step(LARGE, ()).task
    assert "`TOLERANCE` of this module says what is right" in text
    assert "error at most about 3.2e-07" not in text


@pytest.mark.parametrize(
    ("absent", "gone"),
    [
        ({"devices": []}, (*STATED["hardware"], *STATED["peaks"])),
        ({"triton": None}, STATED["language"]),
        ({"timing": None}, STATED["measurement"][6:]),
        ({"checks": None}, (*STATED["measurement"][:6], *STATED["sweep"])),
        ({"precision": None}, STATED["precision"][:3]),
        ({"versions": {}}, STATED["versions"]),
    ],
)
def test_an_absent_fact_is_an_absent_line(absent: dict[str, Any], gone: tuple[str, ...]) -> None:
    text = text_of(replace(FACTS, environment=ENVIRONMENT.model_copy(update=absent)))
    assert not any(part in text for part in gone)
    assert "- \n" not in text
    assert "None" not in text


def test_an_older_judge_adds_nothing() -> None:
    text = text_of(replace(FACTS, environment=None), None)
    assert not any(part in text for name in STATED for part in STATED[name])
    assert "- GPU: NVIDIA H200 (Hopper)\n" in text


def test_hardware_of_a_differently_named_gpu_is_omitted() -> None:
    assert "132 SMs" not in text_of(replace(FACTS, gpu_name="A100"))


@pytest.mark.parametrize(("tier", "bits", "noise"), [("tf32", 10, "0.001"), ("half", 7, "0.01")])
def test_looser_tiers_state_their_own_numbers(tier: Tier, bits: int, noise: str) -> None:
    text = text_of(replace(FACTS, tier=tier))
    assert f"1.3 times the error of the module with the operands of its products cut to {bits} bits" in text
    assert f"may be {noise} standard deviations" in text
    assert "largest error at most about" not in text  # limits of this tier were not found


def test_tolerance_is_the_only_test_without_tier() -> None:
    text = text_of(replace(FACTS, tier="legacy"))
    assert "within 0.05 + 0.05 * |expected|" in text
    assert "tighter" not in text
    assert "units in the last place" not in text


def test_many_tensors_are_counted() -> None:
    many = REFERENCE.model_copy(update={"tensors": REFERENCE.tensors * 20})
    text = text_of(FACTS, many)
    assert text.count("input 0:") == 12
    assert "and 8 more tensors" in text


def test_contradictions_are_gone() -> None:
    prompts = StepPrompts(TASK, FACTS, layout="shared", reference=REFERENCE)
    text = prompts.step(LARGE, ()).text
    assert "you cannot beat" not in text
    assert "of your own" not in text
    assert "mean of 100 runs" not in text
    assert "precision test is tighter: results must be as accurate as float32" in text


def test_the_paper_states_no_facts() -> None:
    plain = replace(FACTS, environment=None)
    for facts in (FACTS, plain):
        prompts = StepPrompts(TASK, facts, layout="paper", reference=REFERENCE)
        assert prompts.step(LARGE, ()) == StepPrompts(TASK, plain, layout="paper").step(LARGE, ())
