from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adaexplore.core.environment import TritonFacts
from adaexplore.preflight.findings import lint_table
from adaexplore.preflight.lints import lint
from tests.preflight.cases import CASES, FINE, HELPER, MORE, REFERENCE, WORKING, Case, module, rules

TRACES = Path(__file__).parents[2].parent / "shared/data/traces"
WRONG = "x = tl.float32(1.0)"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_lint_stops_its_mistake_and_nothing_else(case: Case, api: TritonFacts) -> None:
    assert rules(case.bad, api) == {case.rule}
    assert rules(case.good, api) == set()


@pytest.mark.parametrize(("rule", "source"), MORE)
def test_a_lint_stops_other_forms_of_its_mistake(rule: str, source: str, api: TritonFacts) -> None:
    assert rules(source, api) == {rule}


@pytest.mark.parametrize("source", WORKING.values(), ids=WORKING)
def test_lints_leave_unusual_working_candidates_alone(source: str, api: TritonFacts) -> None:
    assert rules(source, api) == set()


def test_every_lint_has_case_and_one_line_message(api: TritonFacts) -> None:
    assert {case.rule for case in CASES} == set(lint_table().messages)
    for case in CASES:
        for found in lint(case.bad, api, REFERENCE):
            assert "\n" not in found.message
            assert "{" not in found.message.replace('{"', "")
            assert 1 <= found.line <= len(case.bad.splitlines())


def test_finding_names_the_line_of_the_mistake(api: TritonFacts) -> None:
    source = module(WRONG)
    (found,) = lint(source, api)
    assert source.splitlines()[found.line - 1].strip() == WRONG


def test_kernel_that_forward_cannot_reach_is_ignored(api: TritonFacts) -> None:
    unused = "@triton.jit\ndef unused(x_ptr):\n    y = tl.float32(1.0)\n"
    launched = "def elsewhere(x):\n    unused[(1,)](x)\n"
    assert rules(module(above=unused + "\n" + launched), api) == set()
    assert rules(module(above=unused, launch="unused[(1,)](x)"), api) == {"called-dtype"}


def test_a_helper_that_a_kernel_calls_is_followed(api: TritonFacts) -> None:
    helper = "@triton.jit\n" + HELPER.replace("v * 2.0", "tl.float32(v)")
    assert rules(module("x = double(x)", above=helper), api) == {"called-dtype"}
    assert rules(module(above=helper), api) == set()


@pytest.mark.parametrize(
    "launch",
    [
        "if x.shape[0] > 100:\n    kernel[(8,)](x, y, 512, BLOCK=64)",
        "try:\n    kernel[(8,)](x, y, 512, BLOCK=64)\nexcept Exception:\n    y = x * 2",
        "if not x.is_cuda:\n    kernel[(8,)](x, y, 512, BLOCK=64)",
        "if self.scale > 100.0:\n    kernel[(8,)](x, y, 512, BLOCK=64)",
        "if not self.training:\n    kernel[(8,)](x, y, 512, BLOCK=64)",
        "y = x * 2\nreturn y\nkernel[(8,)](x, y, 512, BLOCK=64)",
        "import contextlib\nwith contextlib.suppress(Exception):\n    kernel[(8,)](x, y, 512, BLOCK=64)",
    ],
)
def test_launch_that_may_not_happen_is_ignored(launch: str, api: TritonFacts) -> None:
    assert rules(module(WRONG, launch=launch), api) == set()


@pytest.mark.parametrize(
    "launch",
    [
        "if x.is_cuda:\n    kernel[(8,)](x, y, 512, BLOCK=64)\nelse:\n    y = x * 2",
        "if x.numel() == 0:\n    return y\nkernel[(8,)](x, y, 512, BLOCK=64)",
        "if self.scale < 100.0:\n    kernel[(8,)](x, y, 512, BLOCK=64)",
        "if x.dim() > 4:\n    kernel[(8,)](x, y, 9, BLOCK=64)\nelse:\n    kernel[(8,)](y, x, 9, BLOCK=64)",
        "with torch.no_grad():\n    kernel[(8,)](x, y, 512, BLOCK=64)",
    ],
)
def test_a_launch_that_surely_happens_is_looked_at(launch: str, api: TritonFacts) -> None:
    assert rules(module(WRONG, launch=launch), api) == {"called-dtype"}


