"""Which code surely runs, and which may not."""

from __future__ import annotations

import pytest

from adaexplore.core.environment import TritonFacts
from tests.preflight.cases import module, rules

WRONG = "x = tl.float32(1.0)"
LAUNCH = "kernel[(8,)](x, y, 512, BLOCK=64)"
STATEMENTS = "    a = 1\n    b = 2\n    c = 3\n"
LEAVES = "    if x.dim() > 6:\n        return y\n    else:\n        return x\n"


@pytest.mark.parametrize(
    "launch",
    [
        f"if torch.cuda.is_available():\n    {LAUNCH}\nelse:\n    y = x * 2",
        f"if self.training:\n    {LAUNCH}\nelse:\n    y = x * 2",
        f'if x.device.type == "cuda":\n    {LAUNCH}\nelse:\n    y = x * 2',
        f'if x.device.type != "cuda":\n    y = x * 2\nelse:\n    {LAUNCH}',
        f"if x.dim() > 4:\n{LEAVES}{LAUNCH}",
        f"if x.numel() == 0:\n    return torch.zeros_like(x)\n{LAUNCH}",
        f"if x.size(0) == 0:\n    return x.new_empty(x.size(0), len(x.shape))\n{LAUNCH}",
        f"if not x.is_contiguous():\n    raise ValueError(str(x))\n{LAUNCH}",
    ],
)
def test_launch_on_the_judges_path_is_checked(launch: str, api: TritonFacts) -> None:
    assert rules(module(WRONG, launch=launch), api) == {"called-dtype"}


@pytest.mark.parametrize(
    "launch",
    [
        f"x.shape[0] > 100 and {LAUNCH}",
        f"later = lambda: {LAUNCH}",
        f"z = {LAUNCH} if x.shape[0] > 100 else x",
        f"if x.dim() > 4:\n{STATEMENTS}    return y\n{LAUNCH}",
        f"if x.dim() > 4:\n{STATEMENTS}{LEAVES}{LAUNCH}",
        f"if x.dim() > 4:\n    return other(x)\n{LAUNCH}",
        f"if x.shape[0] <= 16:\n    return torch.relu(x)\n{LAUNCH}",
        f"if x.shape[0] <= 16:\n    return x.relu()\n{LAUNCH}",
        f"if x.shape[0] <= 16:\n    return x * self.scale\n{LAUNCH}",
    ],
)
def test_launch_on_an_avoidable_path_is_ignored(launch: str, api: TritonFacts) -> None:
    above = "def other(x):\n    return x * 2\n"
    assert rules(module(WRONG, above=above, launch=launch), api) == set()


def test_training_branch_is_uncertain_after_candidate_calls_eval(api: TritonFacts) -> None:
    above = "def prepared(model):\n    return model.eval()\n"
    assert rules(module(WRONG, above=above, launch=f"if self.training:\n    {LAUNCH}"), api) == set()


def test_an_inherited_forward_is_followed(api: TritonFacts) -> None:
    def inherited(body: str) -> str:
        return module(body).replace("class ModelNew", "class Base") + "\nclass ModelNew(Base):\n    pass\n"

    assert rules(inherited(WRONG), api) == {"called-dtype"}
    assert rules(inherited(""), api) == set()


def test_code_after_return_in_a_branch_is_compiled(api: TritonFacts) -> None:
    assert rules(module(f"if n > 5:\n    return\n{WRONG}"), api) == {"called-dtype"}


def test_unrolled_loop_of_unknown_length_may_not_run(api: TritonFacts) -> None:
    parameters = "x_ptr, y_ptr, n, BLOCK: tl.constexpr, N: tl.constexpr"
    body = f"for i in tl.static_range(N):\n    {WRONG}"

    def launched(length: str) -> set[str]:
        launch = f"kernel[(8,)](x, y, 512, BLOCK=64, N={length})"
        return rules(module(body, parameters=parameters, launch=launch), api)

    assert launched("3") == {"called-dtype"}
    assert launched("0") == launched("x.shape[0]") == set()
