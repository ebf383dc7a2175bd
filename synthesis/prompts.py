"""The four styles of requests for a problem."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.llm.protocol import TaskData
from adaexplore.prompts.render import render
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
    SELF_INSTRUCT = "self_instruct"
    MUTATION = "mutation"
    CREATIVE = "creative"
    COMPOSITE = "composite"


_SEEDS_SHOWN = {Style.SELF_INSTRUCT: 3, Style.MUTATION: 1, Style.CREATIVE: 0, Style.COMPOSITE: 3}


@dataclass(frozen=True)
class Sizes:
    """Range of the number of elements of the first input."""

    low: int
    high: int


def seed_problems(folder: Path) -> list[str]:
    """Read the problems in ``folder``, sorted by name.

    Raises:
        TaskError: there are none, or one is not a problem.
    """
    paths = sorted(path for path in folder.glob("*.py") if not path.name.endswith(".hidden.py"))
    if not paths:
        raise TaskError(f"no seed problems in {folder}; name a folder of problem files with --seeds")
    return [task_from_file(path, "fp32").reference for path in paths]


def draw_task(catalogue: Catalogue, sizes: Sizes, rng: random.Random) -> TaskData:
    """Return the parts of a problem to compose; its operators are drawn from ``rng``."""
    return TaskData(tuple(catalogue.draw(OPERATORS_SHOWN, rng)), *OPERATORS_USED, sizes.low, sizes.high)


def task_prompt(style: Style, data: TaskData, seeds: Sequence[str], rng: random.Random) -> str:
    """Return the prompt for one problem; which seeds it shows is drawn from ``rng``."""
    contract = render(
        "task_contract",
        operators="\n".join(
            entry.model_dump_json(exclude_defaults=True, exclude={"signature"}) for entry in data.operators
        ),
        fewest=data.fewest,
        most=data.most,
        low=data.low,
        high=data.high,
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
