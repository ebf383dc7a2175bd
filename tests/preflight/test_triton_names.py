"""Names and parameters of the judge's Triton: what is missing, and what no answer may break."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.core.environment import Environment, TritonFacts
from adaexplore.core.errors import UsageError
from adaexplore.preflight.triton_names import read_triton
from tests.preflight.cases import FINE, module, rules

FACTS = TritonFacts(
    names={
        "triton.language": ["arange", "constexpr", "load", "program_id", "store"],
        "triton.language.extra.libdevice": ["tanh"],
    },
    gone=["triton.ops", "triton.language._old_load"],
    parameters={"load": "pointer, mask=None, other=None", "arange": "start, end"},
)


def imported(line: str) -> set[str]:
    return rules(FINE.replace("import math", line), FACTS)


@pytest.mark.parametrize(
    "line",
    [
        "from triton.language import tanh",
        "from triton.language.extra.libdevice import load",
        "from triton.language.extra.cuda.libdevice import load",
        "from triton.ops import matmul",
        "from triton.language import _old_load",
    ],
)
def test_names_that_the_judge_lacks_are_found(line: str) -> None:
    assert imported(line) == {"missing-triton-name"}


@pytest.mark.parametrize(
    "line",
    [
        "from triton.language import load",
        "from triton.language import core, standard, math",
        "from triton.language import _private",
        "from triton.language.extra import libdevice",
        "from triton.language.extra.cuda.libdevice import tanh",
        "from triton.language.some_module import anything",
        "from triton import anything",
    ],
)
def test_names_in_no_recorded_list_are_ignored(line: str) -> None:
    assert imported(line) == set()


def test_functions_are_checked_against_the_stated_parameters() -> None:
    assert rules(module("x = tl.load(x_ptr, dtype=5)"), FACTS) == {"unknown-keyword"}
    assert rules(module("x = tl.arange(BLOCK)"), FACTS) == {"function-arguments"}
    assert rules(module("x = tl.store(BLOCK)"), FACTS) == set()  # nothing is stated about it


@pytest.mark.parametrize("text", ["a b", "a): pass\nx = (", "\0", "(" * 5000])
def test_unreadable_parameters_give_none(text: str) -> None:
    facts = FACTS.model_copy(update={"parameters": {"load": text}})
    assert rules(module("x = tl.load(x_ptr, dtype=5)"), facts) == set()


def test_stored_environment_of_a_judge_is_read(tmp_path: Path) -> None:
    path = tmp_path / "judge_environment.json"
    path.write_text(Environment(hardware="CPU", triton=FACTS).model_dump_json())
    assert read_triton(path) == FACTS
    for text in ("", "[]", "{}", '{"hardware": "CPU", "triton": {"names": 5}}'):
        path.write_text(text)
        with pytest.raises(UsageError, match="is not a judge's environment; give a run's"):
            read_triton(path)


def test_lints_import_neither_triton_nor_torch() -> None:
    code = (
        "import sys\n"
        "from adaexplore.preflight.lints import lint\n"
        "lint('import triton\\nclass ModelNew: ...', None)\n"
        "assert not {'triton', 'torch'} & set(sys.modules), 'imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
