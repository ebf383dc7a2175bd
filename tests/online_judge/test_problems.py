"""References of many kinds, good and bad."""

from typing import Any

import pytest

from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds

from .live import LiveJudge
from .sources import HONEST, REFERENCE, with_forward

TWO_OUTPUTS = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x, index, flags):
        best = x[index].max(dim=1)
        return {"values": best.values, "rest": [best.indices, flags, 3]}
def get_inputs():
    return [torch.randn(6, 5), torch.tensor([4, 0, 1]), torch.tensor([True, False])]
def get_init_inputs():
    return []
"""
RANDOM = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.norm(x))
def get_inputs():
    return [torch.randn(16, 8)]
def get_init_inputs():
    return []
"""
IN_PLACE = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x.add_(1)
def get_inputs():
    return [torch.randn(4, 6).T]
def get_init_inputs():
    return []
"""
HUGE = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(40000, 40000)]
def get_init_inputs():
    return []
"""
HEAVY = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x @ x @ x
def get_inputs():
    return [torch.randn(1000, 1000)]
def get_init_inputs():
    return []
"""
BY_VALUE = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > 0 else x * 3
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


OWN_CLASS = """
from __future__ import annotations
from dataclasses import dataclass
import torch
import torch.nn as nn
@dataclass
class Config:
    size: int = 4
class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(Config().size)]
def get_init_inputs():
    return [Config()]
