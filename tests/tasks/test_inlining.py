"""Problems whose classes live in packages: the text that prompts and judges get."""

from __future__ import annotations

import ast
import os
import py_compile
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import TaskError
from adaexplore.core.wire import Direction
from adaexplore.tasks.sources import task_from_file

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ENDING = """

def get_inputs():
    return [torch.randn(2, 3)]


def get_init_inputs():
    return [3]
"""
LINEAR = """
import torch

class Linear3(torch.nn.Module):
    '''A linear layer.'''
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n, n))

    def forward(self, x):
        return x @ self.weight  # (N, D)
"""


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def inlined(
    folder: Path, files: Mapping[str, str], problem: str, judge_has: Collection[str] = (), hidden: str = ""
) -> str:
    """Return the text of a problem beside packages; it was compared with the original."""
    write(folder, files)
    (folder / "problem.py").write_text("import torch\n" + textwrap.dedent(problem) + ENDING)
    if hidden:
        (folder / "problem.hidden.py").write_text(hidden)
    text = task_from_file(folder / "problem.py", "fp32", judge_packages=lambda: judge_has).reference
    ast.parse(text)
    return text


def refused(
    folder: Path, files: Mapping[str, str], problem: str, judge_has: Collection[str] = (), hidden: str = ""
) -> str:
    with pytest.raises(TaskError) as caught:
        inlined(folder, files, problem, judge_has, hidden)
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("task 0_problem: ")
    return line


def test_problem_without_packages_stays_to_the_byte(tmp_path: Path) -> None:
    problem = "# comment\nimport torch, math\nclass Model(torch.nn.Module): ...\n" + ENDING
    (tmp_path / "p.py").write_text(problem)
    assert task_from_file(tmp_path / "p.py", "fp32").reference == problem


def test_imported_class_becomes_model(tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "from .layers import Linear3", "pkg/layers.py": LINEAR}
    text = inlined(tmp_path, files, "from pkg import Linear3 as Model")
    assert "class Model(torch.nn.Module):" in text
    assert "return x @ self.weight" in text
    assert "pkg" not in text
    assert "A linear layer" not in text


@pytest.mark.parametrize(
    "ending",
    [
        "def get_inputs():\n    return {'x': torch.randn(2, 3), 'scale': 2.0}\n",
        "def get_inputs():\n    return [[torch.randn(2, 3)], {'scale': 2.0}]\n",
        "def get_inputs():\n    return torch.randn(1, 3)\ndef get_init_inputs():\n    return None\n",
    ],
)
@pytest.mark.parametrize("direction", ["forward", "both"])
def test_function_with_keyword_inputs_is_inlined(ending: str, direction: Direction, tmp_path: Path) -> None:
    function = "def scaled(x, scale=1.0):\n    return x.relu() * scale\n"
    write(tmp_path, {"pkg/__init__.py": "", "pkg/maths.py": function})
    problem = "import torch\nfrom pkg.maths import scaled\nModel = scaled\n" + ending
    if direction == "both":
        problem = problem.replace("torch.randn(2, 3)", "torch.randn(2, 3).requires_grad_()")
        problem = problem.replace("torch.randn(1, 3)", "torch.randn(1, 3).requires_grad_()")
    (tmp_path / "problem.py").write_text(problem)
    text = task_from_file(tmp_path / "problem.py", "fp32", direction).reference
    assert "x.relu() * scale" in text
    assert "pkg" not in text


