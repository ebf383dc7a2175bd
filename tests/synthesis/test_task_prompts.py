from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adaexplore.core.errors import TaskError
from adaexplore.core.streams import stream
from synthesis.catalogue import read_catalogue
from synthesis.prompts import OPERATORS_SHOWN, Sizes, Style, draw_task, seed_problems, task_prompt

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "datasets/KernelBench_syn/seeds"


def prompt(style: Style, seed: int = 0) -> str:
    rng = stream(seed, "x")
    return task_prompt(style, draw_task(read_catalogue(), Sizes(1000, 9000), rng), seed_problems(SEEDS), rng)


@pytest.mark.parametrize(
    ("style", "examples"), [("self_instruct", 3), ("mutation", 1), ("creative", 0), ("composite", 3)]
)
def test_each_style_shows_examples_operators_and_contract(style: str, examples: int) -> None:
    text = prompt(Style(style))
    assert len(re.findall(r"^class Model\(nn.Module\):", text, re.M)) == examples
    lines = re.search(r"```jsonl\n(.*?)\n```", text, re.S)
    assert lines is not None
    shown = [json.loads(line) for line in lines[1].splitlines()]
    assert len(shown) == OPERATORS_SHOWN
    assert all(entry["call"] and entry["operands"] for entry in shown)
    for words in ("1000 to 9000 elements", "3 to 6 operators", "get_init_inputs()", "one fenced block"):
        assert words in text
    assert "${" not in text


def test_draws_differ_between_attempts_and_repeat_for_one() -> None:
    assert prompt(Style.COMPOSITE, 1) == prompt(Style.COMPOSITE, 1) != prompt(Style.COMPOSITE, 2)


def test_a_folder_without_seeds_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=str(tmp_path)):
        seed_problems(tmp_path)