def test_branch_closed_by_a_constant_is_ignored(api: TritonFacts) -> None:
    parameters = "x_ptr, y_ptr, n, BLOCK: tl.constexpr, FLAG: tl.constexpr"
    body = f"if FLAG:\n    {WRONG}"

    def launched(flag: str) -> set[str]:
        launch = f"kernel[(8,)](x, y, 512, BLOCK=64, FLAG={flag})"
        return rules(module(body, parameters=parameters, launch=launch), api)

    assert launched("False") == set()
    assert launched("True") == {"called-dtype"}
    assert launched("x.shape[0] > 4") == set()  # not known here


NEED_NAMES = {"missing-triton-name", "launch-unknown-argument", "unknown-keyword", "function-arguments"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_only_lints_on_names_need_a_known_triton(case: Case) -> None:
    assert rules(case.bad, None) == {case.rule} - NEED_NAMES
    assert rules(case.good, None) == set()


@pytest.mark.parametrize(
    "source", ["", "import torch\n", "x = 1\x00", "def f(:\n", "x = " + "-" * 5000 + "1"]
)
def test_any_text_gets_an_answer(source: str, api: TritonFacts) -> None:
    assert rules(source, api) <= {"syntax", "no-model"}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("y = tl.zeros([1], dtype=tl.float32)[0]", {"block-index"}),
        ("y = x[None, :]\ny += 1.0\nfor i in range(4):\n    x = y[:, i]", {"block-index"}),
        ("y = x[None, :]\nx = y[:, BLOCK]", set()),  # a parameter may be None
        ("y = tl.split(x)[0]", set()),
        ("y = x.shape[0]", set()),
        ("y = tl.max(x, BLOCK - 64)", set()),
        ("y = tl.max(x, axis=0, return_indices=True)[0]", set()),
        ("y = tl.max(x, 0)\nx = y[0]", {"block-index"}),
        ("for i in range(4):\n    x = tl.max(x, i * 1.0)", set()),  # not followed so far
        ("x = tl.load(x_ptr, other=None)", set()),
    ],
)
def test_only_values_known_as_tensors_are_flagged(body: str, found: set[str], api: TritonFacts) -> None:
    assert rules(module(body), api) == found


def test_long_chains_of_variables_end_in_time(api: TritonFacts) -> None:
    chain = "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(60))
    assert rules(module(f"a0 = n\n{chain}x = a60[0]"), api) == set()


def test_loops_in_loops_end_in_time(api: TritonFacts) -> None:
    body = "".join(f"{'    ' * depth}for i{depth} in tl.static_range(12):\n" for depth in range(8))
    assert rules(module(body + "    " * 8 + "x += 1.0"), api) == set()


LONG_SUM = "+".join(["1"] * 1200)


def test_overlong_sum_in_a_constructor_is_left_alone(api: TritonFacts) -> None:
    assert rules(FINE.replace("self.scale = scale", f"self.scale = {LONG_SUM}"), api) == set()


def test_overlong_sum_in_a_reference_is_left_alone(api: TritonFacts) -> None:
    assert rules(FINE, api, REFERENCE.replace("[2.0]", f"[{LONG_SUM}]")) == set()


def test_constructor_check_needs_a_valid_reference(api: TritonFacts) -> None:
    source = FINE.replace("__init__(self, scale)", "__init__(self, scale, bias)")
    assert rules(source, api, None) == set()
    assert rules(source, api, "not a problem") == set()


def test_recorded_failures_are_stopped_but_successes_pass(api: TritonFacts) -> None:
    if not TRACES.is_dir():
        pytest.skip("no recorded trajectories")
    stopped = {True: 0, False: 0}
    count = {True: 0, False: 0}
    trace = json.loads((TRACES / "kb-l2-p84-200.json").read_text(encoding="utf-8"))
    for step in trace["steps"]:
        if step["code"] and step["step"] % 2 == 0:
            correct = bool(step["score"]["correct"])
            count[correct] += 1
            stopped[correct] += bool(lint(step["code"], api, trace["reference_src"]))
    assert stopped[True] == 0
    assert stopped[False] >= 0.6 * count[False]


