"""Kernels that go over long rows in several passes."""

from __future__ import annotations

from adaexplore.llm.offline.body import NEUTRAL, Body, Names, Parameters, as_float, mean_divisor, row_wish
from adaexplore.llm.offline.graph import Pointwise, Reduction, Value, operands_of
from adaexplore.llm.offline.launch import (
    define,
)
from adaexplore.llm.offline.regions import Region

ROW_INDEX = """\
    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    if INNER == 1:
        row = pid * ROWS + tl.arange(0, ROWS)
        start = row * N
        live = row < rows
    else:
        lane = pid % tl.cdiv(INNER, ROWS) * ROWS + tl.arange(0, ROWS)
        row = pid // tl.cdiv(INNER, ROWS) * INNER + lane
        start = pid // tl.cdiv(INNER, ROWS) * INNER * N + lane
        live = lane < INNER"""


def store_row(region: Region, body: Body, out: str, root: Value, always: bool, element: bool) -> None:
    """Compute ``root`` and store it, one value an element or one a row."""
    result = body.compute(root, always)
    if element:
        body.add(f"tl.store({out}_ptr + index, {result}, mask=mask)")
    else:
        body.add(f"tl.store({out}_ptr + row[:, None], {result}, mask=live[:, None])")


def _partners(reductions: list[Reduction]) -> dict[Reduction, Reduction]:
    """Sums that can be kept up to date while the maximum or mean they depend on is still found.

    The sum of exp(v - max(v)) is rescaled whenever the maximum grows (online softmax); the mean of
    (v - mean(v))**2 follows Welford. Each first reduction has at most one partner.
    """
    found: dict[Reduction, Reduction] = {}
    for value in reductions:
        match value.operand:
            case Pointwise(
                name=outer, operands=(Pointwise(name="sub", operands=(inner, Reduction() as other)),)
            ):
                wanted = {("exp", "sum"): "max", ("square", "mean"): "mean"}.get((outer, value.name))
                known = other in reductions and other not in found.values()
                if other.name == wanted and other.operand is inner and known and not other.correction:
                    found[value] = other
    return found


def _stage(
    value: Value, members: set[Value], partners: dict[Reduction, Reduction], found: dict[Value, int]
) -> int:
    """How many passes over a row come before ``value`` can be computed."""
    if value not in found:
        inner = [
            _stage(operand, members, partners, found) for operand in operands_of(value) if operand in members
        ]
        joins = isinstance(value, Reduction) and value in partners
        found[value] = max(inner, default=0) + (isinstance(value, Reduction) and not joins)
    return found[value]


def looped_rows(
    region: Region, name: str, parameters: Parameters, outs: list[str], takes: list[str], online: bool
) -> list[str]:
    """A kernel that takes rows block by block; ``online`` joins passes where sums can be kept up to date."""
    members = set(region.levels)
    names = parameters.names.copy()
    reductions = [value for value in region.levels if isinstance(value, Reduction)]
    partners = _partners(reductions) if online else {}
    stages: dict[Value, int] = {}
    for root in region.roots:
        _stage(root, members, partners, stages)
    always = not parameters.broadcast
    lines: list[str] = []
    per_row: dict[Value, str] = {}  # what outlives a pass: values of which there is one a row
    for stage in range(1, max((stages[value] for value in reductions), default=0) + 1):
        now = [value for value in reductions if stages[value] == stage]
        before = Body(parameters, names=names)
        before.known.update(per_row)
        for value in now:
            _rows_needed(value.operand, region, before)
        lines += before.lines
        per_row.update({v: text for v, text in before.known.items() if region.levels.get(v) in ("R", "D")})
        inside = Body(parameters, "        ", names)
        inside.known.update(per_row)
        first, after = _pass(now, partners, inside, names, always, per_row)
        lines += [*first, *_PASS, *inside.lines, *after]
    last = Body(parameters, names=names)
    last.known.update(per_row)
    element = [
        (out, root) for out, root in zip(outs, region.roots, strict=True) if region.levels[root] == "E"
    ]
    for out, root in zip(outs, region.roots, strict=True):
        if region.levels[root] != "E":
            store_row(region, last, out, root, always, element=False)
    for _, root in element:
        _rows_needed(root, region, last)
    lines += last.lines
    if element:
        inside = Body(parameters, "        ", names)
        inside.known.update({v: text for v, text in last.known.items() if region.levels.get(v) in ("R", "D")})
        for out, root in element:
            store_row(region, inside, out, root, always, element=True)
        lines += [*_PASS, *inside.lines]
    return ["@triton.jit", *define(f"{name}_loop_kernel", takes), ROW_INDEX, *lines]