PACKAGE = {
    "pkg/__init__.py": "from .blocks import *\nprint('imported')",
    "pkg/blocks.py": """
        from __future__ import annotations
        import math as m
        from dataclasses import dataclass
        from enum import Enum
        from functools import partial
        from typing import TYPE_CHECKING, NamedTuple
        import torch, torch.nn.functional as F
        from torch import nn, Tensor
        import other.base as base
        from other import scale as other_scale
        from . import tables
        from .tables import TABLE as T, register
        if TYPE_CHECKING:
            from heavy import Config
        __all__ = ["Block"]

        try:
            from missing_package import fast_gelu as gelu
        except ImportError:
            gelu = partial(F.gelu, approximate="tanh")

        class Kind(Enum):
            ADD = 1
            MUL = 2

        @dataclass
        class Settings:
            size: int
            kind: Kind = Kind.ADD
            last: Last = None

        class Last(NamedTuple):
            factor: float = m.sqrt(2.0)

        def scale(x: Tensor, config: Config = None) -> Tensor:
            def inner(y):
                return y * T["two"] + tables.ONE
            return inner(x) + m.pi

        @register("square")
        def square(x):
            return x * x

        def unused():
            raise RuntimeError("never inlined")

        COUNT = 0

        class Block(base.Base):
            eps = tables.EPS

            def __init__(self, n):
                super(Block, self).__init__(n)
                self.settings = Settings(n, last=Last())
                self.register_buffer("mask", torch.ones(n))

            def forward(self, x):
                global COUNT
                from .late import late
                COUNT += 1
                x = super().forward(x) * self.mask + self.eps
                x = tables.FUNCTIONS["square"](gelu(x)) + late(x) * COUNT
                names = [scale for scale in (1, 2)]
                return other_scale(scale(x)) if self.settings.kind is Kind.ADD else x * sum(names)
    """,
    "pkg/tables.py": """
        TABLE = {"one": 1.0}
        for number, name in enumerate(("zero", "one", "two")):
            TABLE[name] = float(number)
        ONE = TABLE["one"]
        EPS: float = 1e-3
        FUNCTIONS = {}
        def register(name):
            def note(function):
                FUNCTIONS[name] = function
                return function
            return note
    """,
    "pkg/late.py": "from .blocks import scale\ndef late(x):\n    return scale(x) * 0.5\n",
    "other/__init__.py": "def scale(x):\n    return x * 3.0\n",
    "other/base.py": LINEAR.replace("Linear3", "Base"),
}


def test_whole_package_form_is_inlined(tmp_path: Path) -> None:
    text = inlined(tmp_path, PACKAGE, "import pkg as p\nclass Model(p.Block):\n    pass")
    tree = ast.parse(text)
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not imported & {"pkg", "other", "late", None}
    assert "def other_scale(x)" in text or "def blocks_scale(x" in text
    assert "never inlined" not in text
    assert text.count("def scale") == 1


def test_circular_imports_and_star_imports_are_inlined(tmp_path: Path) -> None:
    files = {
        "ring/__init__.py": "from ring.one import *",
        "ring/one.py": "HALF = 0.5\nfrom ring.two import Twice\n" + LINEAR.replace("n, n)", "n, n) * HALF"),
        "ring/two.py": "import ring.one as one\nclass Twice:\n    factor = one.HALF * 4\n"
        "    def linear(self): return one.Linear3\n",
    }
    text = inlined(
        tmp_path,
        files,
        "from ring import *\nModel = Linear3\nTWO = Twice.factor",
        hidden="x = Twice\ndef get_workloads(): return [{'name': 'a', 'get_inputs': get_inputs}]",
    )
    assert "class Twice" in text
    assert text.index("HALF = 0.5") < text.index("class Twice")


