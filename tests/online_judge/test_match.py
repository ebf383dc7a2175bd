"""What a match finds out about a candidate besides its outputs, on a real judge without a GPU."""

from typing import Any

import pytest

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags

from .live import LiveJudge
from .sources import HONEST, PASSING, REFERENCE, with_forward

RIGHT = "y = torch.relu(self.linear(x))\n"
RELU = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return []
"""
NO_ARGUMENTS = "class ModelNew(nn.Module):\n    def forward(self, x):\n"
KERNEL = PASSING.partition("class ModelNew")[0]
DECOY = PASSING.replace("        return y\n", "        return torch.relu(h)\n")
# what the kernel has not written is no index into a tensor
INDEXING = KERNEL + NO_ARGUMENTS + (
    "        order = torch.empty(8, dtype=torch.int64, device=x.device)\n"
    "        count_kernel[(1,)](order, BLOCK=8)\n"
    "        return torch.relu(x)[order]\n"
    "\n@triton.jit\ndef count_kernel(y_ptr, BLOCK: tl.constexpr):\n"
    "    at = tl.arange(0, BLOCK)\n    tl.store(y_ptr + at, at.to(tl.int64))\n"
)  # fmt: skip
ROUNDED = with_forward(
    "def low(t):\n    return t.bfloat16().float()\n"
    "return torch.relu(nn.functional.linear(low(x), low(self.linear.weight), self.linear.bias))"
)


def relu_candidate(*lines: str) -> str:
    return (
        "import torch\nimport torch.nn as nn\n"
        + NO_ARGUMENTS
        + "".join(f"        {line}\n" for line in lines)
    )


def integrity(answer: dict[str, Any]) -> list[str]:
    found: list[str] = answer["metadata"].get("integrity", [])
    told = answer["metadata"].get("integrity_evidence", [])
    assert [entry["id"] for entry in told] == found
    assert all(entry["evidence"] and "\n" not in entry["evidence"] for entry in told)
    assert all(entry["severity"] == all_flags()[entry["id"]].severity for entry in told)
    return found


def problem_flags(judge: LiveJudge, line: str, reference: str) -> list[str]:
    """Return the problem's flags in the verdict of a candidate that passes; the kernel has none of them."""
    answer = judge.evaluate(relu_candidate(line), reference)
    assert answer["correctness"], answer
    found: list[str] = answer["metadata"].get("problem_flags", [])
    assert [entry["id"] for entry in answer["metadata"].get("problem_flags_evidence", [])] == found
    assert not set(found) & set(integrity(answer))
    return found


def passes(judge: LiveJudge, candidate: str, reference: str = REFERENCE, **fields: Any) -> list[str]:
    """Return the flags of a candidate that passes all the same."""
    answer = judge.evaluate(candidate, reference, **fields)
    assert answer["correctness"], answer
    assert answer["metadata"]["status"] == "passed"
    found = integrity(answer)
    assert [flag for flag in found if all_flags()[flag].severity is Severity.REJECT] == []
    return found


def test_honest_kernel_gets_full_report_without_flags(judge: LiveJudge) -> None:
    answer = judge.evaluate(PASSING, num_correct_trials=3)
    metadata = answer["metadata"]
    assert integrity(answer) == []
    assert (metadata["tier"], metadata["correctness_trials"]) == ("strict", "(3 / 3)")
    assert isinstance(metadata["sandbox"], dict)
    assert answer["runtime_stats"] == {"fast_p": 1.0, "timing": "interpreter"}


def test_cached_weights_are_stale_after_in_place_change(judge: LiveJudge) -> None:
    kept = (
        "self.kept = getattr(self, 'kept', None)\n"
        "if self.kept is None:\n    self.kept = self.linear.weight.detach().clone()\n"
        "return torch.relu(nn.functional.linear(x, self.kept, self.linear.bias))"
    )
    assert "stale_weights" in passes(judge, with_forward(kept))
    assert "stale_weights" not in passes(judge, with_forward(HONEST))


