"""Honest kernels with matrix products, each with the operands of its products in three number formats.

A folder of ``tf32_corpus`` holds problems (``problem*.py``) and kernels for all of them (the other files).
The source of a kernel is ``tf32_corpus/matmul.py``, which defines the tiled product, and then its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Variant = Literal["tf32", "bf16", "fp16"]
"""Format of the operands; ``tl.dot`` uses float32 operands as TF32 by default."""

CORPUS = Path(__file__).parent / "tf32_corpus"
_SHARED = "matmul.py"
_LINE = "OPERANDS = tl.{}\n"
_TYPES: dict[Variant, str] = {"tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class Entry:
    """One kernel in one variant.

    Attributes:
        name: of problem and kernel, such as ``attention-shifted/flash``.
        variant: of the kernel.
        problem: source with ``Model``, ``get_inputs`` and ``get_init_inputs``.
        source: source with ``ModelNew``.
    """

    name: str
    variant: Variant
    problem: str
    source: str

    @property
    def id(self) -> str:
        return f"{self.name}/{self.variant}"


def entries() -> Iterator[Entry]:
    """Yield every kernel for each of its problems, in all variants, ordered by name."""
    shared = (CORPUS / _SHARED).read_text(encoding="utf-8")
    for path in sorted(CORPUS.glob("*/problem*.py")):
        problem = path.read_text(encoding="utf-8")
        name = path.parent.name + path.stem.removeprefix("problem")
        for kernel in sorted(set(path.parent.glob("*.py")) - set(path.parent.glob("problem*.py"))):
            source = f"{shared}\n\n{kernel.read_text(encoding='utf-8')}"
            for variant in get_args(Variant):
                yield Entry(f"{name}/{kernel.stem}", variant, problem, with_operands(source, variant))


def with_operands(source: str, variant: Variant) -> str:
    """Return the source of the TF32 variant with its operands in the format of ``variant``.

    Raises:
        ValueError: the line that sets the operands is missing or occurs twice.
    """
    line = _LINE.format(_TYPES["tf32"])
    if source.count(line) != 1:
        raise ValueError(f"write the line {line.strip()!r} exactly once into the kernel")
    return source.replace(line, _LINE.format(_TYPES[variant]))
