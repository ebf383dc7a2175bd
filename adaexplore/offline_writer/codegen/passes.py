"""Kernels that process long rows in several passes."""

from adaexplore.offline_writer.codegen.body import DIVISOR, NEUTRAL, Body
from adaexplore.offline_writer.codegen.launch import Names, Parameters, define
from adaexplore.offline_writer.codegen.regions import Region
from adaexplore.offline_writer.tracing.graph import Pointwise, Reduction, Value, operands_of

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


def store_row(region: Region, body: Body) -> None:
    """Compute the root and store it: one value per element, or one per row."""
    result = body.compute(region.root)
    if region.levels[region.root] == "E":
        body.add(f"tl.store(out_ptr + index, {result}, mask=mask)")
    else:
        body.add(f"tl.store(out_ptr + row[:, None], {result}, mask=live[:, None])")


def _partners(reductions: list[Reduction]) -> dict[Reduction, Reduction]:
    """Return sums that can be updated while the maximum or mean on which they depend is being computed.

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
                if other.name == wanted and other.operand is inner and known:
                    found[value] = other
    return found


def _stage(
    value: Value, members: set[Value], partners: dict[Reduction, Reduction], found: dict[Value, int]
) -> int:
    """Return the number of passes over a row before ``value`` can be computed."""
    if value not in found:
        inner = [
            _stage(operand, members, partners, found) for operand in operands_of(value) if operand in members
        ]
        joins = isinstance(value, Reduction) and value in partners
        found[value] = max(inner, default=0) + (isinstance(value, Reduction) and not joins)
    return found[value]


def looped_rows(
    region: Region, name: str, parameters: Parameters, takes: list[str], online: bool
) -> list[str]:
    """Return a kernel that processes rows block by block; ``online`` joins passes if sums can be updated."""
    members = set(region.levels)
    names = parameters.names.copy()
    reductions = [value for value in region.levels if isinstance(value, Reduction)]
    partners = _partners(reductions) if online else {}
    stages: dict[Value, int] = {}
    _stage(region.root, members, partners, stages)
    lines: list[str] = []
    per_row: dict[Value, str] = {}  # values that outlive a pass: one for each row

    def prepared(values: list[Value]) -> Body:
        """Compute the per-row values that ``values`` need; return the body of a pass over them."""
        before = Body(parameters, names=names, known=per_row)
        for value in values:
            _rows_needed(value, region, before)
        lines.extend(before.lines)
        per_row.update({v: text for v, text in before.known.items() if region.levels.get(v) in ("R", "D")})
        return Body(parameters, "        ", names, per_row)

    for stage in range(1, max((stages[value] for value in reductions), default=0) + 1):
        now = [value for value in reductions if stages[value] == stage]
        inside = prepared([value.operand for value in now])
        first, after = _pass(now, partners, inside, names, per_row)
        lines += [*first, *_PASS, *inside.lines, *after]
    if region.levels[region.root] == "E":
        last = prepared([region.root])
        lines += _PASS
    else:
        last = Body(parameters, names=names, known=per_row)
    store_row(region, last)
    return ["@triton.jit", *define(f"{name}_loop_kernel", takes), ROW_INDEX, *lines, *last.lines]


def _pass(
    now: list[Reduction],
    partners: dict[Reduction, Reduction],
    inside: Body,
    names: Names,
    per_row: dict[Value, str],
) -> tuple[list[str], list[str]]:
    """Return statements before and after one pass; add those within to ``inside``, results to ``per_row``."""
    first: list[str] = []
    after: list[str] = []
    for value in now:
        if value in partners:
            continue
        partner = next((second for second in now if partners.get(second) is value), None)
        text = inside.compute(value.operand)
        acc, result = names.new(f"{value.name}_acc"), names.new(f"row_{value.name}")
        per_row[value] = result
        if partner is not None:
            second, other = names.new(f"{partner.name}_acc"), names.new(f"row_{partner.name}")
            per_row[partner] = other
            one, two = map(names.new, ("shown", "raised") if value.name == "max" else ("seen", "delta"))
            filled = (
                part.format(x=text, acc=acc, second=second, row=result, other=other, one=one, two=two)
                for part in _JOINED[value.name]
            )
            starts, steps, ends = (part.splitlines() for part in filled)
            ends[-1] += DIVISOR[partner.name]
        else:
            adds, neutral = value.name in ("sum", "mean"), NEUTRAL[value.name]
            fill = f"tl.where(mask, {text}, {neutral})"
            starts = [f"{acc} = tl.full([ROWS, BLOCK], {neutral}, tl.float32)"]
            steps = [f"{acc} = {f'{acc} + {fill}' if adds else f'tl.{value.name}imum({acc}, {fill})'}"]
            function = "sum" if adds else value.name
            ends = [f"{result} = tl.{function}({acc}, axis=1)[:, None]{DIVISOR[value.name]}"]
        first += [f"    {start}" for start in starts]
        for step in steps:
            inside.add(step)
        after += [f"    {end}" for end in ends]
    return first, after


# by the first of two reductions: statements before a pass, in it, and after it
_JOINED = {
    "max": (  # online softmax
        """\
{acc} = tl.full([ROWS, BLOCK], -3.0e38, tl.float32)
{second} = tl.full([ROWS, BLOCK], 0.0, tl.float32)""",
        """\
{one} = tl.where(mask, {x}, -3.0e38)
{two} = tl.maximum({acc}, {one})
{second} = {second} * tl.exp({acc} - {two}) + tl.exp({one} - {two})
{acc} = {two}""",
        """\
{row} = tl.max({acc}, axis=1)[:, None]
{other} = tl.sum({second} * tl.exp({acc} - {row}), axis=1)[:, None]""",
    ),
    "mean": (  # Welford
        """\
{one} = tl.full([ROWS, BLOCK], 0.0, tl.float32)
{acc} = tl.full([ROWS, BLOCK], 0.0, tl.float32)
{second} = tl.full([ROWS, BLOCK], 0.0, tl.float32)""",
        """\
{one} = {one} + tl.where(mask, 1.0, 0.0)
{two} = tl.where(mask, {x} - {acc}, 0.0)
{acc} = {acc} + {two} / tl.maximum({one}, 1.0)
{second} = {second} + {two} * tl.where(mask, {x} - {acc}, 0.0)""",
        """\
{row} = tl.sum({acc} * {one}, axis=1)[:, None] / N
{two}_row = {acc} - {row}
{other} = tl.sum({second} + {one} * {two}_row * {two}_row, axis=1)[:, None]""",
    ),
}
_PASS = [
    "    for first in range(0, N, BLOCK):",
    "        col = first + tl.arange(0, BLOCK)",
    "        index = start[:, None] + col[None, :] * INNER",
    "        mask = live[:, None] & (col < N)[None, :]",
]


def _rows_needed(value: Value, region: Region, body: Body) -> None:
    """Compute before a pass the values that it needs once per row."""
    if value in body.known or value not in region.levels:
        return
    if region.levels[value] in ("R", "D") and not isinstance(value, Reduction):
        body.compute(value)
        return
    for operand in operands_of(value):
        _rows_needed(operand, region, body)
