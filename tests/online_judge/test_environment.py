"""What the judge states about itself is compared with its sources."""

from __future__ import annotations

import importlib
import inspect
import statistics
from collections.abc import Iterator
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
import triton
import triton.language as tl

from adaexplore.core.environment import Environment
from adaexplore.core.wire import Tf32Policy, Tier
from online_judge.checks.facts.precision import SINGLE_ULP, Error
from online_judge.common import modules
from online_judge.common.gpu_peaks import peak
from online_judge.evaluator.correctness import oracles, tiers
from online_judge.evaluator.timing.interleaved import MIN_SAMPLES, Side
from online_judge.evaluator.timing.setup import WARMUP_S
from online_judge.processes.environment import device_facts, stated
from online_judge.sandbox import process_spec

from .live import LiveJudge
from .sources import REFERENCE, with_forward

FOUND = stated()
H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    shared_memory_per_block_optin=232448,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    L2_cache_size=62914560,
    total_memory=150_000_000_000,
)
OBSERVER = with_forward(
    """
assert not torch.is_grad_enabled()
assert self.training
assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32
assert os.environ["TRITON_F32_DEFAULT"] == "ieee"
assert x.is_contiguous() and tuple(x.shape) == (8, 16)
return torch.relu(self.linear(x)).t().contiguous().t()
""".strip()
)


@pytest.fixture
def flags() -> Iterator[None]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    yield
    matmul.allow_tf32, cudnn.allow_tf32 = before


def test_versions_are_those_of_the_packages() -> None:
    assert (FOUND.versions["torch"], FOUND.versions["triton"]) == (torch.__version__, triton.__version__)
    assert FOUND.versions.get("cuda") == torch.version.cuda


def test_triton_names_exist_and_removed_ones_do_not() -> None:
    assert FOUND.triton is not None
    for module, names in FOUND.triton.names.items():
        assert names
        assert all(hasattr(importlib.import_module(module), name) for name in names)
    assert {"dot", "range", "load"} <= set(FOUND.triton.names["triton.language"])
    assert "tanh" in FOUND.triton.names["triton.language.extra.cuda.libdevice"]
    assert FOUND.triton.gone
    for path in FOUND.triton.gone:
        module, _, name = path.rpartition(".")
        assert not hasattr(importlib.import_module(module), name)


def test_stated_parameters_are_those_kernels_may_pass() -> None:
    assert FOUND.triton is not None
    stated = FOUND.triton.parameters
    assert stated["program_id"] == "axis"
    assert stated["load"].startswith("pointer, mask=None, other=None")
    assert stated["zeros"] == "shape, dtype"  # a function with @triton.jit
    assert not any("_semantic" in text or "_generator" in text for text in stated.values())
    assert {"num_warps", "num_stages", "maxnreg"} <= set(FOUND.triton.launch_options)


def test_options_of_range_and_descriptors_are_tritons() -> None:
    assert FOUND.triton is not None
    parameters = list(inspect.signature(tl.range.__init__).parameters)
    assert parameters == ["self", "arg1", "arg2", "step", *FOUND.triton.range_options]
    assert set(FOUND.triton.range_note.split()) <= set(str(tl.range.__doc__).split())
    assert ("triton.language.make_tensor_descriptor" in FOUND.triton.descriptors) is hasattr(
        tl, "make_tensor_descriptor"
    )


def test_precision_test_numbers_match_the_tiers() -> None:
    test = FOUND.precision
    assert test is not None
    eager = Error(rms=1e-3, peak=1e-2, noise=1e-3, drift=0.0)
    strict = tiers.strict_limit(eager)
    assert strict.rms == pytest.approx(test.strict_times * eager.rms)
    exact = Error(rms=0.0, peak=0.0, noise=0.0, drift=0.0)
    assert tiers.strict_limit(exact).rms == pytest.approx(test.strict_floor_ulp * SINGLE_ULP)
    rounded = Error(rms=1.0, peak=1.0, noise=1.0, drift=0.0)
    assert tiers.emulated_limit(strict, [rounded]).rms == pytest.approx(test.rounded_times)
    for tier, bits in test.mantissa_bits.items():
        value = torch.tensor([1.0 + 2.0**-bits, 1.0 + 2.0 ** -(bits + 2)])
        assert oracles.ROUNDINGS[tier](value).tolist() == [1.0 + 2.0**-bits, 1.0]
        noise = tiers.constant_limit(tier, tiers.strict_limit(exact), exact).noise
        assert noise == pytest.approx(test.noise[tier])
    below: tuple[Tier, ...] = ("tf32", "half")
    assert tuple(test.mantissa_bits) == below


