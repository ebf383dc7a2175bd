"""TritonBench's files as problems: calls of their tests become workloads."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from adaexplore.core.dialects import tritonbench
from adaexplore.core.errors import TaskError

LINE = "#" * 146
SQUARE_CLASS = """\
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient
"""
FILE = f"""
import torch

class Scale:
    def __init__(self, factor, offset):
        self.factor = factor
        self.offset = offset

{SQUARE_CLASS}
square = Square.apply

def min(x, scale=None, *, out=None, dtype=torch.float32):
    if x.dim() > 1:
        raise ValueError("one dimension")
    result = x.to(dtype) * (scale.factor + scale.offset if scale else 1)
    if out is not None:
        out.copy_(result)
    return result

{LINE}

from own_file import min

def test_min():
    results = {{}}
    x = torch.randn(4, device="cuda")
    results["plain"] = min(x)
    y = torch.zeros(4).cuda()
    results["out"] = min(x, Scale(2.0, torch.ones(4)), out=y, dtype=torch.float64)
    try:
        min(torch.ones(2, 2))
    except ValueError:
        print("refused")
    z = torch.arange(3.0, requires_grad=True)
    (square(z) * 2).sum().backward()
    results["gradient"] = z.grad
    return results

result_gold = test_min()
"""
PATH = Path("own_file.py")


def load(source: str) -> Any:
    module = types.ModuleType("adapted")
    sys.modules["adapted"] = module
    exec(compile(source, "<adapted>", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def problem() -> Any:
    return load(tritonbench.problem_source(FILE, PATH))


def inputs(problem: Any, number: int, seed: int = 0) -> list[Any]:
    torch.manual_seed(seed)
    found: list[Any] = problem.get_workloads()[number]["get_inputs"]()
    return found


def test_each_call_that_returns_is_a_workload(problem: Any) -> None:
    names = [workload["name"] for workload in problem.get_workloads()]
    assert names == ["call 1: min", "call 2: min", "call 4: square"]


def test_inputs_follow_the_seed(problem: Any) -> None:
    first, same, other = (inputs(problem, 0, seed)[1][0] for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_written_arguments_are_outputs(problem: Any) -> None:
    given = inputs(problem, 1)
    with torch.no_grad():
        result, written, gradients = problem.Model()(*given)
    assert given[3] == [2]  # after the tensor of the object
    assert torch.equal(written[0], result.float())
    assert torch.equal(result, given[1][0].double() * 3)
    assert gradients == []


def test_gradients_are_outputs_where_the_test_takes_them(problem: Any) -> None:
    with torch.no_grad():
        result, _, gradients = problem.Model()(*inputs(problem, 2))
    assert torch.equal(result, torch.tensor([0.0, 1.0, 4.0]))
    assert torch.equal(gradients[0], torch.tensor([0.0, 4.0, 8.0]))


def test_recorded_inputs_are_not_those_of_the_test(problem: Any) -> None:
    given = inputs(problem, 1)
    assert torch.equal(given[2]["out"], torch.zeros(4))


def test_candidate_answers_like_the_implementation(problem: Any) -> None:
    candidate = load(tritonbench.candidate_source(tritonbench.read(FILE, PATH).gold, FILE, PATH))
    for number in range(3):
        with torch.no_grad():
            want, got = (model(*inputs(problem, number)) for model in (problem.Model(), candidate.ModelNew()))
        assert str(want) == str(got)


def test_candidate_without_a_function_does_not_load() -> None:
    with pytest.raises(NameError, match="Scale"):
        load(tritonbench.candidate_source("def min(x): return x\n", FILE, PATH))


@pytest.mark.parametrize("code", ["class ModelNew: ...\n", "def (:\n"])
def test_modules_and_broken_sources_stay(code: str) -> None:
    assert tritonbench.candidate_source(code, FILE, PATH) == code


def test_kernel_launch_is_a_workload() -> None:
    text = f"""
import torch
SIZE = [3]
class Kernel:
    run = None
    def __getitem__(self, grid):
        return lambda x, n: [x.fill_(float(grid[0] + n)), object()][1]
kernel = Kernel()
{LINE}
def test_kernel():
    x = torch.zeros(SIZE[0])
    kernel[lambda meta: (2,)](x, n=4)
    return x
"""
    problem = load(tritonbench.problem_source(text, PATH))
    assert [workload["name"] for workload in problem.get_workloads()] == ["call 1: kernel.launch"]
    result, written, _ = problem.Model()(*problem.get_inputs())
    assert result is None
    assert torch.equal(written[0], torch.full((3,), 6.0))
    candidate = text.partition(LINE)[0].replace("SIZE = [3]", "")  # constants of the test are its own
    assert load(tritonbench.candidate_source(candidate, text, PATH)).ModelNew is not None


def test_calls_of_objects_and_static_methods_are_workloads() -> None:
    text = f"""
