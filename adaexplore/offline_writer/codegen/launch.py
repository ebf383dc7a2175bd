"""Common parts of a region's launcher and kernels: names, arguments, layouts, dtypes."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from adaexplore.offline_writer.codegen.regions import Region
from adaexplore.offline_writer.tracing.graph import (
    Channels,
    Host,
    MatMul,
    Pointwise,
    Value,
    is_tensor,
    operands_of,
    scalar_type_of,
)

_RESERVED = {
    "a", "abs", "acc", "axes", "b", "base", "batch", "block", "col", "cols", "count", "depth", "dims",
    "dtype", "first", "float", "grid", "group", "groups", "index", "inner", "inside", "k", "kernel",
    "lane", "lanes", "left", "left_at", "live", "looped", "m", "mask", "math", "max", "min", "n",
    "numel", "out", "outer", "partial", "pid", "pow", "range", "right", "right_at", "row", "rows",
    "self", "shape", "size", "start", "steps", "sum", "tile_k", "tile_m", "tile_n", "tl", "torch",
    "total", "triton", "work",
}  # fmt: skip


class Names:
    """Distinct, readable Python names."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)

    def copy(self) -> Names:
        return Names(self._taken)

    def new(self, wish: str) -> str:
        """Return ``wish``, or if it is taken ``wish_1`` and so on."""
        stem = re.sub(r"\W+", "_", wish).strip("_").lower() or "value"
        stem = f"v{stem}" if stem[0].isdigit() or keyword.iskeyword(stem) else stem
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


def leaf_wish(value: Value) -> str:
    """Return a name for a tensor, derived from the module's own name for it."""
    if isinstance(value, Channels):
        return leaf_wish(value.vector)
    if isinstance(value, Host) and not value.operands and re.fullmatch(r"[\w.]+", value.text):
        return value.text.rsplit(".", 1)[-1]
    return "product" if isinstance(value, MatMul) else "x"


class Parameters:
    """Names of a region's leaves and scalars, and how the launcher passes them to the kernel.

    Attributes:
        broadcast: whether leaves may differ in shape.
        names: all taken names.
        values: the launcher's arguments; ``arguments`` are their names.
        takes, gives: positional parameters of the kernel, and the passed expressions.
        constants, layouts: the same for the addressing of leaves.
        shape, device: host expressions.
    """

    def __init__(self, region: Region) -> None:
        self.names = names = Names(_RESERVED)
        self.leaves = {leaf: names.new(leaf_wish(leaf)) for leaf in region.leaves}
        self.scalars: dict[Value, str] = {
            scalar: names.new(scalar.text.rsplit(".", 1)[-1] if not scalar.operands else "scalar")
            for scalar in region.scalars
        }
        self.broadcast = len(self.leaves) > 1 or region.product is not None
        vectors = (leaf.vector if isinstance(leaf, Channels) else leaf for leaf in self.leaves)
        self.values: tuple[Value, ...] = (*vectors, *self.scalars)
        leaves, scalars = self.leaves.values(), self.scalars.values()
        self.arguments = [*leaves, *scalars]
        self.takes = [*(f"{name}_ptr" for name in (*leaves, "out")), *scalars]
        self.gives = [*leaves, "out", *scalars]
        ends = [(f"{name}_{end}", f"{name}_{end}".upper()) for name in leaves for end in ("step", "size")]
        ends = ends if self.broadcast else []
        self.constants = [f"{constant}: tl.constexpr" for _, constant in ends]
        self.layouts = [f"{constant}={given}" for given, constant in ends]
        shaped = [name for leaf, name in self.leaves.items() if not isinstance(leaf, Channels)]
        shapes = ", ".join(f"{name}.shape" for name in shaped)
        self.shape = f"torch.broadcast_shapes({shapes})" if len(shaped) > 1 else shapes
        self.device = f"{'left' if region.product is not None else shaped[0]}.device"

    def place_leaves(self) -> list[str]:
        """Return launcher statements that make every leaf addressable by a flat index of ``shape``."""
        lines = []
        for leaf, name in self.leaves.items():
            view = f"{name}.view(-1, *(1,) * (len(shape) - 2))" if isinstance(leaf, Channels) else name
            placed = f"    {name}, {name}_step, {name}_size = _layout({view}, shape)"
            lines.append(placed if self.broadcast else f"    {name} = {name}.contiguous()")
        return lines

    def make_output(self, root: Value, shape: str = "shape") -> str:
        """Return the launcher statement that allocates the output, in torch's dtype for ``root``."""
        sources = sorted(_dtype_sources(root, self.leaves))
        fixed = [source for source in sources if source.startswith("torch.")]
        promoted = f"{sources[0]}.dtype" if len(sources) == 1 else f"_dtype({', '.join(sources)})"
        device = self.device
        return f"    out = torch.empty({shape}, dtype={fixed[0] if fixed else promoted}, device={device})"


def _dtype_sources(value: Value, leaves: dict[Value, str]) -> set[str]:
    if value in leaves:
        return {leaves[value]}
    if isinstance(value, MatMul):
        return {"left"}
    if scalar_type_of(value) == "b":
        return {"torch.bool"}
    if isinstance(value, Pointwise) and value.name == "to_float":
        return {"torch.float32"}
    floats = [each for each in operands_of(value) if is_tensor(each) and scalar_type_of(each) == "f"]
    return set[str]().union(*(_dtype_sources(each, leaves) for each in floats))


@dataclass(frozen=True)
class Kernel:
    """Source of a launcher (``name``) with its kernels."""

    name: str
    source: str
    # values that the launcher takes, in order; region axes come last as ``axes``
    arguments: tuple[Value, ...]
    numbers: tuple[str, ...]  # module constants that it reads


def define(name: str, arguments: list[str]) -> list[str]:
    """Return a function header; a long one has one parameter per line."""
    line = f"def {name}({', '.join(arguments)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *(f"    {argument}," for argument in arguments), "):"]


def launch(kernel: str, grid: str, arguments: list[str]) -> list[str]:
    return [f"    {kernel}[{grid}](", *(f"        {argument}," for argument in arguments), "    )"]
