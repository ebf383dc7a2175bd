import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from adaexplore.core.wire import BaselineKind
from adaexplore.judge_client.baselines import FILE_NAMES
from online_judge.common import modules
from online_judge.evaluator import costs, reference
from online_judge.evaluator.correctness import deviation, oracles, tiers, variants
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, Seeds
from online_judge.evaluator.timing.baselines.baseline import all_baselines

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
SMALL = {
    "batch_size": "batch_size = 16",
    "in_features": "in_features = 128",
    "out_features": "out_features = 128",
    "in_channels": "in_channels = 8",
    "out_channels": "out_channels = 16",
    "height = width": "height = width = 16",
    "height, width": "height, width = 16, 16",
    "depth, height, width": "depth, height, width = 8, 16, 16",
}
TEMPLATE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x, *rest):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def problem(
    body: str, layers: str = "pass", inputs: str = "torch.randn(8, 16)", dtype: Any = "fp32"
) -> Reference:
    source = TEMPLATE.format(body=body, layers=layers, inputs=inputs)
    return Reference(source, Seeds(b"key"), dtype, cuda=False)


LINEAR = "self.linear = nn.Linear(16, 16)"


class TestOracle:
    def test_oracle_is_computed_in_double_precision(self) -> None:
        of = problem("return self.linear(x)", LINEAR)
        inputs = of.inputs(0)
        eager, oracle = of.outputs(inputs, 0), of.oracle(inputs, 0)
        assert oracle is not None
        assert of.oracle_kind == "fp64"
        assert oracle.leaves[0].dtype == torch.float64
        weight, bias = of.weights["linear.weight"].double(), of.weights["linear.bias"].double()
        assert torch.equal(oracle.leaves[0], torch.nn.functional.linear(inputs[0].double(), weight, bias))
        assert 0 < deviation.error(eager.leaves[0], oracle.leaves[0]).rms < 1e-6

    @pytest.mark.parametrize("dtype", ["fp16", "bf16"])
    def test_half_precision_weights_and_inputs_are_used_exactly(self, dtype: str) -> None:
        of = problem("return x @ self.weight", "self.weight = nn.Parameter(torch.randn(16, 4))", dtype=dtype)
        inputs = of.inputs(0)
        oracle = of.oracle(inputs, 0)
        assert oracle is not None
        weight = of.weights["weight"].to(inputs[0].dtype)
        assert torch.equal(oracle.leaves[0], inputs[0].double() @ weight.double())

    def test_inputs_buffers_and_the_default_dtype_stay(self) -> None:
        of = problem(
            "self.norm(x)\n        x += torch.ones(16)\n        return x", "self.norm = nn.BatchNorm1d(16)"
        )
        inputs = of.inputs(0)
        before = inputs[0].clone()
        first = of.oracle(inputs, 0)
        assert first is not None
        assert torch.equal(inputs[0], before)
        assert first.leaves[0].dtype == torch.float64
        assert torch.get_default_dtype() == torch.float32
        assert of.outputs(inputs, 0).leaves[0].dtype == torch.float32

    def test_new_tensors_and_plain_attributes_are_widened_too(self) -> None:
        of = problem(
            "return torch.matmul(x + torch.zeros(16), self.plain)", "self.plain = torch.randn(16, 3)"
        )
        assert of.oracle(of.inputs(0), 0) is not None
        assert of.oracle_kind == "fp64"

    def test_a_module_that_refuses_doubles_gets_single_precision(self) -> None:
        of = problem("assert x.dtype == torch.float32\n        return self.linear(x)", LINEAR)
        assert of.oracle(of.inputs(0), 0) is not None
        assert of.oracle_kind == "fp32"

    def test_a_slow_module_gets_single_precision(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reference, "_SLOW_ON_CPU_S", 0.0)
        of = problem("return self.linear(x)", LINEAR)
        assert of.oracle(of.inputs(0), 0) is not None
        assert of.oracle_kind == "fp32"

    def test_random_outputs_have_none(self) -> None:
        of = problem("return F.dropout(x, 0.5)")
        assert of.stochastic
        assert of.oracle(of.inputs(0), 0) is None
        assert of.oracle_kind is None
        assert not problem("return x * 2").stochastic

    def test_precision_switches_are_put_back(self) -> None:
        matmul = torch.backends.cuda.matmul
        before = matmul.allow_tf32
        matmul.allow_tf32 = True
        with oracles.highest_precision():
            assert not matmul.allow_tf32
        assert matmul.allow_tf32
        matmul.allow_tf32 = before