"""


def as_candidate(reference: str) -> str:
    return reference.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")


@pytest.mark.parametrize(
    "reference",
    [REFERENCE, TWO_OUTPUTS, RANDOM, IN_PLACE, BY_VALUE],
    ids=["linear", "tree", "random", "inplace", "value"],
)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_reference_passes_against_itself(judge: LiveJudge, reference: str, dtype: str) -> None:
    answer = judge.evaluate(as_candidate(reference), reference, dtype_str=dtype, num_correct_trials=3)
    assert answer["metadata"]["status"] == "passed", answer["metadata"]


def test_wrong_integer_output_is_found(judge: LiveJudge) -> None:
    wrong = as_candidate(TWO_OUTPUTS).replace("best.indices", "best.indices + 0 * best.indices.max() + 1")
    metadata = judge.evaluate(wrong, TWO_OUTPUTS, tolerance=10.0)["metadata"]
    assert metadata["status"] == "wrong_value"


def test_weights_with_matching_names_and_shapes_are_loaded(judge: LiveJudge) -> None:
    noisy = with_forward(HONEST).replace(
        "nn.Linear(features, features)", "nn.Linear(features, features); nn.init.zeros_(self.linear.weight)"
    )
    assert judge.evaluate(noisy)["correctness"] is True


def test_weights_transformed_by_the_constructor_are_kept(judge: LiveJudge) -> None:
    """Scaling folded into the weights under their old names is honest; loading would undo it."""
    doubled = REFERENCE.replace("torch.relu(", "2 * torch.relu(")
    folded = with_forward(HONEST).replace(
        "nn.Linear(features, features)",
        "nn.Linear(features, features)\n"
        "        with torch.no_grad():\n"
        "            self.linear.weight.mul_(2), self.linear.bias.mul_(2)",
    )
    assert judge.evaluate(folded, doubled, num_correct_trials=3)["metadata"]["status"] == "passed"
    tripled = REFERENCE.replace("torch.relu(", "3 * torch.relu(")
    assert judge.evaluate(folded, tripled, num_correct_trials=3)["metadata"]["status"] == "wrong_value"


def test_unwritten_output_is_found_with_repeatable_feedback(judge: LiveJudge) -> None:
    lazy = with_forward("return torch.empty(x.shape[0], 16, device=x.device)")
    first, second = (judge.evaluate(lazy)["metadata"] for _ in range(2))
    assert first["status"] == "nonfinite"
    assert first == second


def test_other_names_get_the_same_weights_by_construction(judge: LiveJudge) -> None:
    renamed = with_forward(HONEST).replace("self.linear", "self.other")
    assert judge.evaluate(renamed, num_correct_trials=2)["correctness"] is True


def test_half_precision_weights_and_inputs_are_cast(judge: LiveJudge) -> None:
    body = "assert x.dtype == self.linear.weight.dtype == torch.float16, x.dtype\n" + HONEST
    assert judge.evaluate(with_forward(body), dtype_str="fp16")["correctness"] is True


def test_reference_annotations_are_not_strings(judge: LiveJudge) -> None:
    reference = REFERENCE.replace(
        "class Model(",
        "class Config:\n    bias: torch.Tensor\n\nassert Config.__annotations__['bias'] is torch.Tensor\n\n"
        "class Model(",
    )
    assert judge.evaluate(with_forward(HONEST), reference)["correctness"] is True


@pytest.mark.parametrize(
    "line",
    [
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
        "torch.backends.fp32_precision = 'tf32'",
    ],
)
def test_precision_that_a_reference_sets_is_overruled(judge: LiveJudge, line: str) -> None:
    asked = "(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)"
    reference = REFERENCE.replace("class Model", f"{line}\n\nclass Model").replace(
        "        return torch.relu", f"        assert {asked} == (False, False)\n        return torch.relu"
    )
    answer = judge.evaluate(with_forward(HONEST), reference)
    assert answer["correctness"] is True, answer


def test_dict_of_outputs_may_be_in_any_order(judge: LiveJudge) -> None:
    reference = REFERENCE.replace(
        "return torch.relu(self.linear(x))", "return {'one': self.linear(x), 'two': x}"
    )
    other_order = with_forward("return {'two': x, 'one': self.linear(x)}")
    assert judge.evaluate(other_order, reference)["correctness"] is True
    swapped = with_forward("return {'one': x, 'two': self.linear(x)}")
    assert judge.evaluate(swapped, reference)["metadata"]["status"] == "wrong_value"


def test_reference_that_kills_its_process_is_blamed(judge: LiveJudge) -> None:
    """It is harmless when its size is measured, and deadly when it runs."""
    deadly = REFERENCE.replace(
        "def forward(self, x):",
        "def forward(self, x):\n        x.device.type == 'meta' or __import__('os')._exit(3)",
    )
    answer = judge.evaluate(with_forward(HONEST), deadly)
    assert answer["success"] is False
    assert "died twice" in answer["error"]
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_reference_exiting_during_a_wait_is_reported(judge: LiveJudge) -> None:
    deadly = REFERENCE + (
        "\nimport os\nfrom online_judge.evaluator import leases\n"
        "leases.Leases.hold = lambda *_, **__: os._exit(3)\n"
    )
    answer = judge.evaluate(with_forward(HONEST), deadly)
    assert answer["success"] is False
    assert "died twice" in answer["error"]
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_death_beside_a_candidate_is_not_the_references(judge: LiveJudge) -> None:
    """Alone the reference works, so the candidate may have ended its process."""
    twice = REFERENCE.replace(
        "def forward(self, x):",
        "def forward(self, x):\n        self.calls = getattr(self, 'calls', 0) + 1\n"
        "        self.calls < 3 or __import__('os')._exit(3)",
    )
    answer = judge.evaluate(with_forward(HONEST), twice)
    assert (answer["metadata"]["status"], answer["success"]) == ("crash", True), answer
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_exception_of_the_judge_is_named(judge: LiveJudge) -> None:
    breaking = REFERENCE.replace(
        "def forward(self, x):", "def forward(self, x):\n        torch.isfinite = None"
    )
    body = {"original_model_src": breaking, "custom_model_src": with_forward(HONEST), "backend": "triton"}
    response = judge.post("/evaluate", body)
    assert response.status_code == 500
    assert response.json()["detail"] == "the judge failed: TypeError: 'NoneType' object is not callable"
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_weights_that_share_a_storage_are_judged(judge: LiveJudge) -> None:
    slices = (
        "flat = torch.randn(2 * features, features)\n"
        "        self.a, self.b = nn.Parameter(flat[:features]), nn.Parameter(flat[features:])"
    )
    reference = REFERENCE.replace("self.linear = nn.Linear(features, features)", slices)
    reference = reference.replace("self.linear(x)", "x @ self.a @ self.b.T")
    candidate = with_forward("return torch.relu(x @ self.a @ self.b.T)")
    candidate = candidate.replace("self.linear = nn.Linear(features, features)", slices)
    answer = judge.evaluate(candidate, reference)
    assert answer["correctness"], answer
    assert "stale_weights" not in answer["metadata"].get("integrity", [])


def test_changed_inputs_do_not_help(judge: LiveJudge) -> None:
    cheat = with_forward("x.zero_()\nreturn torch.relu(self.linear(x))")
    assert judge.evaluate(cheat)["metadata"]["status"] == "wrong_value"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "defines no Model"),
        ("import torch\n1 / 0\n", "ZeroDivisionError"),
        ("class Model(:", "SyntaxError"),
        (
            REFERENCE.replace("return torch.relu", "raise ValueError('by hand')\n        return torch.relu"),
            "by hand",
        ),
        (REFERENCE.replace("return [16]", "return [16, 3]"), "TypeError"),
        (REFERENCE.replace("torch.randn(8, 16)", "torch.randn(8, 17)"), "forward() fails"),
        (
            REFERENCE.replace("return torch.relu", "import sys; sys.exit(1)\n        return torch.relu"),
            "SystemExit",
        ),
        (HUGE, "too large"),
        (HEAVY, "floating-point operations"),
    ],
    ids=["empty", "import", "syntax", "forward", "init", "shapes", "exit", "huge", "heavy"],
)
def test_bad_reference_is_no_verdict(judge: LiveJudge, source: str, words: str) -> None:
    answer = judge.evaluate(with_forward(HONEST), source)
    assert answer["success"] is False
    assert answer["error"].startswith("Reference failed: ")
    assert words in answer["error"]
    assert "\n" not in answer["error"]
    assert answer["metadata"]["error"] == answer["error"]
    report = judge.post("/v2/problem", {"original_model_src": source}).json()
    assert report["ok"] is False
    assert words in report["reason"]


def test_own_classes_work_but_cannot_be_init_inputs(judge: LiveJudge) -> None:
    plain = OWN_CLASS.replace("[Config()]", "[Config().size]")
    assert judge.evaluate(as_candidate(plain), plain)["correctness"] is True
    answer = judge.evaluate(as_candidate(OWN_CLASS), OWN_CLASS)
    assert answer["success"] is False
    assert "Config is the reference's own" in answer["error"]


def test_good_problem_is_reported_as_such(judge: LiveJudge) -> None:
    report = judge.post("/v2/problem", {"original_model_src": REFERENCE, "dtype_str": "bf16"}).json()
    assert {tensor["dtype"] for tensor in report.pop("tensors")} == {"bfloat16"}
    assert report == {
        "ok": True,
        "reason": "",
        "device": "cpu",
        "hardware": "CPU (Triton interpreter, sm_90)",
        "traits": None,
    }


def test_problem_report_names_reference_killing_its_process(judge: LiveJudge) -> None:
    deadly = REFERENCE.replace("return [torch.randn(8, 16)]", "import os; os._exit(1)")
    response = judge.post("/v2/problem", {"original_model_src": deadly})
    assert response.json()["ok"] is False
    assert "ends its process" in response.json()["reason"]
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


PATCHES = {
    "comparison": "torch.Tensor.__sub__ = lambda one, other: torch.zeros(())",
    "drawing": "torch.randn = lambda *size, **more: torch.zeros(*size)",
    "builtins": "import builtins\nbuiltins.any = lambda items: False",
    "judge": "from online_judge.evaluator.correctness import comparison\n"
    "comparison.difference = lambda *a, **b: None",
    "switch": "torch.set_flush_denormal(False)\ntorch.set_num_threads(2)",
}


@pytest.mark.parametrize("name", PATCHES)
def test_patching_reference_changes_no_other_verdict(frail_judge: LiveJudge, name: str) -> None:
    lines = PATCHES[name].replace("\n", "\n        ")
    for patching in (
        REFERENCE.replace("class Model", f"{PATCHES[name]}\n\nclass Model"),
        REFERENCE.replace("        return torch.relu", f"        {lines}\n        return torch.relu"),
    ):
        body = {"original_model_src": patching, "custom_model_src": with_forward(HONEST)}
        frail_judge.post("/evaluate", body)
    wrong = frail_judge.evaluate(with_forward("return self.linear(x)"))
    assert wrong["metadata"]["status"] == "wrong_value", wrong
    assert frail_judge.evaluate(with_forward(HONEST))["correctness"]


def test_each_reference_has_a_process_that_is_kept(frail_judge: LiveJudge) -> None:
    named = "\nimport ctypes\nctypes.CDLL(None).prctl(15, b'NAME', 0, 0, 0)\n"

    def count(name: str) -> int:
        return len(frail_judge.processes(name))

    one, other = (REFERENCE + named.replace("NAME", name) for name in ("one", "other"))
    for reference in (one, other, one):
        assert frail_judge.evaluate(with_forward(HONEST), reference)["correctness"]
    assert (count("one"), count("other")) == (1, 1)


def test_module_may_refuse_doubles_with_custom_exception(judge: LiveJudge) -> None:
    refusing = """if x.dtype is torch.float64:
            raise type("Refused", (Exception,), {})("only singles")
        """
    source = REFERENCE.replace("return torch.relu", f"{refusing}return torch.relu")
    answer = judge.evaluate(with_forward(HONEST), source)
    assert answer["correctness"] is True, answer


UNWRITTEN = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))
    def forward(self, x):
        found = torch.empty(8, 64)
        found[:, :32] = x * self.scale
        return found, torch.full((4,), 2)
def get_inputs():
    return [torch.randn(8, 32)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("change", [("x * self", "x * 1.3 * self"), ("(4,), 2", "(4,), 3")])
def test_unwritten_elements_of_the_reference_are_free(judge: LiveJudge, change: tuple[str, str]) -> None:
    right = UNWRITTEN.replace("class Model", "class ModelNew")
    right = right.replace("empty(8, 64)", "zeros(8, 64) + x[0, 0]")
    answer = judge.evaluate(right, UNWRITTEN, num_correct_trials=2)
    assert answer["correctness"] is True, answer
    found = {each["id"]: each["evidence"] for each in answer["metadata"]["problem_flags_evidence"]}
    assert found["unwritten_outputs"].startswith("the reference never writes 49.61% of its outputs"), found
    wrong = judge.evaluate(right.replace(*change), UNWRITTEN, num_correct_trials=2)
    assert (wrong["correctness"], wrong["metadata"]["status"]) == (False, "wrong_value"), wrong


def test_unwritten_elements_that_vary_cannot_be_timed() -> None:
    varying = UNWRITTEN.replace("found[:, :32] = x * self.scale", "found[:, :32][x > 0] = 1.0")
    for source, varies in ((UNWRITTEN, False), (varying, True)):
        of = Problem(Reference(source, Seeds(b"key"), "fp32", cuda=False))
        assert of.unwritten() == ()
        of.mask_unwritten()
        if not varies:
            assert [int(mask.sum()) for mask in of.unwritten()] == [8 * 32, 0]
            continue
        with pytest.raises(ReferenceFailed, match="not the same"):
            of.unwritten()


@pytest.mark.parametrize(
    "allocation",
    [
        "torch.Tensor(8, 64)",
        "getattr(torch, 'emp' + 'ty')(8, 64)",
        "x.new_empty(8, 64)",
        "torch.zeros(0).resize_(8, 64)",
    ],
)
def test_unwritten_elements_are_found_however_allocated(allocation: str) -> None:
    of = Problem(
        Reference(UNWRITTEN.replace("torch.empty(8, 64)", allocation), Seeds(b"key"), "fp32", cuda=False)
    )
    of.mask_unwritten()
    assert [int(mask.sum()) for mask in of.unwritten()] == [8 * 32, 0]


@pytest.mark.parametrize("allocation", ["torch.zeros(8, 64)  # not empty", "torch.full((8, 64), torch.nan)"])
def test_two_calls_show_that_all_is_written(allocation: str) -> None:
    source = UNWRITTEN.replace("torch.empty(8, 64)", allocation)
    counting = source.replace(
        "def forward(self, x):", "calls = 0\n    def forward(self, x):\n        Model.calls += 1"
    )
    of = Problem(Reference(counting, Seeds(b"key"), "fp32", cuda=False))
    for _ in range(3):
        of.mask_unwritten()
    model: Any = of.reference.call("eager")
    assert model.calls == 2
    assert of.unwritten() == ()


def test_right_candidate_shows_unwritten_elements_too(judge: LiveJudge) -> None:
    """As fresh memory often is, it is zero here, so that plain calls show nothing."""
    zero = "torch.Tensor(8, 64)\n        if not found.isnan().all(): found.zero_()"
    candidate = UNWRITTEN.replace("class Model", "class ModelNew").replace("empty(8", "zeros(8")
    answer = judge.evaluate(candidate, UNWRITTEN.replace("torch.empty(8, 64)", zero))
    assert answer["correctness"] is True, answer
    assert "unwritten_outputs" in answer["metadata"].get("problem_flags", [])


def test_reference_that_writes_nothing_is_refused(judge: LiveJudge) -> None:
    nothing = UNWRITTEN.replace("found[:, :32] = x * self.scale", "").replace(", torch.full((4,), 2)", "")
    candidate = nothing.replace("class Model", "class ModelNew").replace("empty(8, 64)", "ones(8, 64)")
    answer = judge.evaluate(candidate, nothing)
    assert "forward() returns elements that it never wrote, and no others" in answer["error"], answer