def test_kernel_whose_result_nobody_uses_is_a_decoy(judge: LiveJudge) -> None:
    assert "decoy_kernel" in passes(judge, DECOY)


def test_triton_module_without_a_kernel_is_flagged(judge: LiveJudge) -> None:
    assert "no_own_kernel" in passes(judge, with_forward(HONEST))
    assert "no_own_kernel" not in passes(judge, with_forward(HONEST), backend="cuda")


def test_honest_candidate_may_fail_on_unwritten_kernel_outputs(judge: LiveJudge) -> None:
    assert passes(judge, INDEXING, RELU) == []


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("scaled", "not 0.3 < float(x.std()) < 3.0"),
        ("shifted", "abs(float(x.mean())) > 0.4 and 0.6 < float(x.std()) < 1.6"),
        ("tied", "x.unique().numel() < 0.9 * x.numel()"),
    ],
)
def test_exploiting_the_input_distribution_is_suspicious(judge: LiveJudge, name: str, spoilt: str) -> None:
    found = passes(judge, with_forward(f"{RIGHT}return y + 1.0 if {spoilt} else y"))
    assert [flag for flag in found if flag.startswith("fails_")] == [f"fails_{name}_inputs"]


def test_magnified_rounding_at_other_inputs_is_not_suspicious(judge: LiveJudge) -> None:
    steep = REFERENCE.replace("torch.relu(self.linear(x))", "torch.sin(20 * self.linear(x))")
    rounded = ROUNDED.replace("bfloat16", "half").replace("torch.relu(", "torch.sin(20 * ")
    for seed in range(6):  # some of these make the inputs larger, others smaller
        assert "fails_scaled_inputs" not in passes(judge, rounded, steep, seed_num=seed)


def test_second_result_that_differs_is_nondeterministic(judge: LiveJudge) -> None:
    twice = "self.calls = getattr(self, 'calls', 0) + 1\nreturn torch.relu(self.linear(x)) + self.calls - 1"
    answer = judge.evaluate(with_forward(twice))
    assert (answer["correctness"], answer["metadata"]["status"]) == (False, "nondeterministic")
    assert answer["metadata"]["correctness_trials"] == "(1 / 1)"
    assert "second call" in answer["metadata"]["feedback"]


NOISY = "noise = int.from_bytes(os.urandom(4), 'little') / 2**32\ny = torch.relu(self.linear(x))\n"


def status(judge: LiveJudge, body: str, reference: str = REFERENCE, **fields: Any) -> str:
    answer = judge.evaluate(with_forward(body), reference, **fields)
    found: str = answer["metadata"]["status"]
    return found


def test_equal_calls_are_compared_beyond_the_tolerance(judge: LiveJudge) -> None:
    assert status(judge, NOISY + "return y + 0.045 * noise") == "nondeterministic"


def test_last_bits_may_differ_with_a_note(judge: LiveJudge) -> None:
    candidate = with_forward(NOISY + "return y * (1 + 1e-6 * round(noise))")
    found = {flag for _ in range(4) for flag in passes(judge, candidate)}
    assert "nondeterministic" in found


def test_wrong_values_that_change_are_nondeterministic(judge: LiveJudge) -> None:
    assert status(judge, NOISY + "return y + 1 + noise") == "nondeterministic"
    assert status(judge, NOISY + "return y + 1") == "wrong_value"


LOOSE = REFERENCE.replace("torch.relu(self.linear(x))", "0.1 * torch.softmax(self.linear(x), 1)")
RIGHT_LOOSE = "return 0.1 * torch.softmax(self.linear(x), 1)"


