"""Honest kernels with matrix products, with operands in TF32 and in bfloat16.

A folder of ``tf32_corpus`` holds problems (``problem*.py``) and kernels for all of them (the other files).
The source of a kernel is ``tf32_corpus/matmul.py``, which defines the tiled product, and then its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CORPUS = Path(__file__).parent / "tf32_corpus"
OPERANDS = "OPERANDS = tl.float32\n"
"""The line that sets the operands' format; ``tl.dot`` uses float32 operands as TF32 by default."""


@dataclass(frozen=True)
class Entry:
    """One kernel in one variant.

    Attributes:
        name: of problem and kernel, such as ``attention-shifted/flash``.
        variant: format of the operands.
        problem: source with ``Model``, ``get_inputs`` and ``get_init_inputs``.
        source: source with ``ModelNew``.
    """

    name: str
    variant: Literal["tf32", "bf16"]
    problem: str
    source: str

    @property
    def id(self) -> str:
        return f"{self.name}/{self.variant}"


def entries() -> Iterator[Entry]:
    """Yield every kernel for each of its problems, in both variants, ordered by name."""
    shared = (CORPUS / "matmul.py").read_text(encoding="utf-8")
    for path in sorted(CORPUS.glob("*/problem*.py")):
        problem = path.read_text(encoding="utf-8")
        folder = path.parent.name + path.stem.removeprefix("problem")
        for kernel in sorted(set(path.parent.glob("*.py")) - set(path.parent.glob("problem*.py"))):
            source = f"{shared}\n\n{kernel.read_text(encoding='utf-8')}"
            name = f"{folder}/{kernel.stem}"
            yield Entry(name, "tf32", problem, source)
            yield Entry(name, "bf16", problem, source.replace(OPERANDS, "OPERANDS = tl.bfloat16\n"))
