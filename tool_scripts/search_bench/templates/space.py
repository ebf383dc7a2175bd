"""What can be varied in each family of kernels: structures, their details and numbers, the shapes, the slips.

No torch and no Triton here: the environment of ``bench_search`` reads this module too. An axis written in
capitals is a number (a block size, warps, stages); one in lower case is a structural detail. A slip is a
mistake of the kind that models make, put on top of a right candidate. Most make it fail; a missing mask, say,
does no harm where the shape is a multiple of the block, and the table tells.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Value = int | str
Choices = Mapping[str, Value]
Shape = tuple[int, ...]

EAGER = "eager"  # the structure of the baselines
SLIP_AXIS = "slip"
NO_SLIP = "none"
SLIPS = (
    "odd_warps",  # a number of warps that is no power of two
    "many_warps",  # more threads than a program can have
    "odd_block",  # a block that is no power of two
    "half_block",  # a block that covers half of what it must
    "no_mask",  # loads and stores without their masks
    "short_grid",  # half of the programs
    "unknown_keyword",  # an argument that the kernel does not have
)
_SLIP_SAMPLES = 3  # configurations measured for each slip of each structure and shape


def next_power_of_2(number: int) -> int:
    """The smallest power of two that is not below ``number``."""
    return 1 << max(0, number - 1).bit_length()


def _always(choices: Choices, shape: Shape) -> bool:
    return True


@dataclass(frozen=True)
class Structure:
    """One way to write the kernel: its axes with their values, and the slips that apply to it.

    ``sensible`` keeps out what would only cost compile time; ``most`` configurations of a shape are taken.
    """

    name: str
    axes: Mapping[str, tuple[Value, ...]]
    slips: tuple[str, ...]
    sensible: Callable[[Choices, Shape], bool] = _always
    most: int = 60


@dataclass(frozen=True)
class Family:
    """A family of problems: what its shapes mean is said in the module of its templates."""

    name: str
    shapes: tuple[Shape, ...]
    structures: tuple[Structure, ...]


@dataclass(frozen=True)
class Point:
    """One candidate: a structure of a family on a shape with all choices made."""

    family: str
    shape: Shape
    structure: str
    choices: Choices = field(hash=False)

    @property
    def key(self) -> str:
        """A text that names this candidate."""
        return json.dumps([self.family, self.shape, self.structure, dict(sorted(self.choices.items()))])

    @property
    def slip(self) -> str:
        """The mistake in this candidate, ``"none"`` where there is none."""
        return str(self.choices[SLIP_AXIS])


def _order(family: str, structure: str, choices: Choices) -> int:
    """A stable pseudo-random number; without the shape in it, shapes share most of their compiled kernels."""
    return zlib.crc32(json.dumps([family, structure, dict(sorted(choices.items()))]).encode())


def points(family: Family, shape: Shape) -> Iterator[Point]:
    """The candidates of one shape: a sample of every structure's grid and a few slips of each kind."""
    for structure in family.structures:
        grid = (
            dict(zip(structure.axes, values, strict=True))
            for values in itertools.product(*structure.axes.values())
        )
        sensible = [choices for choices in grid if structure.sensible(choices, shape)]
        sensible.sort(key=lambda choices: _order(family.name, structure.name, choices))
        taken = [{**choices, SLIP_AXIS: NO_SLIP} for choices in sensible[: structure.most]]
        for slip in structure.slips:
            ordered = sorted(taken, key=lambda c: _order(family.name, structure.name, {**c, SLIP_AXIS: slip}))
            taken += [{**c, SLIP_AXIS: slip} for c in ordered if c[SLIP_AXIS] == NO_SLIP][:_SLIP_SAMPLES]
        for choices in taken:
            yield Point(family.name, shape, structure.name, choices)


_GENERIC = ("odd_warps", "many_warps", "short_grid", "unknown_keyword")
_EXP: dict[str, tuple[Value, ...]] = {"exp": ("exp", "exp2")}
_CACHE: dict[str, tuple[Value, ...]] = {"cache": ("keep", "evict_first")}
_LOOP: dict[str, tuple[Value, ...]] = {
    "BLOCK": (256, 512, 1024, 2048, 4096, 8192, 16384),
    "WARPS": (1, 2, 4, 8, 16),
    "STAGES": (1, 2, 3, 4),
}
_SPLIT: dict[str, tuple[Value, ...]] = {
    "SPLITS": (2, 4, 8, 16, 32, 64),
    "BLOCK": (1024, 2048, 4096, 8192),
    "WARPS": (2, 4, 8, 16),
}
_ELEMENTWISE: dict[str, tuple[Value, ...]] = {"BLOCK": (256, 512, 1024, 2048, 4096), "WARPS": (1, 2, 4, 8)}


def _per_thread(elements: int, choices: Choices) -> int:
    return elements // (32 * int(choices["WARPS"]))


