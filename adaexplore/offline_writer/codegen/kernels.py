"""Triton kernels and their launchers for regions: element-wise, or with reduced rows."""

from adaexplore.offline_writer.codegen.body import Body
from adaexplore.offline_writer.codegen.launch import Kernel, Parameters, define, launch
from adaexplore.offline_writer.codegen.passes import ROW_INDEX, looped_rows, store_row
from adaexplore.offline_writer.codegen.products import write_product
from adaexplore.offline_writer.codegen.regions import Region


def write_kernel(region: Region, name: str, rows: str) -> Kernel:
    """Return the kernel of ``region``; ``rows`` is the structural choice for reductions."""
    if region.product is not None:
        return write_product(region, region.product, name)
    return _flat(region, name) if region.axes is None else _rows(region, name, rows)


def _flat(region: Region, name: str) -> Kernel:
    parameters = Parameters(region)
    body = Body(parameters)
    body.add(f"tl.store(out_ptr + index, {body.compute(region.root)}, mask=mask)")
    takes = [*parameters.takes, "numel", *parameters.constants, "WIDE: tl.constexpr", "BLOCK: tl.constexpr"]
    gives = [*parameters.gives, "numel", *parameters.layouts]
    lines = [
        "@triton.jit",
        *define(f"{name}_kernel", takes),
        "    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)",
        "    index = pid * BLOCK + tl.arange(0, BLOCK)",
        "    mask = index < numel",
        *body.lines,
        "",
        "",
        *define(name, parameters.arguments),
        f"    shape = {parameters.shape}",
        parameters.make_output(region.root),
        *parameters.place_leaves(),
        "    numel = out.numel()",
        *launch(
            f"{name}_kernel",
            "(triton.cdiv(numel, BLOCK),)",
            [*gives, "WIDE=numel >= 2**31", "BLOCK=BLOCK", "num_warps=WARPS"],
        ),
        "    return out",
        "",
    ]
    return Kernel(name, "\n".join(lines), parameters.values, ("BLOCK", "WARPS"))


def _rows(region: Region, name: str, rows: str) -> Kernel:
    """Return kernels for rows in registers, for rows block by block, or both, and their launcher."""
    parameters = Parameters(region)
    takes = [*parameters.takes, "rows", *parameters.constants, "N: tl.constexpr", "INNER: tl.constexpr"]
    takes += ["WIDE: tl.constexpr", "ROWS: tl.constexpr", "BLOCK: tl.constexpr"]
    gives = [*parameters.gives, "rows", *parameters.layouts, "N=size", "INNER=inner"]
    gives += ["WIDE=math.prod(shape) >= 2**31", "ROWS=lanes", "BLOCK=block", "num_warps=work"]
    kernels = [looped_rows(region, name, parameters, takes, online=rows != "loop")]
    if rows == "single":
        kernels.insert(0, _single_rows(region, name, parameters, takes))
    assert region.axes is not None
    grouped = region.axes.grouped
    lines = [*define(name, [*parameters.arguments, "axes"]), f"    shape = {parameters.shape}"]
    narrow = [name for leaf, name in parameters.leaves.items() if leaf in region.reduced]
    if not grouped and len(narrow) < len(parameters.leaves):
        lines.append(f"    axes = _same_rows(shape, axes, {', '.join(f'{name}.shape' for name in narrow)})")
    lines.append(f"    rows, size, inner = {'_groups' if grouped else '_rows'}(shape, axes)")
    level = region.levels[region.root]
    made = "shape" if level == "E" else f"_reduced(shape, axes, {level == 'R'})"
    lines += [parameters.make_output(region.root, made), *parameters.place_leaves()]
    kernel = f"{name}_loop_kernel"
    numbers: tuple[str, ...] = ("ROW_TILE", "ROW_WORK", "LANES", "LOOP_BLOCK")
    if rows == "single":
        lines.append("    lanes, block, work, looped = _tiles(size, inner, ROW_LIMIT)")
        lines.append(f"    kernel = {kernel} if looped else {name}_kernel")
        kernel, numbers = "kernel", ("ROW_LIMIT", *numbers)
    else:
        lines.append("    lanes, block, work, _ = _tiles(size, inner, 0)")
    lines += [
        "    grid = triton.cdiv(rows, lanes) if inner == 1 else rows // inner * triton.cdiv(inner, lanes)",
        *launch(kernel, "(grid,)", gives),
        "    return out",
    ]
    source = "\n\n\n".join(["\n".join(part) for part in [*kernels, lines]]) + "\n"
    return Kernel(name, source, parameters.values, numbers)


def _single_rows(region: Region, name: str, parameters: Parameters, takes: list[str]) -> list[str]:
    body = Body(parameters)
    store_row(region, body)
    return [
        "@triton.jit",
        *define(f"{name}_kernel", takes),
        ROW_INDEX,
        "    col = tl.arange(0, BLOCK)",
        "    index = start[:, None] + col[None, :] * INNER",
        "    mask = live[:, None] & (col < N)[None, :]",
        *body.lines,
    ]
