"""Candidates of this project's own: written for this benchmark, and by the offline writer."""

from __future__ import annotations

import random
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.llm.offline.module import translate
from adaexplore.llm.offline.writer import possible_designs
from tool_scripts.judge_bench import candidates
from tool_scripts.judge_bench.candidates import Candidate

KERNELS = Path(__file__).parent / "kernels"
QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart"

LARGE = "large"
SMALL = "small"


def kernels() -> list[Candidate]:
    """The kernels of the part ``repeat``: ``large-*`` take over 100 us, ``small-*`` 20 to 100 us."""
    return candidates.read(KERNELS)


def small() -> Candidate:
    """One that is judged in no time on every device: for warming up."""
    return offline(0, 1)[0]


def offline(seed: int, per_problem: int, folder: Path = QUICKSTART) -> list[Candidate]:
    """What the offline writer makes of each quickstart problem, without mistakes.

    Args:
        seed: of the choice among its designs.
        per_problem: designs of each problem; the usual one is always among them.
        folder: with ``level<N>/<id>_<name>.py``.

    Raises:
        UsageError: ``folder`` has no problems.
    """
    files = sorted(folder.glob("level*/*.py"))
    if not files:
        raise UsageError(f"{folder} has no level*/*.py; run this from a checkout of the project")
    made: list[Candidate] = []
    for file in files:
        reference = file.read_text(encoding="utf-8")
        name = f"quickstart-{file.parent.name}-{file.stem}"
        designs = possible_designs(reference)
        rng = random.Random(f"{seed}:{name}")
        chosen = designs[:1] + rng.sample(designs[1:], min(per_problem - 1, len(designs) - 1))
        made += [
            Candidate(
                f"{name}/design-{designs.index(choices)}", name, reference, translate(reference, choices)
            )
            for choices in chosen
        ]
    return candidates.different(made)
