"""Forward and backward in one call, and the reference's gradients as the truth."""

from typing import Any

import pytest
import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.common import gradients, trees
from online_judge.cpu import simulated_cuda
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.queue.cache import Question
from online_judge.slots.baselines import CleanTimes
from tests.backward_tasks import sources

from .sources import REFERENCE

TASKS = sources("small")


def reference(source: str, dtype: Any = "fp32", direction: Any = "both") -> Reference:
    return Reference(source, Seeds(b"key"), dtype, cuda=False, direction=direction)


def test_call_gives_outputs_and_gradients_and_keeps_nothing() -> None:
    model = torch.nn.Linear(3, 2)
    x, upstream = torch.randn(4, 3), torch.randn(4, 2)
    with torch.no_grad():
        outputs, (of_x,), of_weights = gradients.calling(model, "both")(x, [upstream])
    torch.testing.assert_close(outputs, model(x).detach())
    torch.testing.assert_close(of_x, upstream @ model.weight.detach())
    torch.testing.assert_close(of_weights["weight"], upstream.T @ x)
    torch.testing.assert_close(of_weights["bias"], upstream.sum(0))
    assert not outputs.requires_grad
    assert not x.requires_grad
    assert model.weight.grad is None


def test_time_between_the_passes_is_reported() -> None:
    seen: list[str] = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append("forward")
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            seen.append("backward")
            return gradient * 2

    call = gradients.ForwardBackward(Noted.apply)
    call.between = lambda: seen.append("between")
    call(torch.ones(2), [torch.ones(2)])
    assert seen == ["forward", "between", "backward"]


def test_forward_direction_calls_the_module_itself() -> None:
    model = torch.nn.Linear(3, 2)
    assert gradients.calling(model, "forward") is model


def test_unused_input_has_the_gradient_zero() -> None:
    def model(x: Any, index: Any, unused: Any) -> Any:
        return x[index]

    given = torch.randn(4), torch.tensor([1, 1]), torch.randn(2)
    _, (of_x, of_unused), _ = gradients.calling(model, "both")(*given, [torch.ones(2)])
    assert of_x.tolist() == [0, 2, 0, 0]
    assert of_unused.tolist() == [0, 0]


def test_output_without_graph_error_suggests_a_fix() -> None:
    with pytest.raises(RuntimeError, match=r"output 0 .* torch.autograd.Function"):
        gradients.calling(lambda x: x.detach(), "both")(torch.ones(2), [torch.ones(2)])


@pytest.mark.parametrize("upstream", [torch.ones(3), torch.ones(1, 2)])
def test_wrong_shape_candidate_outputs_have_zero_gradients(upstream: torch.Tensor) -> None:
    call = gradients.calling(lambda x: x * 2, "both", candidate=True)
    output, (of_x,), _ = call(torch.ones(2), [upstream])
    assert (output.tolist(), of_x.tolist()) == ([2.0, 2.0], [0.0, 0.0])
    call = gradients.calling(lambda x: (x, x), "both", candidate=True)
    outputs, _, _ = call(torch.ones(2), [torch.ones(2)])
    assert len(outputs) == 2


@pytest.mark.parametrize("candidate", [False, True])
def test_upstream_gradients_are_cast_to_the_outputs_dtype(candidate: bool) -> None:
    call = gradients.calling(lambda x: x * 2, "both", candidate=candidate)
    _, (of_x,), _ = call(torch.ones(2), [torch.ones(2).double()])
    assert (of_x.tolist(), of_x.dtype) == ([2.0, 2.0], torch.float32)


