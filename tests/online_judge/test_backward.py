"""Candidates whose gradients are judged, on the CPU path."""

from typing import Any

import pytest

from tests.backward_tasks import sources
from tool_scripts.judge_bench.candidates import as_candidate

from .live import LiveJudge
from .sources import REFERENCE, with_forward

TASKS = sources("small")
TRITON = """
import triton
import triton.language as tl

@triton.jit
def masked_kernel(gradient_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = tl.load(y_ptr + offsets, mask=mask)
    gradient = tl.load(gradient_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(y > 0, gradient, 0.0), mask=mask)

class LinearRelu(torch.autograd.Function):
    kept = []

    @staticmethod
    def forward(ctx, x, weight, bias):
        y = torch.relu(torch.addmm(bias, x, weight.T))
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, weight, y = ctx.saved_tensors
        masked = torch.empty_like(y)
        gradient = gradient.contiguous()
        masked_kernel[(triton.cdiv(y.numel(), 64),)](gradient, y, masked, y.numel(), BLOCK=64)
        found = masked @ weight, masked.T @ x, masked.sum(0)
        return found
"""
APPLIED = "return LinearRelu.apply(x, self.linear.weight, self.linear.bias)"
HONEST = with_forward(APPLIED, TRITON)


def changed(old: str, new: str) -> str:
    assert old in HONEST
    return HONEST.replace(old, new)


def judged(judge: LiveJudge, candidate: str, reference: str = REFERENCE, **fields: Any) -> dict[str, Any]:
    asked = {"direction": "both", "num_correct_trials": 2, "tier": "strict"} | fields
    return judge.evaluate(candidate, reference, **asked)


def test_own_autograd_function_passes(judge: LiveJudge) -> None:
    for direction in ("both", "backward"):
        answer = judged(judge, HONEST, direction=direction)
        assert answer["correctness"] is True, answer["metadata"]
        assert answer["metadata"].get("integrity", []) == []
        assert answer["metadata"]["tier"] == "strict"


WRONG = {
    "mask": ("tl.where(y > 0, gradient, 0.0)", "gradient", "the gradient of floating input 0"),
    "bias": ("masked.sum(0)", "masked.mean(0)", "the gradient of parameter linear.bias"),
    "zeros": ("return found", "return tuple(map(torch.zeros_like, found))", "the gradient of"),
    "stale": ("return found", "LinearRelu.kept += [found]; return LinearRelu.kept[0]", "the gradient of"),
    "output": ("return y\n\n", "return y * 0.5\n\n", "output 0"),
    "graph": (APPLIED, "with torch.no_grad(): " + APPLIED, "output 0 of forward() has no gradient"),
    "shape": (APPLIED, APPLIED + "[:, :8]", "wrong_shape: Output 0 shape mismatch"),
    "dtype": (APPLIED, APPLIED + ".double()", "wrong_dtype: Output 0 dtype mismatch"),
    "number": (APPLIED, "y = " + APPLIED[7:] + "; return y, y", "wrong_shape: "),
    "gradient-shape": ("masked.sum(0)", "masked.sum(1)", "wrong_shape during forward"),
    "gradient-number": ("return found", "return found[:2]", "wrong_shape during forward"),
    "frozen": ("features, features)", "features, features).requires_grad_(False)", "structure"),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_wrong_gradient_is_named(judge: LiveJudge, old: str, new: str, said: str) -> None:
    answer = judged(judge, changed(old, new))
    assert answer["correctness"] is False
    assert said in answer["metadata"]["feedback"], answer["metadata"]


def test_changed_upstream_gradient_is_seen(judge: LiveJudge) -> None:
    answer = judged(judge, changed("return found", "gradient.zero_()\n        return found"))
    assert "inputs_changed" in answer["metadata"]["integrity"]


def test_replaced_autograd_is_seen(judge: LiveJudge) -> None:
    top = f"{TRITON}\nold = torch.autograd._engine_run_backward\n"
    replaced = "torch.autograd._engine_run_backward = lambda *given, **named: old(*given, **named)\n"
    answer = judged(judge, with_forward(APPLIED, top + replaced))
    evidence = str(answer["metadata"]["integrity_evidence"])
    assert "torch.autograd._engine_run_backward" in evidence


def test_compile_job_compiles_kernels_of_the_backward_pass(judge: LiveJudge) -> None:
    bad = changed("tl.where(y > 0, gradient, 0.0)", "tl.nothing(gradient)")
    for source, ok in ((HONEST, True), (bad, False)):
        request = {
            "original_model_src": REFERENCE,
            "custom_model_src": source,
            "backend": "triton",
            "direction": "backward",
        }
        job = judge.post("/v2/jobs", {"kind": "compile", "request": request}).json()["id"]
        report = judge.client.get(f"/v2/jobs/{job}", params={"wait": 60}).json()["report"]
        assert (report["ok"], report["kernel"]) == (ok, None if ok else "masked_kernel"), report


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_reference_passes_as_its_own_candidate(judge: LiveJudge, name: str) -> None:
    for dtype in ("fp32", "bf16"):
        fields = {"dtype_str": dtype, "tier": "legacy", "num_correct_trials": 1}
        answer = judged(judge, as_candidate(TASKS[name]), TASKS[name], **fields)
        assert answer["correctness"] is True, answer["metadata"]