def _row_fits(choices: Choices, shape: Shape) -> bool:
    """A row in registers: at most 256 numbers a thread (beyond that the compiler takes minutes)."""
    return _per_thread(next_power_of_2(shape[1]), choices) <= 256


def _rows_fit(choices: Choices, shape: Shape) -> bool:
    return _per_thread(next_power_of_2(shape[1]) * int(choices["ROWS"]), choices) <= 256


def _block_fits(choices: Choices, shape: Shape) -> bool:
    """No block far beyond the row, no thread with more than 128 numbers."""
    block = int(choices["BLOCK"])
    return block <= 4 * next_power_of_2(shape[1]) and _per_thread(block, choices) <= 128


def _chunk_fits(choices: Choices, shape: Shape) -> bool:
    return _block_fits(choices, shape) and int(choices["SPLITS"]) * 128 <= shape[1]


_ROW = {"WARPS": (1, 2, 4, 8, 16, 32)}
_ROWS = {"ROWS": (2, 4, 8, 16, 32), "WARPS": (1, 2, 4, 8, 16)}
_PERSISTENT = {"PER_SM": (1, 2, 4, 8, 16), "WARPS": (1, 2, 4, 8, 16), "STAGES": (1, 2, 3, 4)}
_ROW_SLIPS = (*_GENERIC, "odd_block", "half_block", "no_mask")
_LOOP_SLIPS = (*_GENERIC, "odd_block", "no_mask")

_SOFTMAX = Family(
    "softmax",
    ((8192, 4096), (65536, 257), (64, 131072)),
    (
        Structure("torch_parts", {**_ELEMENTWISE, **_EXP}, _LOOP_SLIPS, most=24),
        Structure("three_pass", {**_LOOP, **_EXP, **_CACHE}, _LOOP_SLIPS, _block_fits, 50),
        Structure("online", {**_LOOP, **_EXP, **_CACHE}, _LOOP_SLIPS, _block_fits, 60),
        Structure("one_pass", {**_ROW, **_EXP, **_CACHE}, _ROW_SLIPS, _row_fits),
        Structure("multi_row", {**_ROWS, **_EXP, **_CACHE}, _ROW_SLIPS, _rows_fit, 50),
        Structure("persistent", {**_PERSISTENT, **_EXP, **_CACHE}, _ROW_SLIPS, _row_fits, 50),
        Structure("split", {**_SPLIT, **_EXP}, _LOOP_SLIPS, _chunk_fits, 50),
    ),
)

_VARIANCE: dict[str, tuple[Value, ...]] = {"variance": ("centred", "squares")}

_LAYER_NORM = Family(
    "layer_norm",
    ((8192, 4096), (131072, 320), (16, 1048576)),
    (
        Structure("torch_statistics", {**_ELEMENTWISE, "affine": ("fused", "torch")}, _LOOP_SLIPS, most=24),
        Structure("three_pass", {**_LOOP, **_CACHE}, _LOOP_SLIPS, _block_fits, 50),
        Structure("two_pass", {**_LOOP, **_CACHE}, _LOOP_SLIPS, _block_fits, 50),
        Structure("one_pass", {**_ROW, **_VARIANCE, **_CACHE}, _ROW_SLIPS, _row_fits),
        Structure("multi_row", {**_ROWS, **_VARIANCE, **_CACHE}, _ROW_SLIPS, _rows_fit, 50),
        Structure("split", {**_SPLIT, **_CACHE}, _LOOP_SLIPS, _chunk_fits, 50),
        Structure("atomic", {**_SPLIT, **_CACHE}, _LOOP_SLIPS, _chunk_fits, 50),
    ),
)


def _tile_fits(choices: Choices, shape: Shape) -> bool:
    """A tile as long as the axes that it covers, not far longer, and at most 128 numbers a thread."""
    rows, inner = int(choices["BLOCK_R"]), int(choices["BLOCK_I"])
    if (inner == 1) != (shape[2] == 1) or not 4 <= _per_thread(rows * inner, choices) <= 128:
        return False
    return rows <= shape[1] and int(choices.get("SPLITS", 1)) * rows <= 2 * shape[1]


_TILE: dict[str, tuple[Value, ...]] = {
    "BLOCK_R": (1, 4, 8, 16, 32, 64, 128, 512, 1024, 2048, 4096, 8192),
    "BLOCK_I": (1, 32, 64, 128, 256),
    "WARPS": (1, 2, 4, 8, 16),
    "accumulate": ("tile", "each"),
    "STAGES": (1, 3),
}
_STAGES = {"SPLITS": (2, 4, 8, 16, 64, 256, 1024)}

_REDUCTION = Family(
    "reduction",
    ((4096, 16384, 1), (16, 4096, 1024), (1, 16777216, 1)),
    (
        Structure("torch_sum", _ELEMENTWISE, (*_GENERIC, "odd_block"), most=20),
        Structure("one_stage", _TILE, (*_GENERIC, "odd_block"), _tile_fits, 70),
        Structure("torch_second", {**_TILE, **_STAGES}, (*_GENERIC, "odd_block"), _tile_fits, 50),
        Structure("two_stage", {**_TILE, **_STAGES}, (*_GENERIC, "odd_block"), _tile_fits, 70),
        Structure("atomic", {**_TILE, **_STAGES}, (*_GENERIC, "odd_block"), _tile_fits, 60),
    ),
)


