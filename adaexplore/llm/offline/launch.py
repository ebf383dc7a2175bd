"""What launchers of all kinds of kernels share: signatures, layouts, dtypes."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.llm.offline.body import Parameters
from adaexplore.llm.offline.graph import (
    Channels,
    Drop,
    MatMul,
    Pointwise,
    Reduction,
    Total,
    Value,
    is_tensor,
    scalar_type_of,
)
from adaexplore.llm.offline.regions import Region


@dataclass(frozen=True)
class Kernel:
    """Source of a launcher (``name``) with its kernels.

    Attributes:
        arguments: values that the launcher takes, in order; region axes come last as ``axes``.
        numbers: module constants that it reads.
        helpers: module functions that it calls.
    """

    name: str
    source: str
    arguments: tuple[Value, ...]
    numbers: tuple[str, ...]
    helpers: tuple[str, ...]


def _dtype_sources(value: Value, leaves: dict[Value, str], product: MatMul | None) -> set[str]:
    """Dtype expressions that promote to the dtype of ``value``; names stand for tensors."""
    if value in leaves:
        return {leaves[value]}
    if isinstance(value, MatMul):
        return {"left"}
    kind = scalar_type_of(value)
    if kind == "b":
        return {"torch.bool"}
    match value:
        case Pointwise(name="to_float"):
            return {"torch.float32"}
        case Pointwise(name="to_int"):
            return {"torch.int64"}
        case Pointwise(name=name, operands=operands):
            chosen = [o for o in (operands[1:] if name == "where" else operands) if is_tensor(o)]
            same = [operand for operand in chosen if scalar_type_of(operand) == kind]
            found = set[str]().union(*(_dtype_sources(operand, leaves, product) for operand in same))
            return found or {"torch.float32" if kind == "f" else "torch.int64"}
        case Reduction(name=name, operand=operand) | Total(name=name, operand=operand):
            if scalar_type_of(operand) != "f" and name == "sum":
                return {"torch.int64"}
            return _dtype_sources(operand, leaves, product)
        case Drop(operand=operand):
            return _dtype_sources(operand, leaves, product)
    return {"torch.float32"}


def dtype_text(value: Value, leaves: dict[Value, str], product: MatMul | None = None) -> str:
    """The host expression for the dtype that torch gives ``value``."""
    sources = sorted(
        _dtype_sources(value, leaves, product), key=lambda text: (text.startswith("torch."), text)
    )
    fixed = [source for source in sources if source.startswith("torch.")]
    if fixed:
        return fixed[0]
    return f"{sources[0]}.dtype" if len(sources) == 1 else f"_dtype({', '.join(sources)})"


def output_names(region: Region) -> list[str]:
    """Names of the outputs."""
    return ["out"] if len(region.roots) == 1 else [f"out_{n}" for n in range(len(region.roots))]


def layouts(parameters: Parameters) -> list[str]:
    """Launcher statements that make every leaf addressable by a flat index of ``shape``."""
    lines = []
    for leaf, name in parameters.leaves.items():
        if isinstance(leaf, Channels):
            view = f"{name}.view(-1, *(1,) * (len(shape) - 2))"
            lines.append(f"{name}, {name}_step, {name}_size = _layout({view}, shape)")
        elif parameters.broadcast:
            lines.append(f"{name}, {name}_step, {name}_size = _layout({name}, shape)")
        else:
            lines.append(f"{name} = {name}.contiguous()")
    return lines


def shape_text(parameters: Parameters) -> str:
    """The host expression for the broadcast shape of the leaves."""
    names = [name for leaf, name in parameters.leaves.items() if not isinstance(leaf, Channels)]
    if len(names) == 1:
        return f"{names[0]}.shape"
    return f"torch.broadcast_shapes({', '.join(f'{name}.shape' for name in names)})"


def signature(parameters: Parameters, outs: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Kernel parameters and launch arguments: positional ones, then the layouts as constants."""
    takes = [f"{name}_ptr" for name in parameters.leaves.values()] + [f"{out}_ptr" for out in outs]
    gives = [*parameters.leaves.values(), *outs]
    takes += parameters.scalars.values()
    gives += parameters.scalars.values()
    constants, values = [], []
    if parameters.broadcast:
        for name in parameters.leaves.values():
            constants += [f"{name.upper()}_STEP: tl.constexpr", f"{name.upper()}_SIZE: tl.constexpr"]
            values += [f"{name.upper()}_STEP={name}_step", f"{name.upper()}_SIZE={name}_size"]
    return takes, constants, gives, values


def first_shaped(parameters: Parameters) -> str:
    """The first leaf that has the shape's device."""
    return next(name for leaf, name in parameters.leaves.items() if not isinstance(leaf, Channels))


def define(name: str, arguments: list[str]) -> list[str]:
    """A function header, one parameter a line where it would be long."""
    line = f"def {name}({', '.join(arguments)}):"
    if len(line) <= 100:
        return [line]
    return [f"def {name}(", *(f"    {argument}," for argument in arguments), "):"]


def launch(kernel: str, grid: str, arguments: list[str]) -> list[str]:
    """A kernel launch, one argument a line."""
    return [f"    {kernel}[{grid}](", *(f"        {argument}," for argument in arguments), "    )"]


def launch_values(parameters: Parameters) -> tuple[Value, ...]:
    """What the launcher is called with."""
    plain = tuple(leaf.vector if isinstance(leaf, Channels) else leaf for leaf in parameters.leaves)
    return (*plain, *parameters.scalars)


def helpers_in(text: str) -> tuple[str, ...]:
    """Module functions that ``text`` calls."""
    names = (
        "_power",
        "_mish",
        "_at",
        "_layout",
        "_dtype",
        "_rows",
        "_groups",
        "_reduced",
        "_tiles",
        "_same_rows",
    )
    return tuple(name for name in names if f"{name}(" in text)
