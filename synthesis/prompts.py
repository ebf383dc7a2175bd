"""The four ways to ask for a problem."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.prompts.render import render
from adaexplore.tasks.operators import Operator
from adaexplore.tasks.sources import task_from_file
from synthesis.catalogue import Catalogue

OPERATORS_SHOWN = 24
OPERATORS_USED = (3, 6)
_THEMES = (
    "in a recommender", "in speech recognition", "in a vision transformer", "in a diffusion model",
    "in a physics simulation", "in a language model's decoder", "in graph learning", "in image restoration",
    "in reinforcement learning", "in signal processing", "in a mixture of experts", "in a time-series model",
)  # fmt: skip


class Style(StrEnum):
    """How a problem is asked for."""

    SELF_INSTRUCT = "self_instruct"
    MUTATION = "mutation"
    CREATIVE = "creative"
    COMPOSITE = "composite"


_SEEDS_SHOWN = {Style.SELF_INSTRUCT: 3, Style.MUTATION: 1, Style.CREATIVE: 0, Style.COMPOSITE: 3}


@dataclass(frozen=True)
class Sizes:
    """How many elements the first input has."""

    low: int
    high: int


def seed_problems(folder: Path) -> list[str]:
    """The problems in ``folder``, in the order of their names.

    Raises:
        TaskError: there are none, or one is no problem.
    """
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise TaskError(f"no seed problems in {folder}; name a folder of problem files with --seeds")
    return [task_from_file(path, "fp32").reference for path in paths]


def task_prompt(
    style: Style, catalogue: Catalogue, seeds: Sequence[str], sizes: Sizes, rng: random.Random
) -> str:
    """The prompt for one problem; what it shows is drawn from ``rng``."""
    operators = catalogue.draw(OPERATORS_SHOWN, rng)
    contract = render(
        "task_contract",
        operators="\n".join(map(_line, operators)),
        fewest=OPERATORS_USED[0],
        most=OPERATORS_USED[1],
        low=sizes.low,
        high=sizes.high,
    )
    shown = rng.sample(list(seeds), min(_SEEDS_SHOWN[style], len(seeds)))
    examples = "\n\n".join(f"```python\n{seed.strip()}\n```" for seed in shown)
    match style:
        case Style.SELF_INSTRUCT:
            return render("task_self_instruct", seeds=examples, contract=contract)
        case Style.MUTATION:
            return render("task_mutation", seeds=examples, contract=contract, changes=rng.choice((2, 3)))
        case Style.CREATIVE:
            return render("task_creative", theme=rng.choice(_THEMES), contract=contract)
        case Style.COMPOSITE:
            return render("task_composite", seeds=examples, contract=contract)


def _line(entry: Operator) -> str:
    return entry.model_dump_json(exclude_defaults=True, exclude={"signature"})