def test_the_documentation_lists_every_lint_in_order() -> None:
    text = (Path(__file__).parents[2] / "docs/preflight.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == list(lint_table().messages)


@pytest.mark.parametrize(
    ("above", "launch"),
    [
        ("", "y: Undefined = x * 2"),
        (
            "class Twice(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(x):\n        return x * 2\n\n"
            "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n",
            "y = Twice.apply(x)",
        ),
        ("", "y = x * 2\nprint(self._get_name(), self.training, self.scale)"),
        ("NAMES = []\ndef keep():\n    global LATER\n    LATER = 1\n", "keep()\ny = x * LATER"),
    ],
)
def test_ordinary_python_is_left_alone(above: str, launch: str, api: TritonFacts) -> None:
    assert rules(module(above=above, launch=launch), api) == set()


@pytest.mark.parametrize(
    "number", ["*".join(["(2**63)**60"] * 4), "0x" + "f" * 5000, "*".join(["10**63"] * 70)]
)
def test_overlong_number_is_unknown_and_hides_nothing(number: str, api: TritonFacts) -> None:
    source = f"""import torch, triton
import triton.language as tl
N = {number}
M = 5
@triton.jit
def k(x, B: tl.constexpr):
    o = tl.arange(0, B) + N
    tl.store(x + o, o + M)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        k[(1,)](x, B=N)
        return x
"""
    assert rules(source, api, None) == {"non-constexpr-global"}


@pytest.mark.parametrize("line", ["def f():\n    nonlocal x", "def f(a, a): pass"])
def test_compiler_only_error_is_a_syntax_finding(line: str, api: TritonFacts) -> None:
    assert rules(f"{FINE}\n{line}\n", api) == {"syntax"}


def test_options_that_a_config_has_may_be_read(api: TritonFacts) -> None:
    above = 'CONFIGS = [triton.Config({"BLOCK": 64, "num_warps": 4})]'
    read = "kernel[(8,)](x, y, 512, BLOCK=64)\nz = CONFIGS[0]"
    assert rules(module(above=above, launch=f"{read}.num_warps"), api) == set()
    assert rules(module(above=above, launch=f"{read}.BLOCK"), api) == {"config-attribute"}


def test_a_syntax_finding_always_says_what_is_wrong(api: TritonFacts) -> None:
    (found,) = lint("x = " + "-" * 50_000 + "1\n", api)
    assert found.rule == "syntax"
    assert found.message.removeprefix("not valid Python: ")


@pytest.mark.parametrize(
    ("given", "parameters", "found"),
    [
        ('[[], {"scale": 2.0}]', "scale", set()),
        ('{"scale": 2.0}', "scale", set()),
        ('[[], {"scale": 2.0}]', "factor", {"init-arity"}),
        ('{"scale": 2.0}', "scale, bias", {"init-arity"}),
        ("[[2.0], {}]", "scale", set()),
        ("None", "scale=2.0", set()),
    ],
)
def test_constructor_must_take_the_reference_keywords(
    given: str, parameters: str, found: set[str], api: TritonFacts
) -> None:
    reference = REFERENCE.replace("[2.0]", given).replace(
        "__init__(self, scale)", "__init__(self, scale=1.0)"
    )
    body = FINE.replace("__init__(self, scale)", f"__init__(self, {parameters})")
    body = body.replace(
        "self.scale = scale", f"self.scale = {parameters.partition(',')[0].partition('=')[0]}"
    )
    assert {each.rule for each in lint(body, api, reference)} == found


def test_mistake_in_a_plain_function_is_found(api: TritonFacts) -> None:
    reference = "def Model(x):\n    return x * 2\n\ndef get_inputs():\n    return [1]\n"
    body = FINE.partition("class ModelNew")[0]
    body += (
        "def ModelNew(x):\n    y = torch.empty_like(x)\n    kernel[(8,)](x, y, 64, BLOCK={})\n    return y\n"
    )
    assert not lint(body.format("64"), api, reference)
    assert [each.rule for each in lint(body.format("SIZE"), api, reference)] == ["undefined-name"]
