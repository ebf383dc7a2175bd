"""Tiled matrix products with their epilogue."""

from __future__ import annotations

from adaexplore.llm.offline.body import Body, Parameters
from adaexplore.llm.offline.graph import Channels, MatMul, Value
from adaexplore.llm.offline.launch import (
    Kernel,
    define,
    dtype_text,
    helpers_in,
    launch,
    launch_values,
    signature,
)
from adaexplore.llm.offline.regions import Region

_PRODUCT = """\
    pid, count = tl.program_id(0), tl.cdiv(n, TILE_N)
    group = pid // (GROUP_M * count) * GROUP_M
    depth = min(tl.cdiv(m, TILE_M) - group, GROUP_M)
    rows = (group + pid % (GROUP_M * count) % depth) * TILE_M + tl.arange(0, TILE_M)
    cols = pid % (GROUP_M * count) // depth * TILE_N + tl.arange(0, TILE_N)
    batch = tl.program_id(1).to(tl.int64)
    steps = tl.arange(0, TILE_K)
    left_at = left_ptr + batch * left_batch + rows[:, None].to(tl.int64) * left_m + steps[None, :] * left_k
    right_at = right_ptr + batch * right_batch + steps[:, None] * right_k
    right_at += cols[None, :].to(tl.int64) * right_n
    acc = tl.zeros([TILE_M, TILE_N], tl.float32)
    for first in range(0, k, TILE_K):
        inside = first + steps < k
        a = tl.load(left_at, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        b = tl.load(right_at, mask=inside[:, None] & (cols < n)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        left_at += TILE_K * left_k
        right_at += TILE_K * right_k
    index = (batch * m + rows[:, None]) * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]"""


def write_product(region: Region, product: MatMul, name: str) -> Kernel:
    """The kernel of ``product`` and of the element-wise operations after it."""
    extra = (product.bias,) if product.bias is not None and product.bias not in region.leaves else ()
    region = Region(
        region.roots, (*region.leaves, *extra), region.scalars, None, region.levels, frozenset(), product
    )
    parameters = Parameters(region)
    _, _, gives, _ = signature(parameters, ["out"])
    takes = ["left_ptr", "right_ptr", *(f"{leaf}_ptr" for leaf in parameters.leaves.values()), "out_ptr"]
    takes += [*parameters.scalars.values(), "m", "n", "k", "left_batch", "left_m", "left_k"]
    takes += ["right_batch", "right_k", "right_n"]
    for leaf in parameters.leaves.values():
        takes += [f"{leaf.upper()}_STEP: tl.constexpr", f"{leaf.upper()}_SIZE: tl.constexpr"]
    takes += ["TILE_M: tl.constexpr", "TILE_N: tl.constexpr", "TILE_K: tl.constexpr", "GROUP_M: tl.constexpr"]
    body = Body(parameters)
    if product.bias is not None:
        body.load(product.bias, always=False)
        body.add(f"acc = acc + {body.known[product.bias]}")
    body.known[product] = "acc"
    result = body.compute(region.roots[0], False)
    body.add(f"tl.store(out_ptr + index, {result}, mask=mask)")
    kernel = ["@triton.jit", *define(f"{name}_kernel", takes), _PRODUCT, *body.lines]
    dtype = dtype_text(region.roots[0], parameters.leaves, product)
    launcher = [
        *define(name, ["left", "right", *parameters.leaves.values(), *parameters.scalars.values()]),
        "    batches = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])",
        "    shape = (*batches, left.shape[-2], right.shape[-1])",
        f"    out = torch.empty(shape, dtype={dtype}, device=left.device)",
        "    left, right = _batches(left, right, shape)",
        "    (batch, m, k), n = left.shape, right.shape[-1]",
        *(
            f"    {leaf}, {leaf}_step, {leaf}_size = _layout({_viewed(value, leaf)}, shape)"
            for value, leaf in parameters.leaves.items()
        ),
        "    tile_m = min(TILE_M, max(16, triton.next_power_of_2(m)))",
        "    tile_n = min(TILE_N, max(16, triton.next_power_of_2(n)))",
        "    tile_k = min(TILE_K, max(16, triton.next_power_of_2(k)))",
        *launch(
            f"{name}_kernel",
            "(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), batch)",
            [
                "left", "right", *gives, "m", "n", "k", "*left.stride()", "*right.stride()",
                *(
                    text
                    for leaf in parameters.leaves.values()
                    for text in (f"{leaf.upper()}_STEP={leaf}_step", f"{leaf.upper()}_SIZE={leaf}_size")
                ),
                "TILE_M=tile_m", "TILE_N=tile_n", "TILE_K=tile_k", "GROUP_M=GROUP_M",
                "num_warps=GEMM_WARPS", "num_stages=STAGES",
            ],
        ),
        "    return out",
    ]  # fmt: skip
    source = "\n".join([*kernel, "", "", *launcher, ""])
    numbers = ("TILE_M", "TILE_N", "TILE_K", "GROUP_M", "GEMM_WARPS", "STAGES")
    arguments = (product.left, product.right, *launch_values(parameters))
    return Kernel(name, source, arguments, numbers, (*helpers_in(source), "_batches"))


def _viewed(leaf: Value, name: str) -> str:
    return f"{name}.view(-1, *(1,) * (len(shape) - 2))" if isinstance(leaf, Channels) else name