def _pass(
    now: list[Reduction],
    partners: dict[Reduction, Reduction],
    inside: Body,
    names: Names,
    always: bool,
    per_row: dict[Value, str],
) -> tuple[list[str], list[str]]:
    """Statements before and after one pass; those within go to ``inside``, results to ``per_row``."""
    first: list[str] = []
    after: list[str] = []
    for value in now:
        if value in partners:
            continue
        partner = next((second for second in now if partners.get(second) is value), None)
        text = as_float(inside.compute(value.operand, always), value.operand)
        acc, result = names.new(f"{value.name}_acc"), names.new(row_wish(value))
        adds = value.name in ("sum", "mean")
        if partner is None:
            fill = f"tl.where(mask, {text}, {NEUTRAL[value.name]})"
            inside.add(f"{acc} = {f'{acc} + {fill}' if adds else f'tl.{value.name}imum({acc}, {fill})'}")
            first.append(f"    {acc} = tl.full([ROWS, BLOCK], {NEUTRAL[value.name]}, tl.float32)")
            function = "sum" if adds else value.name
            after.append(f"    {result} = tl.{function}({acc}, axis=1)[:, None]{mean_divisor(value)}")
        else:
            second, other = names.new(f"{partner.name}_acc"), names.new(row_wish(partner))
            write = _online_softmax if value.name == "max" else _welford
            starts, steps, ends = write(text, acc, second, result, other, names)
            first += [
                f"    {name} = tl.full([ROWS, BLOCK], {start}, tl.float32)" for name, start in starts.items()
            ]
            for step in steps:
                inside.add(step)
            after += [f"    {end}" for end in ends]
            after[-1] += mean_divisor(partner)
            per_row[partner] = other
        per_row[value] = result
    return first, after


def _online_softmax(
    value: str, top: str, total: str, row_top: str, row_total: str, names: Names
) -> tuple[dict[str, str], list[str], list[str]]:
    """Accumulators with their starts, statements of a step, statements at the end."""
    shown, raised = names.new("shown"), names.new("raised")
    return (
        {top: "-3.0e38", total: "0.0"},
        [
            f"{shown} = tl.where(mask, {value}, -3.0e38)",
            f"{raised} = tl.maximum({top}, {shown})",
            f"{total} = {total} * tl.exp({top} - {raised}) + tl.exp({shown} - {raised})",
            f"{top} = {raised}",
        ],
        [
            f"{row_top} = tl.max({top}, axis=1)[:, None]",
            f"{row_total} = tl.sum({total} * tl.exp({top} - {row_top}), axis=1)[:, None]",
        ],
    )


def _welford(
    value: str, mean: str, squares: str, row_mean: str, row_squares: str, names: Names
) -> tuple[dict[str, str], list[str], list[str]]:
    """Accumulators with their starts, statements of a step, statements at the end."""
    count, delta = names.new("seen"), names.new("delta")
    return (
        {count: "0.0", mean: "0.0", squares: "0.0"},
        [
            f"{count} = {count} + tl.where(mask, 1.0, 0.0)",
            f"{delta} = tl.where(mask, {value} - {mean}, 0.0)",
            f"{mean} = {mean} + {delta} / tl.maximum({count}, 1.0)",
            f"{squares} = {squares} + {delta} * tl.where(mask, {value} - {mean}, 0.0)",
        ],
        [
            f"{row_mean} = tl.sum({mean} * {count}, axis=1)[:, None] / N",
            f"{delta}_row = {mean} - {row_mean}",
            f"{row_squares} = tl.sum({squares} + {count} * {delta}_row * {delta}_row, axis=1)[:, None]",
        ],
    )


_PASS = [
    "    for first in range(0, N, BLOCK):",
    "        col = first + tl.arange(0, BLOCK)",
    "        index = start[:, None] + col[None, :] * INNER",
    "        mask = live[:, None] & (col < N)[None, :]",
]


def _rows_needed(value: Value, region: Region, body: Body) -> None:
    """Compute ahead of a pass whatever it needs once a row."""
    if value in body.known or value not in region.levels:
        return
    if region.levels[value] in ("R", "D") and not isinstance(value, Reduction):
        body.compute(value, True)
        return
    for operand in operands_of(value):
        _rows_needed(operand, region, body)