import torch
class Norm(torch.nn.Module):
    def __init__(self, weight, eps=1.0):
        super().__init__()
        self.scale = weight + eps
    def forward(self, x):
        return x * self.scale
class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y
{LINE}
norm = Norm(torch.ones(3), eps=2.0)
x = norm(torch.arange(3.0))
Add.forward(None, x, y=x)
"""
    problem = load(tritonbench.problem_source(text, PATH))
    candidate = load(tritonbench.candidate_source(tritonbench.read(text, PATH).gold, text, PATH))
    names = [workload["name"] for workload in problem.get_workloads()]
    assert names == ["call 1: Norm.__call__", "call 2: Add.forward"]
    for number, want in enumerate(([0.0, 3.0, 6.0], [0.0, 6.0, 12.0])):
        for model in (problem.Model(), candidate.ModelNew()):
            assert model(*inputs(problem, number))[0].tolist() == want


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no line of 146 '#'"),
        (f"def f(:\n{LINE}\nf()\n", "not valid Python"),
        (f"def f(): ...\n{LINE}\nimport torch\n", "calls no function"),
    ],
)
def test_file_that_cannot_be_used_is_named(text: str, said: str) -> None:
    with pytest.raises(TaskError, match=f"own_file.py: .*{said}"):
        tritonbench.problem_source(text, PATH)


def test_syntax_error_in_test_has_its_line() -> None:
    with pytest.raises(TaskError, match=r"own_file.py: not valid Python: .*line 5\)"):
        tritonbench.problem_source(f"def f():\n    ...\n{LINE}\nf()\nf f\n", PATH)


def test_test_that_calls_nothing_says_so() -> None:
    source = tritonbench.problem_source(f"def f(): ...\n{LINE}\nif not f:\n    f()\n", PATH)
    with pytest.raises(RuntimeError, match="calls nothing"):
        load(source)


def test_call_that_rewrites_equal_output_is_a_workload() -> None:
    gold = "def double(x, out):\n    out.copy_(2 * x)\n\ndef label(x):\n    return 'x'\n"
    test = "x = torch.ones(3)\nout = torch.zeros(3)\ndouble(x, out)\nlabel(x)\ndouble(x, out)\n"
    problem = load(tritonbench.problem_source(f"import torch\n{gold}{LINE}\n{test}", PATH))
    names = [workload["name"] for workload in problem.get_workloads()]
    assert names == ["call 1: double", "call 3: double"]
    for number in range(2):
        assert problem.Model()(*inputs(problem, number))[1][0].tolist() == [2.0, 2.0, 2.0]


@pytest.fixture
def dirty_memory() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True  # with NaN or the largest number
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "made",
    ["torch.empty(3, dtype=torch.int32)", "torch.empty(3, requires_grad=True)", "torch.ones(3).new_empty(3)"],
)
def test_memory_that_the_test_leaves_empty_is_zero(dirty_memory: None, made: str) -> None:
    text = f"import torch\ndef f(x):\n    return x + 1\n{LINE}\nf({made})\n"
    problem = load(tritonbench.problem_source(text, PATH))
    assert problem.get_inputs()[1][0].tolist() == [0, 0, 0]


def test_returned_object_has_its_type_alone() -> None:
    gold = "class Opaque: ...\n\ndef f(x):\n    return x, Opaque(), x.dtype, 'text', None\n"
    problem = load(tritonbench.problem_source(f"import torch\n{gold}{LINE}\nf(torch.ones(2))\n", PATH))
    result = problem.Model()(*problem.get_inputs())[0]
    assert result[1:] == ["Opaque", "torch.float32", "text", None]


def test_undefined_gradient_of_an_output_is_zero() -> None:
    gold = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, one, other):
        return 2 * one

def twice(x):
    return Twice.apply(x)
"""
    test = "x = torch.ones(2, requires_grad=True)\ntwice(x)[0].sum().backward()\n"
    problem = load(tritonbench.problem_source(f"import torch\n{gold}{LINE}\n{test}", PATH))
    upstream = problem.get_inputs()[5]
    assert [gradient.tolist() for gradient in upstream] == [[1.0, 1.0], [0.0, 0.0]]


SQUARE = f"""
{SQUARE_CLASS}
def square(x):
    return Square.apply(x)

def triple(x):
    return x * 3

def double_(x):
    return x.mul_(2)

class Scale(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((n,), 3.0))
        self.unused = torch.nn.Parameter(torch.ones(n))
    def forward(self, x):
        return square(x * self.weight)
"""