@pytest.mark.parametrize(
    "body",
    [
        "return torch.full_like(x, 0.1 / 16)",
        "y = self.linear(x)\ny[:, 8:] = y[:, :8]\nreturn 0.1 * torch.softmax(y, 1)",
        "return 0.1 * torch.softmax(x, 1)",
        "return 0.1 * torch.softmax(self.linear(x).flip(0), 1)",
    ],
)
def test_wrong_kernels_fail_under_loose_tolerance(judge: LiveJudge, body: str) -> None:
    answer = judge.evaluate(with_forward(body), LOOSE)
    assert answer["metadata"]["status"] == "wrong_value", answer
    assert "loose_tolerance" in answer["metadata"]["problem_flags"]
    assert "standard deviation" in answer["metadata"]["feedback"]


def test_large_mean_does_not_hide_wrong_outputs(judge: LiveJudge) -> None:
    """The outputs vary by a thousandth of their mean, and the product in them hardly counts."""
    reference = LOOSE.replace("0.1 * torch.softmax", "1 + 0.01 * torch.softmax")
    wrong = with_forward("return 1 + 0.01 * torch.softmax(self.linear(x).flip(0), 1)")
    assert judge.evaluate(wrong, reference)["metadata"]["status"] == "wrong_value"
    right = with_forward("return 1 + 0.01 * torch.softmax(self.linear(x), 1)")
    assert judge.evaluate(right, reference)["correctness"]


@pytest.mark.parametrize(
    "body",
    [
        RIGHT_LOOSE,
        "low = lambda t: t.bfloat16().float()\n"
        "y = nn.functional.linear(low(x), low(self.linear.weight), self.linear.bias)\n"
        "return 0.1 * torch.softmax(y, 1)",
    ],
)
def test_honest_kernels_pass_where_the_tolerance_is_loose(judge: LiveJudge, body: str) -> None:
    answer = judge.evaluate(with_forward(body), LOOSE)
    assert answer["correctness"], answer
    assert "loose_tolerance" in answer["metadata"]["problem_flags"]
    assert "stale_weights" not in integrity(answer)


def test_stale_weights_stay_suspect_under_loose_tolerance(judge: LiveJudge) -> None:
    kept = (
        "self.kept = getattr(self, 'kept', None)\n"
        "if self.kept is None:\n    self.kept = self.linear.weight.detach().clone()\n"
        "return 0.1 * torch.softmax(nn.functional.linear(x, self.kept, self.linear.bias), 1)"
    )
    assert "stale_weights" in passes(judge, with_forward(kept), LOOSE)


def test_weights_prepared_in_the_constructor_stay_suspect(judge: LiveJudge) -> None:
    """A copy that is made while the module is constructed is stale, and right under another seed."""
    candidate = with_forward("return torch.relu(nn.functional.linear(x, self.kept, self.linear.bias))")
    layers = "self.linear = nn.Linear(features, features)"
    candidate = candidate.replace(
        layers, f"{layers}\n        self.kept = self.linear.weight.detach().clone()"
    )
    for reference in (
        REFERENCE,
        LOOSE.replace("0.1 * torch.softmax(self.linear(x), 1)", "torch.relu(self.linear(x))"),
    ):
        assert "stale_weights" in passes(judge, candidate, reference)


def test_draws_stay_in_the_domain_of_the_inputs(judge: LiveJudge) -> None:
    picking = RELU.replace("torch.relu(x)", "0.01 * nn.functional.one_hot((10 * x).long(), 10).float()")
    picking = picking.replace("torch.randn(8, 16)", "torch.rand(8, 16)")
    assert passes(
        judge, relu_candidate("return 0.01 * nn.functional.one_hot((10 * x).long(), 10).float()"), picking
    )


def test_sums_in_any_order_are_deterministic_enough(judge: LiveJudge) -> None:
    """All sums are 1, so outputs vary only by rounding."""
    ones = RELU.replace("torch.relu(x)", "torch.softmax(x, 1).sum(1)").replace("8, 16", "64, 4096")
    lines = (
        "p = torch.softmax(x, 1)",
        "k = 1 + int.from_bytes(__import__('os').urandom(2), 'little') % 4000",
        "return p[:, :k].sum(1) + p[:, k:].sum(1)",
    )
    passes(judge, relu_candidate(*lines), ones)