class TestWhatForwardDoes:
    @pytest.mark.parametrize(
        ("body", "writes", "aliases"),
        [
            ("return x * 2", False, False),
            ("x.mul_(2)\n        return x.clone()", True, False),
            ("x.data.mul_(2)\n        return x.clone()", True, False),
            ("return x.t()", False, True),
            ("x.relu_()\n        return x", True, True),
            ("return F.relu(x), rest[0].view(-1)", False, True),
        ],
    )
    def test_changed_inputs_and_shared_memory_are_seen(self, body: str, writes: bool, aliases: bool) -> None:
        of = problem(body, inputs="torch.randn(8, 16), torch.arange(4)")
        of.outputs(of.inputs(0), 0)
        assert (of.writes_inputs, of.aliases) == (writes, aliases)

    @pytest.mark.parametrize(
        "tensor",
        [
            "torch.zeros(0)",
            "torch.ones(3, dtype=torch.bool)",
            "torch.ones(1).expand(4)",
            "torch.ones(2, dtype=torch.complex64)",
            "torch.ones(4, 4).t()",
            "torch.tensor(1.0)",
            "torch.ones(3, dtype=torch.uint8)",
        ],
    )
    def test_all_kinds_of_inputs_can_be_watched(self, tensor: str) -> None:
        of = problem("return x + 1.0, rest[0].clone()", inputs=f"torch.randn(3), {tensor}")
        of.outputs(of.inputs(0), 0)
        assert (of.writes_inputs, of.aliases) == (False, False)


def test_a_checksum_tells_changed_and_moved_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_CHUNK", 7)
    monkeypatch.setattr(costs, "_COMPARED", 7)
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.float64):
        x = torch.arange(30).reshape(5, 6).to(dtype)
        x[0, 0], x[0, 2], x[4, 5] = 1, 0, 1
        swapped = x.clone()
        swapped[0, 0], swapped[0, 2] = x[0, 2], x[0, 0]
        later = x.clone()
        later[4, 5] = 0
        assert costs.checksum(x) == costs.checksum(x.clone()) == costs.checksum(x.t().contiguous().t())
        assert costs.same_bits(x, x.clone())
        for other in (swapped, later):
            assert costs.checksum(x) != costs.checksum(other)
            assert not costs.same_bits(x, other)
    assert costs.same_bits(torch.tensor([float("nan")]), torch.tensor([float("nan")]))