def test_problem_within_a_package_is_inlined(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/layers.py": LINEAR})
    text = inlined(tmp_path / "pkg", {}, "from .layers import Linear3 as Model")
    assert "class Model(torch.nn.Module)" in text


def test_lazy_reexport_and_alternatives_are_inlined(tmp_path: Path) -> None:
    files = {
        "lazy/__init__.py": """
            def __getattr__(name):
                import importlib
                return getattr(importlib.import_module(".layers", __name__), name)
        """,
        "lazy/layers.py": "if True:\n    LIMIT = 4\nelse:\n    LIMIT = 5\nif LIMIT == 4:\n"
        "    def helper(x): return x + LIMIT\nelse:\n    def helper(x): return x - 1\n"
        + LINEAR.replace("return x @", "return helper(x) @"),
    }
    text = inlined(tmp_path, files, "import lazy\nclass Model(lazy.Linear3): pass")
    assert "LIMIT = 4" in text
    assert "x - 1" not in text


REFUSED = {
    "not installed": ({}, "from absent_one import Model", "No module named 'absent_one'; install it here"),
    "error at import": (
        {"pkg.py": "raise RuntimeError('no\\nlicence')"},
        "from pkg import Model",
        "RuntimeError: no licence (pkg.py, line 1)",
    ),
    "exit at import": ({"pkg.py": "import os; os._exit(3)"}, "from pkg import Model", "ended early"),
    "no such name": ({"pkg.py": "x = 1"}, "from pkg import Model", "cannot import name 'Model'"),
    "made by exec": (
        {"pkg.py": f"text = '''{LINEAR.replace(chr(39) * 3, chr(34) * 3)}'''\nexec(text)"},
        "from pkg import Linear3 as Model",
        "no statement of pkg defines Linear3",
    ),
    "module as a value": (
        {"pkg.py": LINEAR},
        "import pkg\nModel = getattr(pkg, 'Linear3')",
        "uses the module pkg as a value",
    ),
    "differs": (
        {"pkg.py": LINEAR.replace("  #", " + len(__file__)  #")},
        "from pkg import Linear3 as Model",
        "its inlined source differs from the original in the output",
    ),
    "forward fails": (
        {"pkg.py": LINEAR.replace("return x @", "return x.no_such @")},
        "from pkg import Linear3 as Model",
        "AttributeError: 'Tensor' object has no attribute 'no_such' (pkg.py, line",
    ),
    "reads a file of the package": (
        {"pkg/__init__.py": LINEAR + "\nSIZE = len(open(__file__).read())", "pkg/x.py": ""},
        "from pkg import Linear3 as Model, SIZE\nMODULES = SIZE",
        "its inlined source fails: FileNotFoundError",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_inlined_is_one_line(kind: str, tmp_path: Path) -> None:
    files, problem, words = REFUSED[kind]
    assert words in refused(tmp_path, files, problem)


def compile_file(folder: Path, name: str, source: str) -> None:
    """Write a module without its source."""
    (folder / "source.txt").write_text(source)
    py_compile.compile(str(folder / "source.txt"), str(folder / f"{name}.pyc"))


def test_compiled_code_is_named(tmp_path: Path) -> None:
    compile_file(tmp_path, "pkg", LINEAR)
    line = refused(tmp_path, {}, "from pkg import Linear3 as Model")
    assert "pkg.Linear3 is compiled code or has no Python source" in line


def large(count: int) -> str:
    lines = "\n".join(f"    x = x + {number}" for number in range(count))
    return f"def add(x):\n{lines}\n    return x\n"


def test_too_large_source_names_its_largest_parts(tmp_path: Path) -> None:
    files = {"pkg.py": large(2000) + LINEAR.replace("return x @", "return add(x) @")}
    line = refused(tmp_path, files, "from pkg import Linear3 as Model")
    assert "at most 24 KB can be inlined; largest: pkg.add 3" in line
    assert "KB, pkg.Linear3 0.2 KB" in line


def test_large_package_of_the_judge_stays_an_import(tmp_path: Path) -> None:
    files = {
        "big.py": large(2000),
        "pkg.py": "from big import add\n" + LINEAR.replace("return x @", "return add(x) @"),
    }
    text = inlined(tmp_path, files, "from pkg import Linear3 as Model", judge_has=["big"])
    assert "from big import add" in text
    assert "class Model" in text


def test_hidden_workloads_import_what_the_problem_does(tmp_path: Path) -> None:
    hidden = "import other\ndef get_workloads(): return [{'name': 'a', 'get_inputs': other.draw}]\n"
    line = refused(tmp_path, {"pkg.py": LINEAR}, "from pkg import Linear3 as Model", hidden=hidden)
    assert "imports other; import it in problem.py too" in line


def test_packages_see_no_key_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    check = """
    import os, socket
    assert not [name for name in os.environ if "API_KEY" in name]
    interfaces = {name for _, name in socket.if_nameindex()}
    """
    files = {
        "pkg.py": textwrap.dedent(check)
        + f"assert interfaces <= {{'lo'}} or not {os.geteuid() == 0}\n"
        + LINEAR
    }
    assert "class Model" in inlined(tmp_path, files, "from pkg import Linear3 as Model")


def test_functions_that_never_run_make_space(tmp_path: Path) -> None:
    draw = "\n    def draw(self):\n        return add(self.weight)\n"
    files = {"pkg.py": large(2000) + LINEAR + draw}
    text = inlined(tmp_path, files, "from pkg import Linear3 as Model")
    assert "raise NotImplementedError" in text
    assert "x + 1999" not in text


def test_compiled_code_that_never_runs_is_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"pkg.py": "import fast\n" + LINEAR + "\n    def draw(self):\n        return fast.plot(self)\n"},
    )
    compile_file(tmp_path, "fast", "def plot(x): return x")
    text = inlined(tmp_path, {}, "from pkg import Linear3 as Model")
    assert "raise NotImplementedError" in text
    assert "fast" not in text


def test_gradients_are_compared_in_backward_tasks(tmp_path: Path) -> None:
    function = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * len(__file__)

"""
    write(
        tmp_path,
        {
            "pkg.py": LINEAR.replace("return x @ self.weight", "return Twice.apply(x @ self.weight)")
            + function
        },
    )
    (tmp_path / "problem.py").write_text("import torch\nfrom pkg import Linear3 as Model\n" + ENDING)
    assert "Twice.apply" in task_from_file(tmp_path / "problem.py", "fp32").reference
    with pytest.raises(TaskError, match="differs from the original in the gradient of weight"):
        task_from_file(tmp_path / "problem.py", "fp32", "both")


def run_command(folder: Path, *settings: str) -> int:
    given = ["dummy=true", "server_type=offline", "preset=default", "total_steps=1", *settings]
    choices = [part for each in given for part in ("--set", each)]
    return main(
        ["run", "--task", str(folder / "problem.py"), *choices, "--set", f"save_path={folder / 'out'}"]
    )


def test_run_records_and_prompts_the_inlined_text(tmp_path: Path) -> None:
    text = inlined(tmp_path, {"pkg.py": LINEAR}, "from pkg import Linear3 as Model")
    run_command(tmp_path)
    (recorded,) = (tmp_path / "out").rglob("reference_src.py")
    assert recorded.read_text().strip() == text.strip()
    prompts = [path.read_text() for path in (tmp_path / "out").rglob("*prompt*") if path.is_file()]
    assert any("return x @ self.weight" in prompt for prompt in prompts)
    assert not any("import Linear3" in prompt for prompt in prompts)


def test_run_refuses_before_a_model_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"pkg.py": large(2000) + LINEAR.replace("return x @", "return add(x) @")})
    (tmp_path / "problem.py").write_text("import torch\nfrom pkg import Linear3 as Model\n" + ENDING)
    assert run_command(tmp_path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "largest: pkg.add" in line
    assert not (tmp_path / "out").exists()


def test_future_import_stays_only_where_fields_need_it(tmp_path: Path) -> None:
    future = "from __future__ import annotations\n"
    hinted = LINEAR.replace("self, x)", "self, x: torch.Tensor | Absent) -> Absent | None")
    text = inlined(tmp_path, {"one.py": future + hinted}, "from one import Linear3 as Model")
    assert "__future__" not in text
    assert "def forward(self, x):" in text
    field = "from dataclasses import dataclass\n@dataclass\nclass Size:\n    next: Size = None\n"
    used = LINEAR.replace("super().__init__()", "super().__init__(); self.size = Size()")
    text = inlined(tmp_path, {"two.py": future + field + used}, "from two import Linear3 as Model")
    assert text.startswith(future)
