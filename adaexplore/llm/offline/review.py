"""Suggestions for a shown kernel, from its code and its verdict."""

from __future__ import annotations

import random
import re

from adaexplore.core.verdict import Status
from adaexplore.llm.offline.choices import is_swept
from adaexplore.llm.offline.mistakes import rule_for
from adaexplore.llm.offline.prompt import Shown

_FAILURES = {
    Status.SYNTAX.value: "Mend the syntax error that the finding names before anything else.",
    Status.LOAD.value: "Make the file import: define every name that module level uses, ModelNew above all.",
    Status.CONSTRUCT.value: "Give ModelNew the constructor arguments and parameters of Model.",
    Status.COMPILE.value: "Rewrite the line that the compiler points at with what triton.language offers.",
    Status.LAUNCH.value: "Check the launch: arguments declared, tensors contiguous, grid positive.",
    Status.ILLEGAL_ACCESS.value: "Mask every load and store at the end of the data.",
    Status.OUT_OF_MEMORY.value: "Allocate fewer temporaries, or shorten the tiles.",
    Status.TIMEOUT.value: "Give each program less work and the grid more programs.",
    Status.WRONG_SHAPE.value: "Allocate the output in the shape that the reference returns.",
    Status.WRONG_DTYPE.value: "Allocate the output in the dtype that the reference returns.",
    Status.WRONG_VALUE.value: "Compare masks, axes and constants with the reference, masked lanes above all.",
    Status.NONFINITE.value: "Keep masked lanes out of reductions and shift exponents by the row's maximum.",
}

_NO_IDEA = "The kernel is right; divide the work among kernels in another way, or change the block size."


def review(kernel: Shown, rng: random.Random) -> str:
    """One to three numbered suggestions."""
    if kernel.failed:
        first = _FAILURES.get(kernel.status, "Find the cause that the finding names and remove it.")
        rule = rule_for(kernel.feedback)
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