class TestReweigh:
    LAYERS = (
        "self.linear = nn.Linear(16, 16); self.norm = nn.BatchNorm1d(16); self.scale = nn.Parameter("
        "torch.rand(16) + 0.1); self.register_buffer('mask', torch.ones(16, 16).tril()); "
        "self.register_buffer('table', torch.randn(16)); self.register_buffer('index', torch.arange(16)); "
        "self.zero = nn.Parameter(torch.zeros(16))"
    )
    BODY = "return self.norm(self.linear(x)) * self.scale + self.table + self.zero"

    def test_other_weights_are_used_until_restored(self) -> None:
        of = problem(self.BODY, self.LAYERS)
        inputs = of.inputs(0)
        before = of.outputs(inputs, 0).leaves[0].clone()
        fresh = of.reweigh("stale")
        after = of.outputs(inputs, 0).leaves[0].clone()
        assert list(fresh) == list(of.weights)
        assert float((after - before).abs().max()) > 0.1
        plain = torch.nn.functional.linear(inputs[0], fresh["linear.weight"], fresh["linear.bias"])
        normed = torch.nn.functional.batch_norm(
            plain, None, None, fresh["norm.weight"], fresh["norm.bias"], training=True
        )
        again = normed * fresh["scale"] + fresh["table"] + fresh["zero"]
        torch.testing.assert_close(after, again, rtol=1e-5, atol=1e-5)
        of.restore_weights()
        assert torch.equal(of.outputs(inputs, 0).leaves[0], before)

    def test_each_draw_is_its_own_and_repeats_itself(self) -> None:
        of = problem(self.BODY, self.LAYERS)
        first, second, again = of.reweigh("a"), of.reweigh("b"), of.reweigh("a")
        assert not torch.equal(first["scale"], second["scale"])
        assert torch.equal(first["scale"], again["scale"])

    def test_kinds_are_kept(self) -> None:
        of = problem(self.BODY, self.LAYERS)
        fresh = of.reweigh("kinds")
        for name in ("norm.num_batches_tracked", "mask", "index"):
            assert torch.equal(fresh[name], of.weights[name]), name
        learned = ("linear.weight", "norm.weight", "norm.bias", "scale", "table", "zero")
        for name in (*learned, "norm.running_mean", "norm.running_var"):
            assert not torch.equal(fresh[name], of.weights[name]), name
            assert fresh[name].dtype == of.weights[name].dtype
        assert float(fresh["scale"].min()) > 0
        assert float(fresh["norm.weight"].min()) > 0
        assert float(fresh["norm.running_var"].min()) > 0
        for name in ("norm.bias", "zero"):  # a new bias: to leave it out must exceed any usual tolerance
            assert float(fresh[name].abs().min()) >= 0.25, name
        assert float(fresh["linear.weight"].std()) == pytest.approx(
            float(of.weights["linear.weight"].std()), rel=0.2
        )

    @pytest.mark.parametrize("dtype", ["fp32", "bf16"])
    def test_redraw_also_replaces_plain_tensors(self, dtype: str) -> None:
        layers = (
            "self.plain = torch.randn(16); self.register_buffer('kept', torch.randn(16), persistent=False)"
            "; self.norm = nn.BatchNorm1d(16)"
        )
        of = problem("return self.norm(x) * self.plain + self.kept", layers, dtype=dtype)
        inputs = of.inputs(0)
        before = of.outputs(inputs, 0).leaves[0]
        of.reweigh("other")
        weights, seed = of.redraw("other")
        modules.seed_everything(seed)
        apart = modules.in_precision(of._module.Model(), of.dtype)
        apart.load_state_dict(weights)
        assert torch.equal(of.outputs(inputs, 0).leaves[0], apart(inputs[0]))
        of.restore_weights()
        assert torch.equal(of.outputs(inputs, 0).leaves[0], before)

    def test_new_weights_are_returned_in_full_precision(self) -> None:
        of = problem("return self.linear(x)", LINEAR, dtype="bf16")
        fresh = of.reweigh("half")
        assert fresh["linear.weight"].dtype == torch.float32
        inputs = of.inputs(0)
        torch.testing.assert_close(
            of.outputs(inputs, 0).leaves[0],
            torch.nn.functional.linear(
                inputs[0], fresh["linear.weight"].bfloat16(), fresh["linear.bias"].bfloat16()
            ),
        )

    def test_one_tensor_under_two_names_stays_one(self) -> None:
        layers = "self.a = nn.Linear(16, 16); self.b = nn.Linear(16, 16); self.b.weight = self.a.weight"
        fresh = problem("return self.b(self.a(x))", layers).reweigh("tied")
        assert torch.equal(fresh["a.weight"], fresh["b.weight"])

    def test_slices_of_one_buffer_stay_apart(self) -> None:
        layers = (
            "flat = torch.randn(20, 16); self.a = nn.Parameter(flat[:16]); self.b = nn.Parameter(flat[16:])"
        )
        of = problem("return x @ self.a @ self.b.T", layers)
        fresh = of.reweigh("slices")
        assert (fresh["a"].shape, fresh["b"].shape) == ((16, 16), (4, 16))
        assert not torch.equal(fresh["a"], of.weights["a"])
        inputs = of.inputs(0)
        want = inputs[0] @ fresh["a"] @ fresh["b"].T
        torch.testing.assert_close(of.outputs(inputs, 0).leaves[0], want)

    def test_overlapping_weights_stay_consistent(self) -> None:
        layers = (
            "flat = torch.randn(16, 16); self.a = nn.Parameter(flat); self.register_buffer('b', flat[:4])"
        )
        of = problem("return x @ self.a @ self.b.T", layers)
        fresh = of.reweigh("overlap")
        assert torch.equal(fresh["a"][:4], fresh["b"])

    def test_scale_applies_to_what_changes(self) -> None:
        of = problem(self.BODY, self.LAYERS)
        once, twice = of.reweigh("scale"), of.reweigh("scale", 2.0)
        torch.testing.assert_close(twice["scale"], 2 * once["scale"])
        assert torch.equal(twice["mask"], once["mask"])