def test_oracle_of_a_fixed_dtype_has_gradients() -> None:
    of = reference(REFERENCE.replace("torch.relu(self.linear(x))", "self.linear(x).float()"))
    inputs = of.inputs("one")
    truth = of.oracle(inputs, "one")
    assert truth is not None
    for exact, found in zip(truth.leaves, of.outputs(inputs, "one").leaves, strict=True):
        torch.testing.assert_close(exact.float(), found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("forward", ["x[x > 0]", "(x,) * (1 + self.calls)"])
def test_reference_changing_output_shape_is_a_problem_error(forward: str) -> None:
    source = REFERENCE.replace("return torch.relu(self.linear(x))", f"self.calls += 1; return {forward}")
    source = source.replace("        self.linear =", "        self.calls = 0\n        self.linear =")
    of = reference(source)
    of.inputs("one")
    with pytest.raises(ReferenceFailed, match="other shapes"):
        of.outputs(of.inputs("other"), "other")


def test_reference_without_gradients_is_a_problem_error() -> None:
    source = REFERENCE.replace("torch.relu(self.linear(x))", "self.linear(x).argmax(1)")
    with pytest.raises(ReferenceFailed, match=r"no output of forward.. has a gradient, which both needs"):
        reference(source).inputs("one")


def test_reference_changing_its_input_is_a_problem_error() -> None:
    source = REFERENCE.replace("self.linear(x)", "self.linear(x.mul_(2))")
    with pytest.raises(ReferenceFailed, match="in-place"):
        reference(source).inputs("one")


def test_upstream_gradients_are_hidden_and_fresh() -> None:
    of = reference(TASKS["two_outputs"])
    one, again, other = (of.inputs(trial)[-1] for trial in ("one", "one", "other"))
    assert [leaf.shape for leaf in one] == [(6, 16), (6,)]  # type: ignore[attr-defined]
    pairs = list(zip(one, again, other, strict=True))  # type: ignore[call-overload]
    assert all(torch.equal(left, same) and not torch.equal(left, new) for left, same, new in pairs)


def test_integer_output_gets_no_upstream_gradient() -> None:
    source = REFERENCE.replace("torch.relu(self.linear(x))", "self.linear(x), self.linear(x).argmax(1)")
    of = reference(source)
    inputs = of.inputs("one")
    assert [each is None for each in inputs[-1]] == [False, True]  # type: ignore[attr-defined]
    found = of.outputs(inputs, "one")
    assert gradients.names(found) == [
        "output 0",
        "output 1",
        "the gradient of floating input 0",
        "the gradient of parameter linear.bias",
        "the gradient of parameter linear.weight",
    ]


def test_tolerance_grows_with_the_size_of_gradients_alone() -> None:
    of = reference(REFERENCE)
    found = of.outputs(of.inputs("one"), "one").leaves
    large = [100.0 * torch.ones_like(leaf) for leaf in found]
    assert of.units(large) == pytest.approx([1.0, 100.0, 100.0, 100.0])
    assert of.units([leaf / 1e6 for leaf in large]) == [1.0] * 4
    forward = reference(REFERENCE, direction="forward")
    forward.outputs(forward.inputs("one"), "one")
    assert forward.units([100.0 * torch.ones(3)]) == [1.0]


@pytest.mark.parametrize("name", ["linear", "conv2d_strided", "conv_transposed", "attention"])
@pytest.mark.parametrize(("tier", "least"), [("tf32", 1e-5), ("half", 1e-4)])
def test_rounding_reaches_the_products_of_the_backward_pass(name: str, tier: Any, least: float) -> None:
    of = reference(TASKS[name])
    inputs = of.inputs("one")
    exact = of.outputs(inputs, "one")
    rounded = of.emulated(inputs, "one", tier)
    assert rounded is not None
    for label, one, other in zip(gradients.names(exact), exact.leaves, rounded.leaves, strict=True):
        error = float((one - other).norm() / one.norm())
        if "bias" not in label:  # a sum of upstream gradients
            assert least < error < 0.05, label


def test_gradients_of_half_precision_have_an_oracle() -> None:
    of = reference(TASKS["residual_block"], "bf16")
    inputs = of.inputs("one")
    truth = of.oracle(inputs, "one")
    assert truth is not None
    assert of.oracle_kind == "fp64"
    assert {leaf.dtype for leaf in truth.leaves} == {torch.float64}
    assert {leaf.dtype for leaf in of.outputs(inputs, "one").leaves} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("name", "terms"),
    [("conv2d", 128), ("conv_transposed", 512), ("embedding", 12), ("softmax", 16), ("cross_entropy", 16)],
)
def test_sum_terms_include_the_backward_pass(name: str, terms: int) -> None:
    assert Problem(reference(TASKS[name])).cost.depth == terms


def test_constant_inputs_are_seen_beside_random_upstream_gradients() -> None:
    source = REFERENCE.replace("torch.randn(8, 16)", "torch.ones(8, 16)")
    assert Problem(reference(source)).constant_inputs


def test_direction_is_part_of_the_cache_keys() -> None:
    requests = [
        EvaluationRequest(original_model_src=REFERENCE, direction=each)
        for each in ("forward", "backward", "both")
    ]
    assert [request.model_dump().get("direction") for request in requests] == [None, "backward", "both"]
    assert len({Question.of(request, None, []).exact for request in requests}) == 3
    assert len({CleanTimes.key(request) for request in requests}) == 3


SCALE = """
import torch

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        made = torch.empty(gradient.shape, device="cuda")
        assert made.is_cuda and gradient.is_cuda
        return made.copy_(gradient * 2)

model = Scaled.apply
"""


@pytest.mark.parametrize("executes", [True, False])
def test_backward_sees_the_simulated_gpu_too(executes: bool) -> None:
    with simulated_cuda("sm_90", executes=executes) as dataless, torch.no_grad():
        if dataless is not None:
            dataless.without_small_values()
        space: dict[str, Any] = {}
        exec(SCALE, space)
        x = torch.ones(3, device="cuda")
        result = gradients.calling(space["model"], "both")(x, [torch.ones(3, device="cuda")])
        assert [tuple(leaf.shape) for leaf in trees.take_apart(result).leaves] == [(3,), (3,)]
    if executes:
        assert result[1][0].tolist() == [2, 2, 2]
