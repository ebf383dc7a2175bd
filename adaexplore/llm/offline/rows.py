"""Kernels that reduce rows: in registers where a row fits, else block by block."""

from __future__ import annotations

from adaexplore.llm.offline.body import Body, Parameters
from adaexplore.llm.offline.launch import (
    Kernel,
    define,
    dtype_text,
    first_shaped,
    helpers_in,
    launch,
    launch_values,
    layouts,
    output_names,
    shape_text,
    signature,
)
from adaexplore.llm.offline.passes import ROW_INDEX, looped_rows, store_row
from adaexplore.llm.offline.regions import Region


def write_rows(region: Region, name: str, rows: str) -> Kernel:
    """The kernels of a region with reductions, one or two of them, and their launcher."""
    parameters, outs = Parameters(region), output_names(region)
    takes, constants, gives, values = signature(parameters, outs)
    takes += ["rows", *constants, "N: tl.constexpr", "INNER: tl.constexpr", "WIDE: tl.constexpr"]
    takes += ["ROWS: tl.constexpr", "BLOCK: tl.constexpr"]
    gives += ["rows", *values, "N=size", "INNER=inner", "WIDE=math.prod(shape) >= 2**31"]
    gives += ["ROWS=lanes", "BLOCK=block", "num_warps=work"]
    kernels = [looped_rows(region, name, parameters, outs, takes, online=rows != "loop")]
    if rows == "single":
        kernels.insert(0, _single_rows(region, name, parameters, outs, takes))
    assert region.axes is not None
    grouped = region.axes.grouped
    axes = "axes"
    lines = [
        *define(name, [*parameters.leaves.values(), *parameters.scalars.values(), axes]),
        f"    shape = {shape_text(parameters)}",
    ]
    narrow = [parameters.leaves[leaf] for leaf in region.leaves if leaf in region.reduced]
    if not grouped and set(narrow) != set(parameters.leaves.values()):
        lines.append(f"    axes = _same_rows(shape, axes, {', '.join(f'{name}.shape' for name in narrow)})")
    lines.append(f"    rows, size, inner = {'_groups' if grouped else '_rows'}(shape, axes)")
    for out, root in zip(outs, region.roots, strict=True):
        level = region.levels[root]
        made = "shape" if level == "E" else f"_reduced(shape, axes, {level == 'R'})"
        dtype = dtype_text(root, parameters.leaves)
        lines.append(
            f"    {out} = torch.empty({made}, dtype={dtype}, device={first_shaped(parameters)}.device)"
        )
    lines += [f"    {line}" for line in layouts(parameters)]
    numbers: tuple[str, ...]
    if rows == "single":
        numbers = ("ROW_LIMIT", "ROW_TILE", "ROW_WORK", "LANES", "LOOP_BLOCK")
        lines.append("    lanes, block, work, looped = _tiles(size, inner, ROW_LIMIT)")
        lines.append(f"    kernel = {name}_loop_kernel if looped else {name}_kernel")
        kernel = "kernel"
    else:
        numbers = ("ROW_TILE", "ROW_WORK", "LANES", "LOOP_BLOCK")
        lines.append("    lanes, block, work, _ = _tiles(size, inner, 0)")
        kernel = f"{name}_loop_kernel"
    lines += [
        "    grid = triton.cdiv(rows, lanes) if inner == 1 else rows // inner * triton.cdiv(inner, lanes)",
        *launch(kernel, "(grid,)", gives),
        f"    return {', '.join(outs)}",
    ]
    source = "\n\n\n".join(["\n".join(part) for part in [*kernels, lines]]) + "\n"
    return Kernel(name, source, launch_values(parameters), numbers, helpers_in(source))


def _single_rows(
    region: Region, name: str, parameters: Parameters, outs: list[str], takes: list[str]
) -> list[str]:
    body = Body(parameters)
    always = not parameters.broadcast
    for out, root in zip(outs, region.roots, strict=True):
        store_row(region, body, out, root, always, region.levels[root] == "E")
    return [
        "@triton.jit",
        *define(f"{name}_kernel", takes),
        ROW_INDEX,
        "    col = tl.arange(0, BLOCK)",
        "    index = start[:, None] + col[None, :] * INNER",
        "    mask = live[:, None] & (col < N)[None, :]",
        *body.lines,
    ]
