"""The writer's design space: structures and numbers of generated kernels."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from adaexplore.core.text.tunables import MAX_NAMES, TUNABLES

FUSION = "FUSION"  # full: a reduction's kernel also reads later operands; split: it does not
GEMM = "GEMM"  # library: torch's own product; triton: a tiled kernel with its epilogue inside
ROWS = "ROWS"  # single: a short row in registers; online, loop: block by block with joined or separate passes
STRUCTURE: dict[str, tuple[str, ...]] = {
    FUSION: ("full", "split"),
    GEMM: ("library", "triton"),
    ROWS: ("single", "online", "loop"),
}
NUMBERS: dict[str, tuple[int, ...]] = {
    "BLOCK": (1024, 512, 2048, 4096),
    "WARPS": (4, 8, 2),
    "ROW_LIMIT": (16384, 8192, 32768),
    "ROW_TILE": (2048, 1024, 4096),
    "ROW_WORK": (16, 8, 32),
    "LANES": (64, 32, 128),
    "LOOP_BLOCK": (4096, 2048, 8192),
    "TILE_M": (128, 64),
    "TILE_N": (128, 256, 64),
    "TILE_K": (32, 64),
    "GROUP_M": (8, 4),
    "GEMM_WARPS": (8, 4),
    "STAGES": (3, 4, 2),
}
_DIRECTIONS: dict[str, dict[str, str]] = {
    "one_kernel": {FUSION: "full", GEMM: "triton"},
    "library_product": {GEMM: "library"},
    "own_product": {GEMM: "triton"},
    "split_reduction": {FUSION: "split"},
    "one_pass": {ROWS: "online"},
    "algebra": {ROWS: "loop"},
    "persistent": {},
    "layout": {ROWS: "loop", FUSION: "split"},
    "few_kernels": {FUSION: "split", GEMM: "library"},
    "wide_programs": {ROWS: "single"},
    "many_programs": {ROWS: "loop"},
}
"""The directions for large steps (prompts/templates/directions.yaml), and the structures they ask for."""

_DECLARED = re.compile(rf"^{TUNABLES} = (?P<table>.*)$", re.M)


@dataclass(frozen=True)
class Choices:
    """One point of the design space; the first value of each choice is the usual one.

    ``swept`` kernels leave their numbers to the judge.
    """

    structure: dict[str, str] = field(default_factory=lambda: {k: v[0] for k, v in STRUCTURE.items()})
    numbers: dict[str, int] = field(default_factory=lambda: {k: v[0] for k, v in NUMBERS.items()})
    swept: bool = False

    def with_structure(self, name: str, value: str) -> Choices:
        return replace(self, structure={**self.structure, name: value})

    def with_number(self, name: str, value: int) -> Choices:
        return replace(self, numbers={**self.numbers, name: value})


def read_choices(source: str) -> Choices | None:
    """Return the choices behind a kernel of this writer; None for other kernels."""
    found = Choices(swept=_DECLARED.search(source) is not None)
    header = re.search(r'^"""Triton kernels, (.*)\."""$', source, re.M)
    if header is None:
        return None
    for name, value in re.findall(r"(\w+)=(\w+)", header[1]):
        if value in STRUCTURE.get(name.upper(), ()):
            found = found.with_structure(name.upper(), value)
    for name, value in re.findall(r"^([A-Z_]+) = (\d+)$", source, re.M):
        if name in NUMBERS:
            found = found.with_number(name, int(value))
    return found


def header(structure: dict[str, str]) -> str:
    """Return the first line of a generated module, which states its structure."""
    parts = ", ".join(f"{name.lower()}={value}" for name, value in sorted(structure.items()))
    return f'"""Triton kernels, {parts}."""'


def tunables(names: Iterable[str]) -> str:
    """Return the line that leaves the numbers ``names`` to the judge; the last ones if there are too many."""
    table = {name: sorted(NUMBERS[name]) for name in list(names)[-MAX_NAMES:]}
    return f"{TUNABLES} = {json.dumps(table)}"


def is_swept(name: str, source: str) -> bool:
    """Return True if a kernel leaves that number to the judge."""
    declared = _DECLARED.search(source)
    return declared is not None and f'"{name}"' in declared["table"]


def directed(choices: Choices, direction: str) -> tuple[Choices, int] | None:
    """Return ``choices`` with a direction's structure, and the direction's place; None for other names."""
    if direction not in _DIRECTIONS:
        return None
    structure = {**choices.structure, **_DIRECTIONS[direction]}
    return replace(choices, structure=structure), list(_DIRECTIONS).index(direction) + 1


def numbered(choices: Choices, names: Iterable[str], place: int) -> Choices:
    """Return ``choices`` with the combination of the numbers ``names`` at ``place``; 0 is the usual one."""
    for name in names:
        place, index = divmod(place, len(NUMBERS[name]))
        choices = choices.with_number(name, NUMBERS[name][index])
    return choices


def draw_numbers(choices: Choices, names: list[str], rng: random.Random, share: float) -> Choices:
    """Return ``choices`` with each of the numbers ``names`` redrawn with probability ``share``."""
    for name in names:
        if rng.random() < share:
            choices = choices.with_number(name, rng.choice(NUMBERS[name]))
    return choices
