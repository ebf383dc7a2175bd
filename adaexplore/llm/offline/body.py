"""Statements of a kernel's body for the operations of one region."""

from __future__ import annotations

import keyword
import re

from adaexplore.llm.offline.expressions import render
from adaexplore.llm.offline.graph import (
    Channels,
    Constant,
    Drop,
    Host,
    MatMul,
    Pointwise,
    Reduction,
    ScalarType,
    Value,
    is_tensor,
    scalar_type_of,
)
from adaexplore.llm.offline.regions import Region

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
        """Names with the same ones taken."""
        return Names(self._taken)

    def new(self, wish: str) -> str:
        """``wish`` or, where it is taken, ``wish_1`` and so on."""
        stem = re.sub(r"\W+", "_", wish).strip("_").lower() or "value"
        stem = f"v{stem}" if stem[0].isdigit() or keyword.iskeyword(stem) else stem
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


def leaf_wish(value: Value) -> str:
    """A name for a tensor after how the module spells it."""
    if isinstance(value, Channels):
        return leaf_wish(value.vector)
    if isinstance(value, Host) and not value.operands and re.fullmatch(r"[\w.]+", value.text):
        return value.text.rsplit(".", 1)[-1]
    return "product" if isinstance(value, MatMul) else "x"


class Parameters:
    """Names of a region's leaves and scalars, shared by launcher and kernel."""

    def __init__(self, region: Region) -> None:
        names = Names(_RESERVED)
        self.leaves = {leaf: names.new(leaf_wish(leaf)) for leaf in region.leaves}
        self.scalars = {
            scalar: names.new(scalar.text.rsplit(".", 1)[-1] if not scalar.operands else "scalar")
            for scalar in region.scalars
        }
        self.names = names

    @property
    def broadcast(self) -> bool:
        """Whether leaves may differ in shape."""
        return len(self.leaves) > 1


class Body:
    """Writes statements; each value is computed once under a name of its own."""

    def __init__(self, parameters: Parameters, indent: str = "    ", names: Names | None = None) -> None:
        self._parameters = parameters
        self._names = names or parameters.names.copy()
        self.known: dict[Value, str] = {}
        self.known.update(parameters.scalars.items())
        self.lines: list[str] = []
        self.indent = indent

    def add(self, line: str) -> None:
        """Append one statement."""
        self.lines.append(self.indent + line)

    def load(self, leaf: Value, always: bool) -> None:
        """Read a leaf at ``index``; ``always`` tells that it has the shape of ``index``."""
        name = self._parameters.leaves[leaf]
        index = "index" if always else f"_at(index, {name.upper()}_STEP, {name.upper()}_SIZE)"
        kind = scalar_type_of(leaf)
        cast = ".to(tl.float32)" if kind == "f" else ""
        target = self._names.new(name)
        self.add(f"{target} = tl.load({name}_ptr + {index}, mask=mask){cast}")
        self.known[leaf] = target

    def compute(self, value: Value, loads_always: bool) -> str:
        """The name that holds ``value``, with the statements that compute it."""
        if isinstance(value, Constant):
            return _number(value)
        if value in self.known:
            return self.known[value]
        if value in self._parameters.leaves:
            self.load(value, loads_always)
            return self.known[value]
        if isinstance(value, Drop):
            return self.compute(value.operand, loads_always)
        if isinstance(value, Reduction):
            return self._reduce(value, loads_always)
        assert isinstance(value, Pointwise), f"no kernel computes {value}"
        texts = [self.compute(operand, loads_always) for operand in value.operands]
        types: list[ScalarType] = [scalar_type_of(operand) for operand in value.operands]
        tensors = [is_tensor(operand) for operand in value.operands]
        expression = render(value.name, texts, types, tensors, value.scalar_type)
        name = self._names.new(value.name if value.name not in ("and", "or", "not") else f"both_{value.name}")
        self.add(f"{name} = {expression}")
        self.known[value] = name
        return name

    def _reduce(self, value: Reduction, loads_always: bool) -> str:
        inner = self.compute(value.operand, loads_always)
        inner = as_float(inner, value.operand)
        neutral = NEUTRAL[value.name]
        function = "sum" if value.name in ("sum", "mean") else value.name
        name = self._names.new(row_wish(value))
        masked = f"tl.where(mask, {inner}, {neutral})"
        self.add(f"{name} = tl.{function}({masked}, axis=1)[:, None]{mean_divisor(value)}")
        self.known[value] = name
        return name


def row_wish(value: Reduction) -> str:
    """A name for a reduction's result."""
    return f"row_{value.name}"


NEUTRAL = {"sum": "0.0", "mean": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}


def as_float(text: str, value: Value) -> str:
    """``text`` as fp32, whatever ``value`` holds."""
    return text if scalar_type_of(value) == "f" else f"{text}.to(tl.float32)"


def mean_divisor(value: Reduction) -> str:
    """The division that makes a sum a mean."""
    if value.name != "mean":
        return ""
    return f" / (N - {value.correction})" if value.correction else " / N"


def _number(value: Constant) -> str:
    number = value.number
    if isinstance(number, float) and (number != number or number in (float("inf"), float("-inf"))):
        return f'float("{number}")'
    return repr(number)