class TestCost:
    def test_bytes_operations_and_terms_are_counted(self) -> None:
        of = problem("return self.linear(x)", "self.linear = nn.Linear(64, 32)", "torch.randn(8, 64)")
        cost = of.cost(of.inputs(0))
        assert cost.output_bytes == 8 * 32 * 4
        assert cost.read_bytes == (8 * 64 + 64 * 32 + 32) * 4
        assert cost.flops == 2 * 8 * 64 * 32
        assert cost.depth == 64

    def test_memory_that_repeats_or_is_shared_counts_once(self) -> None:
        x = torch.randn(100)
        assert costs.nbytes([x, x.view(10, 10), x[:50], torch.ones(1).expand(100)]) == 404
        of = problem("return x, x.view(10, 10), rest[0] + 1", inputs="torch.randn(100), torch.randn(5)")
        assert of.cost(of.inputs(0)).output_bytes == 20

    @pytest.mark.parametrize(
        ("body", "layers", "inputs", "depth"),
        [
            ("return F.relu(x)", "pass", "torch.randn(64, 64)", 1),
            ("return x.mean(1)", "pass", "torch.randn(8, 500)", 500),
            ("return torch.softmax(x, -1)", "pass", "torch.randn(8, 500)", 500),
            ("return x.cumsum(1)", "pass", "torch.randn(8, 500)", 500),
            ("return F.layer_norm(x, (500,))", "pass", "torch.randn(8, 500)", 500),
            ("return torch.bmm(x, x)", "pass", "torch.randn(2, 50, 50)", 50),
            (
                "return self.conv(x)",
                "self.conv = nn.Conv2d(6, 4, 3, groups=2)",
                "torch.randn(2, 6, 9, 9)",
                27,
            ),
            ("return self.conv(x)", "self.conv = nn.ConvTranspose1d(6, 4, 5)", "torch.randn(2, 6, 9)", 30),
        ],
    )
    def test_the_longest_sum_is_found(self, body: str, layers: str, inputs: str, depth: int) -> None:
        of = problem(body, layers, inputs)
        assert of.cost(of.inputs(0)).depth == depth


class TestBaselineCalls:
    def test_eager_is_the_module(self) -> None:
        of = problem("return self.linear(x)", LINEAR)
        inputs = of.inputs(0)
        of.begin(0)
        assert torch.equal(of.call("eager")(*inputs), of.outputs(inputs, 0).leaves[0])

    def test_compiled_calls_are_made_once_a_kind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        modes: list[str | None] = []

        def compile_(model: Callable[..., Any], mode: str | None = None) -> Callable[..., Any]:
            modes.append(mode)
            return lambda *inputs: model(*inputs)

        monkeypatch.setattr(torch, "compile", compile_)
        of = problem("return x * 2")
        assert of.call("compile") is of.call("compile")
        of.call("max-autotune")
        assert modes == [None, "max-autotune"]

    def test_each_kind_of_the_wire_has_its_file(self) -> None:
        assert all_baselines().keys() == set(get_args(BaselineKind)) == FILE_NAMES.keys()

    def test_unknown_kind_is_no_other_one(self) -> None:
        with pytest.raises(KeyError, match="fastest"):
            problem("return x * 2").call("fastest")  # type: ignore[arg-type]

    def test_a_failing_compilation_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*inputs: Any) -> None:
            raise RuntimeError("no backend\nand more")

        monkeypatch.setattr(torch, "compile", lambda model, mode=None: fail)
        of = problem("return x * 2")
        with pytest.raises(
            ReferenceFailed, match=r"^torch\.compile \(default\) fails: RuntimeError: no backend$"
        ):
            of.call("compile")