def _most_per_thread(choices: Choices) -> int:
    return 128 if choices["precision"] == "tf32x3" else 256


def _product_fits(choices: Choices, shape: Shape) -> bool:
    """float32 products without tensor cores only in small tiles (larger ones take minutes to compile)."""
    tile = int(choices["BLOCK_M"]) * int(choices["BLOCK_N"])
    if choices["precision"] == "ieee" and (tile > 64 * 64 or int(choices["BLOCK_K"]) > 32):
        return False
    if _per_thread(tile, choices) > _most_per_thread(choices) or int(choices["BLOCK_M"]) > shape[0]:
        return False
    return int(choices.get("SPLITS", 1)) * int(choices["BLOCK_K"]) * 2 <= shape[2]


_PRODUCT: dict[str, tuple[Value, ...]] = {
    "BLOCK_M": (32, 64, 128),
    "BLOCK_N": (32, 64, 128, 256),
    "BLOCK_K": (16, 32, 64, 128),
    "WARPS": (4, 8),
    "STAGES": (1, 2, 3, 4),
    "precision": ("tf32", "tf32x3", "ieee", "bf16"),
}
_K_SPLITS = {"SPLITS": (2, 4, 8, 16, 32)}
_PRODUCT_SLIPS = (*_GENERIC, "odd_block")

_MATMUL = Family(
    "matmul",
    ((2048, 2048, 2048), (128, 256, 16384), (8192, 512, 512)),
    (
        Structure("epilogue_only", _ELEMENTWISE, (*_GENERIC, "odd_block"), most=20),
        Structure("torch_epilogue", {**_PRODUCT, "GROUP": (1, 8)}, _PRODUCT_SLIPS, _product_fits, 50),
        Structure("fused", {**_PRODUCT, "GROUP": (1, 4, 8)}, _PRODUCT_SLIPS, _product_fits, 90),
        Structure("split_atomic", {**_PRODUCT, **_K_SPLITS}, _PRODUCT_SLIPS, _product_fits, 60),
        Structure("split_buffer", {**_PRODUCT, **_K_SPLITS}, _PRODUCT_SLIPS, _product_fits, 60),
        Structure("persistent", {**_PRODUCT, "PER_SM": (1, 2)}, _PRODUCT_SLIPS, _product_fits, 60),
    ),
)


def _scores_fit(choices: Choices, shape: Shape) -> bool:
    tile = int(choices["BLOCK_M"]) * int(choices.get("BLOCK_N", shape[1]))
    if choices["precision"] == "ieee" and tile > 32 * 64:
        return False
    most = int(choices["BLOCK_M"]) * max(int(choices.get("BLOCK_N", shape[1])), shape[2])
    return _per_thread(most, choices) <= _most_per_thread(choices) and int(choices["BLOCK_M"]) <= shape[1]


_FLASH: dict[str, tuple[Value, ...]] = {
    "BLOCK_M": (16, 32, 64, 128),
    "BLOCK_N": (16, 32, 64, 128),
    "WARPS": (2, 4, 8),
    "STAGES": (1, 2, 3, 4),
    "precision": ("tf32", "tf32x3", "ieee", "bf16"),
    "order": ("forward", "heavy_first"),
}

_ATTENTION = Family(
    "attention",
    ((96, 1024, 64), (16, 2048, 128), (256, 256, 64)),
    (
        Structure(
            "softmax_only",
            {"ROWS": (1, 2, 4, 8), "WARPS": (1, 2, 4, 8, 16), **_EXP},
            (*_GENERIC, "odd_block", "half_block"),
            lambda choices, shape: _rows_fit({**choices}, (0, shape[1])),
            30,
        ),
        Structure(
            "full_row",
            {
                "BLOCK_M": (16, 32, 64),
                "WARPS": (4, 8, 16),
                "precision": ("tf32", "bf16"),
                "order": ("forward", "heavy_first"),
            },
            (*_GENERIC, "odd_block"),
            lambda choices, shape: shape[1] <= 1024 and _scores_fit(choices, shape),
            16,
        ),
        Structure("flash_all", {**_FLASH, **_EXP}, (*_GENERIC, "odd_block"), _scores_fit, 80),
        Structure("flash_skip", {**_FLASH, **_EXP}, (*_GENERIC, "odd_block"), _scores_fit, 80),
        Structure("flash_two_loops", {**_FLASH, **_EXP}, (*_GENERIC, "odd_block"), _scores_fit, 80),
    ),
)

FAMILIES = {family.name: family for family in (_SOFTMAX, _LAYER_NORM, _REDUCTION, _MATMUL, _ATTENTION)}