@pytest.mark.parametrize("policy", get_args(Tf32Policy))
def test_flags_are_those_that_processes_set(
    policy: Tf32Policy, flags: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FOUND.checks is not None
    told = FOUND.checks.flags[policy]
    modules.apply_precision(policy)
    assert torch.backends.cuda.matmul.allow_tf32 is told.allow_tf32
    assert torch.backends.cudnn.allow_tf32 is told.allow_tf32
    environment: dict[str, str] = {}
    monkeypatch.setattr(process_spec.os, "environ", environment)
    process_spec.assign(tf32=policy)
    assert environment.get("TRITON_F32_DEFAULT") == told.dot


def test_stated_timing_statistic_is_the_one_used() -> None:
    assert FOUND.timing is not None
    assert (
        getattr(statistics, FOUND.timing.statistic)([1.0, 2.0, 9.0]) == Side(calls=[[1.0, 2.0, 9.0]]).gpu_ms
    )
    assert FOUND.timing.least_calls == MIN_SAMPLES
    assert FOUND.timing.warmup_s == WARMUP_S


def test_facts_of_a_gpu_are_its_properties() -> None:
    found, known = device_facts(H200), peak("NVIDIA H200")
    assert known is not None
    assert (found.name, found.capability, found.target) == ("NVIDIA H200", "9.0", "sm_90")
    assert (found.multiprocessors, found.shared_bytes_per_block) == (132, 232448)
    assert (found.registers_per_multiprocessor, found.threads_per_multiprocessor) == (65536, 2048)
    assert (found.l2_bytes, found.memory_bytes) == (62914560, 150_000_000_000)
    assert (found.bytes_per_s, found.flops) == (known.bytes_per_s, known.flops)


def test_unknown_gpu_facts_are_absent() -> None:
    found = device_facts(SimpleNamespace(name="NVIDIA X", major=12, minor=0, multi_processor_count=4))
    assert found.multiprocessors == 4
    assert (found.shared_bytes_per_block, found.l2_bytes, found.bytes_per_s) == (None, None, None)
    assert found.flops == {}


def test_judge_without_gpu_states_its_environment(judge: LiveJudge) -> None:
    found = Environment.model_validate(judge.client.get("/v2/environment").json())
    assert (found.devices, found.timing) == ([], None)
    assert (found.triton, found.precision, found.checks) == (FOUND.triton, FOUND.precision, FOUND.checks)
    assert found.hardware == judge.client.get("/health").json()["hardware"]


def test_a_candidate_meets_the_conditions_that_are_stated(judge: LiveJudge) -> None:
    assert FOUND.checks is not None
    assert (FOUND.checks.gradients, FOUND.checks.mode) == (False, "constructed")
    assert (FOUND.checks.inputs, FOUND.checks.output_strides) == ("get_inputs", "any")
    answer = judge.evaluate(OBSERVER, tf32="off", num_correct_trials=3)
    assert answer["metadata"]["status"] == "passed", answer["metadata"].get("feedback")


def test_problem_report_lists_tensors_of_a_call(judge: LiveJudge) -> None:
    report = judge.post("/v2/problem", {"original_model_src": REFERENCE}).json()
    found = [(each["role"], each["name"], each["shape"], each["dtype"]) for each in report["tensors"]]
    assert found == [
        ("input", "0", [8, 16], "float32"),
        ("weight", "linear.weight", [16, 16], "float32"),
        ("weight", "linear.bias", [16], "float32"),
        ("output", "0", [8, 16], "float32"),
    ]
    assert report["tensors"][0]["bytes"] == 8 * 16 * 4