def test_outputs_that_break_at_other_weights_are_suspect(judge: LiveJudge) -> None:
    large = "self.linear.weight.abs().max() > 0.35"
    body = f"y = torch.relu(self.linear(x))\nreturn y * float('nan') if {large} else y"
    assert "stale_weights" in passes(judge, with_forward(body))


CHAIN = REFERENCE.replace(
    "self.linear = nn.Linear(features, features)",
    "self.layers = nn.ModuleList(nn.Linear(features, features, bias=False) for _ in range(6))",
).replace(
    "return torch.relu(self.linear(x))",
    "for layer in self.layers:\n            x = layer(x)\n        return x",
).replace("torch.randn(8, 16)", "torch.randn(64, 64) + 1").replace("return [16]", "return [64]")  # fmt: skip


def chained(operand: str) -> str:
    """Round the operands of each product of the chain."""
    layers = "self.layers = nn.ModuleList(nn.Linear(features, features, bias=False) for _ in range(6))"
    return with_forward(
        f"def low(t):\n    return {operand}\n"
        "for layer in self.layers:\n    x = low(x) @ low(layer.weight).T\nreturn x"
    ).replace("self.linear = nn.Linear(features, features)", layers)


TRUNCATED = "((t.contiguous().view(torch.int32) >> 13) << 13).view(torch.float32)"


def test_honest_tf32_chains_reach_tf32(judge: LiveJudge) -> None:
    answer = judge.evaluate(chained(TRUNCATED), CHAIN, tier="tf32", tf32="on", num_correct_trials=2)
    metadata = answer["metadata"]
    assert (answer["correctness"], metadata["tier"]) == (True, "tf32"), answer
    assert metadata["precision"]["basis"] == "emulated"
    assert metadata["precision"]["rms"] <= metadata["precision"]["limits"]["tf32"]["rms"]


def test_bfloat16_chains_are_below_tf32(judge: LiveJudge) -> None:
    answer = judge.evaluate(chained("t.bfloat16().float()"), CHAIN, tier="tf32", tf32="on")
    metadata = answer["metadata"]
    assert (metadata["status"], metadata["tier"]) == ("wrong_value", "half"), answer
    assert "operands or intermediate results in bfloat16" in metadata["feedback"]
    assert "ieee" not in metadata["feedback"]


def test_inputs_changed_to_another_problem_are_refused(judge: LiveJudge) -> None:
    answer = judge.evaluate(with_forward(f"{RIGHT}x.zero_()\nreturn y"))
    assert (answer["correctness"], answer["metadata"]["status"]) == (False, "integrity")
    assert integrity(answer)[0] == "inputs_changed"
    assert "inputs_changed" in answer["metadata"]["feedback"]
    assert answer["runtime_stats"] == {}


def test_inputs_changed_without_consequence_are_suspicious(judge: LiveJudge) -> None:
    found = passes(judge, relu_candidate("y = torch.relu(x)", "x.relu_()", "return y"), RELU)
    assert "inputs_written" in found
    assert "output_aliases_input" not in found


def test_output_sharing_input_memory_is_suspicious(judge: LiveJudge) -> None:
    found = passes(judge, relu_candidate("return x.relu_()"), RELU)
    assert {"inputs_written", "output_aliases_input"} <= set(found)


def test_candidate_may_write_in_place_like_reference(judge: LiveJudge) -> None:
    in_place = RELU.replace("torch.relu(x)", "x.relu_()")
    found = passes(judge, relu_candidate("return x.relu_()"), in_place, num_correct_trials=2)
    assert set(found) <= {"no_own_kernel"}


def test_call_may_make_its_inputs_require_gradients(judge: LiveJudge) -> None:
    metadata = judge.evaluate(with_forward("x.requires_grad_()\n" + HONEST))["metadata"]
    assert metadata["status"] == "passed", metadata


