"""Modules that users bring pass as their own candidates, and wrong ones do not."""

import pytest

from tool_scripts.judge_bench.candidates import as_candidate

from .live import LiveJudge
from .test_reference import TEMPLATE

ROTARY = TEMPLATE.format(
    layers='self.register_buffer("turn", torch.polar(torch.ones(8), torch.linspace(0.5, 2.5, 8)))',
    body="return torch.view_as_real(torch.view_as_complex(x) * self.turn)",
    inputs="torch.randn(16, 8, 2)",
)
MODULES = {
    "complex buffer": ROTARY,
    "returned statistics": TEMPLATE.format(
        layers="self.norm = nn.BatchNorm1d(16)",
        body="y = self.norm(x)\n        return y, self.norm.running_mean",
        inputs="torch.randn(8, 16)",
    ),
    "cache of keys": TEMPLATE.format(
        layers='self.register_buffer("keys", torch.zeros(16, 16))',
        body="self.keys[:8] = x\n        return self.keys",
        inputs="torch.randn(8, 16)",
    ),
    "sizes by value": TEMPLATE.format(layers="pass", body="return x[x > 0]", inputs="torch.randn(8, 16)"),
}


@pytest.mark.parametrize("name", MODULES)
def test_module_passes_as_its_own_candidate(judge: LiveJudge, name: str) -> None:
    answer = judge.evaluate(as_candidate(MODULES[name]), MODULES[name])
    assert answer["correctness"] is True, answer["metadata"]
    assert "output_reused" not in answer["metadata"]["integrity"]


@pytest.mark.parametrize("dtype", ["fp32", "native"])
def test_imaginary_parts_of_weights_count(judge: LiveJudge, dtype: str) -> None:
    wrong = as_candidate(ROTARY).replace("* self.turn", "* self.turn.real")
    answer = judge.evaluate(wrong, ROTARY, dtype_str=dtype)
    assert answer["metadata"]["status"] == "wrong_value"


def test_default_dtype_holds_in_every_job(judge: LiveJudge) -> None:
    own = TEMPLATE.format(
        layers="self.linear = nn.Linear(16, 16)", body="return self.linear(x)", inputs="torch.randn(8, 16)"
    )
    reference = own.replace("class Model", "torch.set_default_dtype(torch.bfloat16)\n\nclass Model")
    for source in (own, reference, f"{own}\n", f"{reference}\n"):
        answer = judge.evaluate(as_candidate(source), reference, dtype_str="native")
        assert answer["correctness"] is True, answer["metadata"]
    assert judge.evaluate(as_candidate(own), own, dtype_str="native")["correctness"] is True


def test_default_device_of_a_reference_does_not_stay(judge: LiveJudge) -> None:
    reference = MODULES["sizes by value"].replace(
        "class Model", "torch.set_default_device('meta')\n\nclass Model"
    )
    for source in (as_candidate(reference), as_candidate(MODULES["sizes by value"])):
        assert judge.evaluate(source, reference)["correctness"] is True


@pytest.mark.parametrize(
    "layers",
    [
        "self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))",
        "self.query = nn.Parameter(torch.ones(8, 16))\n"
        "        self.attend = nn.MultiheadAttention(16, 2)\n"
        "        self.linear = lambda x: self.attend(self.query, x, x)[0]",
    ],
    ids=["weight norm", "learned query"],
)
def test_modules_called_with_parameters_run_backward(judge: LiveJudge, layers: str) -> None:
    reference = TEMPLATE.format(layers=layers, body="return self.linear(x)", inputs="torch.randn(8, 16)")
    answer = judge.evaluate(as_candidate(reference), reference, direction="both")
    assert answer["correctness"] is True, answer["metadata"]
