"""Triton kernels and their launchers for regions."""

from __future__ import annotations

from adaexplore.llm.offline.body import NEUTRAL, Body, Parameters, as_float
from adaexplore.llm.offline.graph import Total
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
from adaexplore.llm.offline.products import write_product
from adaexplore.llm.offline.regions import Region
from adaexplore.llm.offline.rows import write_rows


def write_kernel(region: Region, name: str, rows: str) -> Kernel:
    """The kernel of ``region``; ``rows`` is the structural choice for reductions."""
    if region.product is not None:
        return write_product(region, region.product, name)
    if isinstance(region.roots[0], Total):
        return _total(region, region.roots[0], name)
    if region.axes is None:
        return _flat(region, name)
    return write_rows(region, name, rows)


def _flat(region: Region, name: str) -> Kernel:
    parameters, outs = Parameters(region), output_names(region)
    takes, constants, gives, values = signature(parameters, outs)
    body = Body(parameters)
    for out, root in zip(outs, region.roots, strict=True):
        result = body.compute(root, not parameters.broadcast)
        body.add(f"tl.store({out}_ptr + index, {result}, mask=mask)")
    kernel = [
        "@triton.jit",
        *define(f"{name}_kernel", [*takes, "numel", *constants, "WIDE: tl.constexpr", "BLOCK: tl.constexpr"]),
        "    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)",
        "    index = pid * BLOCK + tl.arange(0, BLOCK)",
        "    mask = index < numel",
        *body.lines,
    ]
    launcher = [
        *define(name, [*parameters.leaves.values(), *parameters.scalars.values()]),
        f"    shape = {shape_text(parameters)}",
        *(
            f"    {out} = torch.empty(shape, dtype={dtype_text(root, parameters.leaves)}, "
            f"device={first_shaped(parameters)}.device)"
            for out, root in zip(outs, region.roots, strict=True)
        ),
        *(f"    {line}" for line in layouts(parameters)),
        f"    numel = {outs[0]}.numel()",
        *launch(
            f"{name}_kernel",
            "(triton.cdiv(numel, BLOCK),)",
            [*gives, "numel", *values, "WIDE=numel >= 2**31", "BLOCK=BLOCK", "num_warps=WARPS"],
        ),
        f"    return {', '.join(outs)}",
    ]
    source = "\n".join([*kernel, "", "", *launcher, ""])
    return Kernel(name, source, launch_values(parameters), ("BLOCK", "WARPS"), helpers_in(source))


def _total(region: Region, root: Total, name: str) -> Kernel:
    parameters = Parameters(region)
    takes, constants, gives, values = signature(parameters, ["partial"])
    body = Body(parameters, "        ")
    result = as_float(body.compute(root.operand, not parameters.broadcast), root.operand)
    adds = root.name in ("sum", "mean")
    update = f"acc + tl.where(mask, {result}, 0.0)"
    if not adds:
        update = f"tl.{root.name}imum(acc, tl.where(mask, {result}, {NEUTRAL[root.name]}))"
    kernel = [
        "@triton.jit",
        *define(f"{name}_kernel", [*takes, "numel", *constants, "WIDE: tl.constexpr", "BLOCK: tl.constexpr"]),
        "    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)",
        f"    acc = tl.full([BLOCK], {NEUTRAL[root.name]}, tl.float32)",
        "    for first in range(pid * BLOCK, numel, tl.num_programs(0) * BLOCK):",
        "        index = first + tl.arange(0, BLOCK)",
        "        mask = index < numel",
        *body.lines,
        f"        acc = {update}",
        f"    tl.store(partial_ptr + pid, tl.{'sum' if adds else root.name}(acc, axis=0))",
    ]
    finish = {"sum": "partial.sum()", "mean": "partial.sum() / numel"}.get(
        root.name, f"partial.a{root.name}()"
    )
    launcher = [
        *define(name, [*parameters.leaves.values(), *parameters.scalars.values()]),
        f"    shape = {shape_text(parameters)}",
        f"    dtype = {dtype_text(root, parameters.leaves)}",
        "    numel = math.prod(shape)",
        "    grid = min(triton.cdiv(numel, BLOCK), 1024)",
        f"    partial = torch.empty(grid, dtype=torch.float32, device={first_shaped(parameters)}.device)",
        *(f"    {line}" for line in layouts(parameters)),
        *launch(
            f"{name}_kernel",
            "(grid,)",
            [*gives, "numel", *values, "WIDE=numel >= 2**31", "BLOCK=BLOCK", "num_warps=WARPS"],
        ),
        f"    return ({finish}).to(dtype)",
    ]
    source = "\n".join([*kernel, "", "", *launcher, ""])
    return Kernel(name, source, launch_values(parameters), ("BLOCK", "WARPS"), helpers_in(source))