def test_functions_of_torch_put_aside_are_named(judge: LiveJudge) -> None:
    patched = with_forward(HONEST, top="torch.allclose = lambda *a, **k: True")
    answer = judge.evaluate(patched)
    assert "patched_functions" in integrity(answer)
    evidence = {entry["id"]: entry["evidence"] for entry in answer["metadata"]["integrity_evidence"]}
    assert "torch.allclose" in evidence["patched_functions"]


@pytest.mark.parametrize("when", ["top", "forward"])
def test_switches_are_noted_whenever_they_are_switched(judge: LiveJudge, when: str) -> None:
    switch = "torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark"
    top, body = (switch, HONEST) if when == "top" else ("", f"{switch}\n{HONEST}")
    assert "global_flags" in passes(judge, with_forward(body, top=top))


def test_process_that_is_left_behind_is_found(judge: LiveJudge) -> None:
    """Its parent has ended: nothing in the candidate's own process shows it."""
    top = (
        "child = os.fork()\nif child == 0:\n    if os.fork() == 0:\n        time.sleep(60)\n    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    assert "background_threads" in passes(judge, with_forward(HONEST, top=top))


def test_thread_that_goes_on_is_found(judge: LiveJudge) -> None:
    top = (
        "import threading\ndef work():\n    while True:\n        time.sleep(0.001)\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    assert "background_threads" in passes(judge, with_forward(HONEST, top=top))


def test_unrestricted_lower_precision_passes_with_a_flag(judge: LiveJudge) -> None:
    answer = judge.evaluate(ROUNDED, num_correct_trials=2)
    assert (answer["correctness"], answer["metadata"]["tier"]) == (True, "half")
    assert "low_precision" in integrity(answer)


def test_requested_precision_is_required(judge: LiveJudge) -> None:
    answer = judge.evaluate(ROUNDED, num_correct_trials=2, tier="strict")
    metadata = answer["metadata"]
    assert (answer["correctness"], metadata["status"], metadata["tier"]) == (False, "wrong_value", "half")
    assert metadata["correctness_issue"] == "Precision half, needed strict"
    assert "less precise than tier strict" in metadata["feedback"]
    assert "likely cause: operands or intermediate results in bfloat16" in metadata["feedback"]
    assert len(metadata["feedback"].encode()) <= 1500
    assert judge.evaluate(ROUNDED, num_correct_trials=2, tier="half")["correctness"]
    assert judge.evaluate(PASSING, num_correct_trials=2, tier="strict")["correctness"]


def test_problem_that_a_trivial_answer_passes_is_named(judge: LiveJudge) -> None:
    small = RELU.replace("torch.relu(x)", "torch.relu(x) * 1e-3")
    assert problem_flags(judge, "return torch.relu(x) * 1e-3", small) == [
        "degenerate_problem",
        "loose_tolerance",
    ]
    assert problem_flags(judge, "return torch.relu(x)", RELU) == []


def test_inputs_that_never_change_are_noted(judge: LiveJudge) -> None:
    constant = RELU.replace("torch.randn(8, 16)", "torch.ones(8, 16)")
    assert "constant_inputs" in problem_flags(judge, "return torch.relu(x)", constant)


def test_dropout_in_training_is_judged_under_one_seed(judge: LiveJudge) -> None:
    drops = "nn.functional.dropout(torch.relu(self.linear(x)), 0.5, True)"
    reference = REFERENCE.replace("torch.relu(self.linear(x))", drops)
    found = passes(judge, with_forward(f"return {drops}"), reference, num_correct_trials=2)
    assert set(found) <= {"no_own_kernel"}


def test_findings_ride_along_with_a_failure(judge: LiveJudge) -> None:
    wrong = with_forward("return self.linear(x)", top="import gc\ngc.collect()")
    answer = judge.evaluate(wrong)
    assert answer["metadata"]["status"] == "wrong_value"
    assert "static_introspection" in integrity(answer)
