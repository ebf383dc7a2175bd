"""What counts as a problem module."""

from __future__ import annotations

import pytest

from adaexplore.tasks.module_check import module_problem

GOOD = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


@pytest.mark.parametrize(
    "source",
    [
        GOOD,
        GOOD.replace("def get_inputs(): ...", "get_inputs = lambda: []"),
        GOOD.replace("class Model: ...", "from somewhere import Net as Model"),
        "if True:\n" + "".join(f"    {line}\n" for line in GOOD.splitlines()),
        "try:\n    import x\nexcept ImportError:\n    x = None\n" + GOOD,
        "def Model(x): ...\ndef get_inputs(): ...\n",
        "def double(x): ...\nModel = double\ndef get_inputs(): ...\n",
        GOOD + 'pattern = "\\d"\n',
    ],
)
def test_problem_module_passes(source: str) -> None:
    assert module_problem(source) is None


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            GOOD.replace("class Model", "class Shiny"),
            "line 1: does not define Model; add the line 'Model = Shiny'",
        ),
        (
            "def _helper(): ...\ndef shiny(x): ...\n" + GOOD.replace("class Model: ...\n", ""),
            "line 2: does not define Model; add the line 'Model = shiny'",
        ),
        (
            "class Shiny: ...\nModel = Shiny\ndef get_inputs(): ...\n",
            "line 1: does not define get_init_inputs",
        ),
        ("x = 1", "line 1: does not define Model, get_inputs, get_init_inputs"),
        (GOOD.replace("class Model", "class Net"), "does not define Model;"),
        (
            "class Model:\n    def get_inputs(self): ...\n    def get_init_inputs(self): ...\n",
            "get_inputs, get_init",
        ),
        ("class Model:\n", "line 1: not valid Python"),
        ("x = 1\n  y = 2\n", "line 2: not valid Python"),
        ("a\x00b", "not valid Python"),
    ],
)
def test_other_source_is_refused_in_one_line(source: str, problem: str) -> None:
    found = module_problem(source)
    assert found is not None
    assert problem in found
    assert "\n" not in found


def test_source_is_not_run() -> None:
    assert module_problem(GOOD + "raise SystemExit\n") is None