def of_test(gold: str, test: str) -> Any:
    return load(tritonbench.problem_source(f"import torch\n{gold}{LINE}\n{test}\n", PATH))


@pytest.mark.parametrize(
    ("test", "want"),
    [
        ("square(x * 1.0).sum().backward()", [[[2.0, 2.0]]]),
        ("square(triple(x)).sum().backward()", [[[18.0, 18.0]], [[6.0, 6.0]]]),
        ("double_(x * 1.0).sum().backward()", [[[2.0, 2.0]]]),
        ("(square(x * 1.0) * 0).sum().backward()", [[]]),
        ("square(x * 1.0)", [[]]),
    ],
)
def test_gradients_of_computed_arguments_are_outputs(test: str, want: list[Any]) -> None:
    problem = of_test(SQUARE, f"x = torch.ones(2, requires_grad=True)\n{test}")
    for number, each in enumerate(want):
        with torch.no_grad():
            gradients = problem.Model()(*inputs(problem, number))[2]
        assert [gradient.tolist() for gradient in gradients] == each


def test_gradients_of_parameters_are_outputs() -> None:
    problem = of_test(SQUARE, "scale = Scale(2)\nscale(torch.ones(2)).sum().backward()\nscale(torch.ones(2))")
    with torch.no_grad():
        (found,) = problem.Model()(*inputs(problem, 0))[2]
        assert problem.Model()(*inputs(problem, 1))[2] == []
    assert {name: gradient.tolist() for name, gradient in found.items()} == {
        "0.weight": [6.0, 6.0],
        "0.unused": [0.0, 0.0],
    }


def test_result_beside_a_reference_without_one_is_ignored() -> None:
    text = f"import torch\ndef fill(x):\n    x.fill_(3)\n{LINE}\nfill(torch.zeros(2))\n"
    problem = load(tritonbench.problem_source(text, PATH))
    code = "def fill(x):\n    return x.fill_(3)\n"
    candidate = load(tritonbench.candidate_source(code, text, PATH))
    for model in (problem.Model(), candidate.ModelNew()):
        result, written, _ = model(*problem.get_inputs())
        assert (result, written[0].tolist()) == (None, [3.0, 3.0])


@pytest.mark.parametrize("name", ["Model", "ModelNew", "get_inputs", "io"])
def test_file_may_define_names_of_the_added_module(name: str) -> None:
    gold = f"""
import torch
class {name}(torch.nn.Module):
    def __init__(self, n):
        super({name}, self).__init__()
        self.n = n
    def forward(self, x):
        return self.{name}(x, dict({name}=self.n))
    def {name}(self, x, given):
        return x * given["{name}"]
def make(x):
    return {name}(3)(x)
"""
    text = f"{gold}{LINE}\n{name}(4)(torch.ones(2))\nmake(torch.ones(2))\n"
    problem = load(tritonbench.problem_source(text, PATH))
    candidate = load(tritonbench.candidate_source(tritonbench.read(text, PATH).gold, text, PATH))
    assert [each["name"] for each in problem.get_workloads()] == [f"call 1: {name}.__call__", "call 2: make"]
    for number, want in enumerate((4.0, 3.0)):
        for model in (problem.Model(), candidate.ModelNew()):
            assert model(*inputs(problem, number))[0].tolist() == [want, want]


def test_argument_of_type_size_keeps_its_type() -> None:
    problem = of_test("def f(n):\n    return torch.ones(n.numel()).view(n)\n", "f(torch.Size([2, 3]))")
    assert problem.Model()(*problem.get_inputs())[0].shape == (2, 3)


def test_tensor_given_twice_stays_one() -> None:
    gold = "def f(x, out):\n    out.fill_(5)\n    return x + 1, x is out\n"
    problem = of_test(gold, "x, y = torch.zeros(2), torch.zeros(2)\nf(x, y)\nf(x, out=x)")
    for number, (result, written) in enumerate([([1.0, 1.0], [1]), ([6.0, 6.0], [0])]):
        given = inputs(problem, number)
        made, same = problem.Model()(*given)[0]
        assert (made.tolist(), bool(same), given[3]) == (result, number == 1, written)


def test_argument_of_a_foreign_class_is_refused() -> None:
    text = f"import threading\ndef f(x): ...\n{LINE}\nimport threading\nf(threading.Lock())\n"
    with pytest.raises(TypeError, match="of type lock cannot be passed"):
        load(tritonbench.problem_source(text, PATH))
