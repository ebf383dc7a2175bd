"""Suggestions for a shown kernel, from its code and its verdict."""

import random
import re

from adaexplore.core.draft import ShownKernel
from adaexplore.offline_writer.choices import is_swept
from adaexplore.offline_writer.mistakes import rule_for
from adaexplore.prompts.blocks import explain

_NO_IDEA = "The kernel is right; divide the work among kernels in another way, or change the block size."


def review(kernel: ShownKernel, rng: random.Random) -> str:
    """Return one to three numbered suggestions."""
    if kernel.verdict is not None and kernel.failed:
        first, rule = kernel.verdict.status.row.advice, rule_for(explain(kernel.verdict))
        points = [first, rule] if rule else [first]
    else:
        points = _faster(kernel.source, rng)
    return "\n".join(f"{number}. {point}" for number, point in enumerate(points, start=1))


def _faster(source: str, rng: random.Random) -> list[str]:
    ideas = [
        f"{name} is {value}, try {'half' if int(value) > 4 and rng.random() < 0.5 else 'twice'} as much."
        for name, value in re.findall(r"^([A-Z][A-Z_]+) = (\d+)$", source, re.M)
        if not is_swept(name, source)
    ]
    if "_loop_kernel" in source:
        ideas.append("Rows that fit one block should stay in registers instead of being read once a pass.")
    if "tl.dot" not in source and re.search(r"matmul|nn\.Linear|@ ", source):
        ideas.append(
            "The matrix product goes to the library; its epilogue could run inside a tiled tl.dot kernel."
        )
    rng.shuffle(ideas)
    return ideas[: rng.choice((1, 2))] or [_NO_IDEA]