def _recorded() -> list[Any]:
    found: list[Any] = []
    for file in sorted(TRACES.glob("kb-l2-p*.json")):
        source = json.loads(file.read_text())["reference_src"]
        for name, replacement in SMALL.items():
            source = re.sub(rf"^{name}\s*=.*$", replacement, source, flags=re.M)
        found.append(pytest.param(source, id=file.stem))
    return found or [pytest.param("", marks=pytest.mark.skip("no recorded problems beside the repository"))]


@pytest.mark.parametrize("source", _recorded())
def test_recorded_problems_have_oracles_variants_and_other_weights(source: str) -> None:
    of = Reference(source, Seeds(b"recorded"), "fp32", cuda=False)
    inputs = of.inputs(0)
    want = of.outputs(oracles.copied(inputs), 0).leaves
    oracle = of.oracle(inputs, 0)
    assert oracle is not None
    assert of.oracle_kind == "fp64"
    eager = deviation.error(want[0], oracle.leaves[0])
    assert tiers.strict_limit(eager).allows(eager)
    assert not of.writes_inputs
    for variant in variants.VARIANTS:
        changed = variant.apply(inputs, torch.Generator().manual_seed(1))
        assert variants.usable(of.outputs(changed, 0).leaves, want), variant.name
    of.reweigh("recorded")
    assert torch.isfinite(of.outputs(oracles.copied(inputs), 0).leaves[0]).all()
    of.restore_weights()
    assert torch.equal(of.outputs(inputs, 0).leaves[0], want[0])


def test_inputs_too_large_for_the_gpu_fail() -> None:
    """Under one seed the CPU makes others: a second call would be another problem."""
    source = TEMPLATE.format(body="return x", layers="pass", inputs="torch.zeros(3)")
    full = "calls = []\ndef get_inputs():\n    calls.append(1)\n    if len(calls) == 1:\n        "
    full += "raise torch.OutOfMemoryError('CUDA out of memory')"
    of = Reference(source.replace("def get_inputs():", full), Seeds(b"key"), "fp32", cuda=False)
    of.cuda = True
    with pytest.raises(NotEnoughMemory, match="out of memory"):
        of.inputs(0)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_plain_module_tensors_are_cast_to_half_precision(dtype: Any) -> None:
    of = problem("return x @ self.start", "self.start = torch.randn(16, 16)", dtype=dtype)
    assert of.outputs(of.inputs(0), 0).leaves[0].dtype == modules.DTYPES[dtype]


def test_plain_module_tensors_keep_dtype_in_single_precision() -> None:
    of = problem("return x.double() @ self.start", "self.start = torch.randn(16, 16, dtype=torch.float64)")
    assert of.outputs(of.inputs(0), 0).leaves[0].dtype == torch.float64


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("torch.empty(2, device='meta')", "meta"),
        ("torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])", "nested"),
        ("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)", "quantized"),
    ],
)
def test_incomparable_outputs_are_the_references_fault(output: str, kind: str) -> None:
    of = problem(f"return {output}")
    with pytest.raises(ReferenceFailed, match=f"a {kind} tensor"):
        of.outputs(of.inputs(0), 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_triton_reference_without_a_gpu_says_so() -> None:
    module = TEMPLATE.format(body="kernel[(1,)](x)", layers="pass", inputs="torch.ones(2)")
    source = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n" + module
    of = Reference(source, Seeds(b"key"), "fp32", cuda=False)
    with pytest.raises(ReferenceFailed, match="Triton kernels need a GPU"):
        of.outputs(of.inputs(0), 0)
