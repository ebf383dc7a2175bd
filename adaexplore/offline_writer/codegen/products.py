"""Tiled matrix products with their epilogue."""

from dataclasses import replace

from adaexplore.offline_writer.codegen.body import Body
from adaexplore.offline_writer.codegen.launch import Kernel, Parameters, define, launch
from adaexplore.offline_writer.codegen.regions import Region
from adaexplore.offline_writer.tracing.graph import MatMul

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
    """Return the kernel of ``product`` and of the element-wise operations after it."""
    if product.bias is not None and product.bias not in region.leaves:
        region = replace(region, leaves=(*region.leaves, product.bias))
    parameters = Parameters(region)
    takes = ["left_ptr", "right_ptr", *parameters.takes, "m", "n", "k", "left_batch", "left_m", "left_k"]
    takes += ["right_batch", "right_k", "right_n", *parameters.constants]
    takes += ["TILE_M: tl.constexpr", "TILE_N: tl.constexpr", "TILE_K: tl.constexpr", "GROUP_M: tl.constexpr"]
    body = Body(parameters)
    if product.bias is not None:
        body.load(product.bias)
        body.add(f"acc = acc + {body.known[product.bias]}")
    body.known[product] = "acc"
    body.add(f"tl.store(out_ptr + index, {body.compute(region.root)}, mask=mask)")
    lines = [
        "@triton.jit",
        *define(f"{name}_kernel", takes),
        _PRODUCT,
        *body.lines,
        "",
        "",
        *define(name, ["left", "right", *parameters.arguments]),
        "    batches = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])",
        "    shape = (*batches, left.shape[-2], right.shape[-1])",
        parameters.make_output(region.root),
        "    left, right = _batches(left, right, shape)",
        "    (batch, m, k), n = left.shape, right.shape[-1]",
        *parameters.place_leaves(),
        "    tile_m = min(TILE_M, max(16, triton.next_power_of_2(m)))",
        "    tile_n = min(TILE_N, max(16, triton.next_power_of_2(n)))",
        "    tile_k = min(TILE_K, max(16, triton.next_power_of_2(k)))",
        *launch(
            f"{name}_kernel",
            "(triton.cdiv(m, tile_m) * triton.cdiv(n, tile_n), batch)",
            [
                "left", "right", *parameters.gives, "m", "n", "k", "*left.stride()", "*right.stride()",
                *parameters.layouts, "TILE_M=tile_m", "TILE_N=tile_n", "TILE_K=tile_k", "GROUP_M=GROUP_M",
                "num_warps=GEMM_WARPS", "num_stages=STAGES",
            ],
        ),
        "    return out",
        "",
    ]  # fmt: skip
    numbers = ("TILE_M", "TILE_N", "TILE_K", "GROUP_M", "GEMM_WARPS", "STAGES")
    values = (product.left, product.right, *parameters.values)
    return Kernel(name, "\n".join(lines), values, numbers)
