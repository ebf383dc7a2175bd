"""Decide which values become one kernel.

A region is a set of element-wise operations and reductions over the same axes that one kernel
computes from its leaves (tensors that exist). Shapes are unknown here, so values share a kernel only if the
code alone shows that their shapes agree, see ``Summary``.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from adaexplore.offline_writer.tracing.graph import (
    Axes,
    Drop,
    Host,
    MatMul,
    Pointwise,
    Reduction,
    Value,
    is_scalar,
    is_tensor,
    operands_of,
)

_RECOMPUTED_AT_MOST = 6  # operations so cheap that two kernels may both compute them


@dataclass(frozen=True)
class Summary:
    """How a value is computed from leaves."""

    level: str  # "E" one value per element, "R" one per row with reduced dimensions kept, "D" dropped
    axes: Axes | None  # of the reductions within
    direct: frozenset[Value]  # leaves that reach the value element by element
    reduced: frozenset[Value]  # leaves that reach it through a reduction


@dataclass(frozen=True, eq=False)
class Region:
    """One kernel: ``root`` is its output, ``leaves`` its tensors, ``scalars`` its numbers."""

    root: Value
    leaves: tuple[Value, ...]
    scalars: tuple[Host, ...]
    axes: Axes | None
    levels: dict[Value, str]
    reduced: frozenset[Value]
    product: MatMul | None = None


def reachable(results: Iterable[Value]) -> list[Value]:
    """Return all values that ``results`` need, operands first."""
    order: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value not in order:
            for operand in _needed_by(value):
                visit(operand)
            order[value] = None

    for result in results:
        visit(result)
    return list(order)


def partition(results: list[Value], fusion: str, gemm: str) -> dict[Value, Region]:
    """Divide the values behind ``results`` into kernels, keyed by their roots."""
    order = reachable(results)
    stored = {value for value in results if _computed(value)}
    for value in order:
        if isinstance(value, MatMul):
            stored.add(value)
        if not isinstance(value, Pointwise | Reduction | Drop):
            stored.update(operand for operand in operands_of(value) if _computed(operand))
    known = -1
    while len(stored) > known:  # a newly stored value may change how others are computed
        known = len(stored)
        summaries = _summarise(order, stored, fusion)
        cones = {
            root: cone(root, stored) for root in order if root in stored and not isinstance(root, MatMul)
        }
        stored |= _shared(cones)
    regions = {
        root: _region(root, stored, summaries)
        for root in cones
        if not (isinstance(root, Drop) and root.operand in stored)
    }
    if gemm == "triton":
        _absorb_products(regions, stored, order, results)
    return regions


def _computed(value: Value) -> bool:
    return isinstance(value, Pointwise | Reduction | Drop | MatMul)


def _summarise(order: list[Value], stored: set[Value], fusion: str) -> dict[Value, Summary]:
    """Return how each value is computed; add values that must end a kernel to ``stored``."""
    found: dict[Value, Summary] = {}

    def seen(value: Value) -> Summary:
        return _leaf(value) if value in stored or value not in found else found[value]

    for value in order:
        if isinstance(value, Pointwise):
            operands = [operand for operand in value.operands if is_tensor(operand)]
            combined = _combine([seen(operand) for operand in operands], fusion)
            if combined is None:
                stored.update(o for o in operands if _computed(o) and seen(o).axes is not None)
                combined = _combine([seen(operand) for operand in operands], fusion)
            assert combined is not None, "leaves always combine"
            found[value] = combined
        elif isinstance(value, Reduction):
            inner = seen(value.operand)
            if (
                inner.level != "E"
                or inner.axes not in (None, value.axes)
                or not inner.reduced <= inner.direct
            ):
                stored.add(value.operand)
                inner = _leaf(value.operand)
            found[value] = Summary("R", value.axes, frozenset(), inner.direct | inner.reduced)
        elif isinstance(value, Drop):
            inner = seen(value.operand)
            if inner.level == "R":
                found[value] = replace(inner, level="D")
            else:
                stored.update((value, value.operand) if _computed(value.operand) else (value,))
                found[value] = _leaf(value)
    return found


def _leaf(value: Value) -> Summary:
    return Summary("E", None, frozenset({value}), frozenset())


def _combine(parts: list[Summary], fusion: str) -> Summary | None:
    """Return the summary of an element-wise operation on ``parts``; None if shapes might not agree."""
    axes = {part.axes for part in parts if part.axes is not None}
    levels = {part.level for part in parts}
    direct = frozenset[Value]().union(*(part.direct for part in parts))
    reduced = frozenset[Value]().union(*(part.reduced for part in parts))
    if len(axes) > 1 or ("D" in levels and len(levels) > 1):
        return None
    if levels == {"D"} and len({part.reduced for part in parts}) > 1:
        return None
    if "E" in levels and not reduced <= direct:
        return None
    if fusion == "split" and reduced and "E" in levels and direct != reduced:
        return None
    level = "E" if "E" in levels else levels.pop()
    return Summary(level, axes.pop() if axes else None, direct, reduced)


def cone(root: Value, stored: set[Value]) -> list[Value]:
    """Return the values that the kernel of ``root`` computes, operands first, ``root`` last."""
    found: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value in found:
            return
        for operand in operands_of(value):
            if _computed(operand) and operand not in stored:
                visit(operand)
        found[value] = None

    visit(root)
    return list(found)


def _shared(cones: dict[Value, list[Value]]) -> set[Value]:
    """Return expensive values that several kernels would compute."""
    counts = Counter(value for members in cones.values() for value in members)
    repeated = [value for value, count in counts.items() if count > 1]
    dear = set()
    for value in repeated:
        inner = [operand for operand in repeated if operand is not value and operand in operands_of(value)]
        cost = sum(isinstance(member, Reduction) for member in cone(value, set()))
        if cost or (len(repeated) > _RECOMPUTED_AT_MOST and not inner):
            dear.add(value)
    return {value for value in dear if not any(value in operands_of(other) for other in dear)}


def _region(root: Value, stored: set[Value], summaries: dict[Value, Summary]) -> Region:
    leaves: dict[Value, None] = {}
    scalars: dict[Host, None] = {}
    reduced: frozenset[Value] = frozenset()
    members = cone(root, stored)
    for value in members:
        if isinstance(value, Reduction):
            reduced |= summaries[value].reduced
        for operand in operands_of(value):
            if isinstance(operand, Host) and is_scalar(operand):
                scalars[operand] = None
            elif is_tensor(operand) and operand not in members:
                leaves[operand] = None
    levels = {value: summaries[value].level for value in members}
    axes = next((axes for value in members if (axes := summaries[value].axes) is not None), None)
    return Region(root, tuple(leaves), tuple(scalars), axes, levels, reduced)


def _absorb_products(
    regions: dict[Value, Region], stored: set[Value], order: list[Value], results: list[Value]
) -> None:
    """Give each matrix product its own kernel, with its only reader as epilogue if possible."""
    for product in order:
        if not isinstance(product, MatMul):
            continue
        readers = [value for value in order if product in _needed_by(value)]
        users = {region for region in regions.values() if product in region.leaves}
        outside = product in results or any(not isinstance(value, Pointwise) for value in readers)
        region = users.pop() if len(users) == 1 and not outside else None
        if region is None or region.axes or region.product:
            regions[product] = Region(product, (), (), None, {product: "E"}, frozenset(), product)
            continue
        leaves = tuple(leaf for leaf in region.leaves if leaf is not product)
        regions[region.root] = replace(region, leaves=leaves, product=product)
        stored.discard(product)


def _needed_by(value: Value) -> tuple[Value, ...]:
    """Return the operands, for a product also those of the library's own call."""
    return operands_of(value) + (value.host.operands if isinstance(value, MatMul) else ())
