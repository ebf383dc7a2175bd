"""For each lint a candidate that it stops, and one that differs in little and works."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_api import TritonApi

REFERENCE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x * self.scale


def get_inputs():
    return [torch.rand(8, 64)]


def get_init_inputs():
    return [2.0]
"""

MODULE = """\
import math
import torch
import torch.nn as nn
import triton
import triton.language as tl

{above}

{decorators}
@triton.jit
def kernel({parameters}):
{body}


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        y = torch.empty_like(x)
{launch}
        return y
"""

LOAD = """\
offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
"""
STORE = "tl.store(y_ptr + offs, x * 2.0, mask=offs < n)\n"


def rules(source: str, api: TritonApi | None, reference: str | None = REFERENCE) -> set[str]:
    """The lints that find something in ``source``."""
    return {found.rule for found in lint(source, api, reference)}


@dataclass(frozen=True)
class Case:
    """A pair of candidates.

    Attributes:
        rule: the lint.
        bad: a candidate that it stops.
        good: its neighbour that works.
    """

    rule: str
    bad: str
    good: str


def module(
    body: str = "",
    *,
    above: str = "",
    decorators: str = "",
    parameters: str = "x_ptr, y_ptr, n, BLOCK: tl.constexpr",
    launch: str = "kernel[(8,)](x, y, x.numel(), BLOCK=64)",
    whole: str | None = None,
) -> str:
    """A candidate whose kernel loads a block, does ``body``, and stores it; or has the body ``whole``."""
    lines = LOAD + body + "\n" + STORE if whole is None else whole
    return MODULE.format(
        above=textwrap.dedent(above),
        decorators=textwrap.dedent(decorators).strip(),
        parameters=parameters,
        body=textwrap.indent(textwrap.dedent(lines), "    "),
        launch=textwrap.indent(textwrap.dedent(launch), "        "),
    )


def pair(rule: str, bad: str, good: str) -> Case:
    """A case of two kernel bodies."""
    return Case(rule, module(bad), module(good))


FINE = module()
TUNED = '@triton.autotune(configs=[triton.Config({{"BLOCK": 64}}, num_warps={warps})], key=["n"])'
AUTOTUNED = module(decorators=TUNED.format(warps=4), launch="kernel[(8,)](x, y, x.numel())")
HELPER = "def double(v):\n    return v * 2.0\n"

CASES = [
    Case("syntax", FINE.replace("def forward(self, x):", "def forward(self, x)"), FINE),
    Case("no-model", FINE.replace("class ModelNew", "class Model"), FINE),
    Case("no-forward", FINE.replace("def forward", "def run"), FINE),
    Case("init-arity", FINE.replace("__init__(self, scale)", "__init__(self, scale, bias)"), FINE),
    Case("undefined-name", module(launch="kernel[GRID](x, y, x.numel(), BLOCK=64)"), FINE),
    Case(
        "undefined-attribute",
        module(launch="kernel[(self.blocks,)](x, y, x.numel(), BLOCK=64)"),
        module(launch="kernel[(int(self.scale) * 4,)](x, y, x.numel(), BLOCK=64)"),
    ),
    Case(
        "call-arguments",
        module(
            above="def grid_of(n, m):\n    return (n // m,)", launch="kernel[grid_of(8)](x, y, 512, BLOCK=64)"
        ),
        module(
            above="def grid_of(n, m=1):\n    return (n // m,)",
            launch="kernel[grid_of(8)](x, y, 512, BLOCK=64)",
        ),
    ),
    pair("missing-triton-name", "x = tl.tanh(x)", "x = tl.sigmoid(x)"),
    Case("launch-missing-argument", module(launch="kernel[(8,)](x, y, x.numel())"), FINE),
    Case(
        "launch-unknown-argument",
        module(launch='kernel[(8,)](x, y, x.numel(), meta={"BLOCK": 64}, BLOCK=64)'),
        module(launch="kernel[(8,)](x, y, x.numel(), BLOCK=64, num_stages=2)"),
    ),
    Case("launch-duplicate-argument", module(launch="kernel[(8,)](x, y, 512, 64, BLOCK=64)"), FINE),
    Case(
        "launch-tuned-argument",
        module(decorators=TUNED.format(warps=4), launch="kernel[(8,)](x, y, x.numel(), BLOCK=64)"),
        AUTOTUNED,
    ),
    Case("kernel-called", module(launch="kernel(x, y, x.numel(), BLOCK=64)"), FINE),
    Case(
        "grid-type",
        module(launch="kernel[lambda meta: ((x.numel() / meta['BLOCK'],))](x, y, x.numel(), BLOCK=64)"),
        module(launch="kernel[lambda meta: (x.numel() // meta['BLOCK'],)](x, y, x.numel(), BLOCK=64)"),
    ),
    Case(
        "num-warps",
        module(decorators=TUNED.format(warps=6), launch="kernel[(8,)](x, y, x.numel())"),
        AUTOTUNED,
    ),
    Case(
        "config-attribute",
        module(
            above='CONFIGS = [triton.Config({"BLOCK": 64})]',
            launch="kernel[(8,)](x, y, x.numel(), BLOCK=CONFIGS[0].meta['BLOCK'])",
        ),
        module(
            above='CONFIGS = [triton.Config({"BLOCK": 64})]',
            launch="kernel[(8,)](x, y, x.numel(), BLOCK=CONFIGS[0].kwargs['BLOCK'])",
        ),
    ),
    pair(
        "unsupported-syntax",
        "for i in range(n):\n    x += 1.0\n    break",
        "for i in range(n):\n    x += 1.0",
    ),
    Case(
        "nested-function",
        module("def double(v):\n    return v * 2.0\nx = double(x)"),
        module("x = double(x)", above="@triton.jit\n" + HELPER),
    ),
    Case(
        "non-constexpr-global",
        module("x = x * FACTOR", above="FACTOR = 2.0"),
        module("x = x * FACTOR", above="FACTOR = tl.constexpr(2.0)"),
    ),
    Case(
        "plain-function",
        module("x = double(x)", above=HELPER),
        module("x = double(x)", above="@triton.jit\n" + HELPER),
    ),
    pair("undefined-in-kernel", "x = x * factor", "factor = 2.0\nx = x * factor"),
    pair(
        "lost-after-block",
        "for i in range(n):\n    part = x * 2.0\nx = x + part",
        "part = x\nfor i in range(n):\n    part = x * 2.0\nx = x + part",
    ),
    pair("called-dtype", "x = x + tl.float32(1.0)", "x = x + tl.full((1,), 1.0, tl.float32)"),
    pair("tensor-attribute", "x = x.astype(tl.float32)", "x = x.to(tl.float32)"),
    Case(
        "unknown-keyword",
        module(whole=(LOAD + STORE).replace("other=0.0)", "other=0.0, dtype=tl.float32)")),
        FINE,
    ),
    pair("function-arguments", "x = x + tl.num_programs()", "x = x + tl.num_programs(0)"),
    pair("block-index", "x = x + x[0]", "x = x + tl.sum(x[None, :], axis=1)"),
    pair("block-store", "x[0] = 0.0", "x = tl.where(offs == 0, 0.0, x)"),
    pair(
        "arange-bounds",
        "half = BLOCK // 2\nx = x + tl.sum(tl.arange(0, half), axis=0)",
        "half: tl.constexpr = BLOCK // 2\nx = x + tl.sum(tl.arange(0, half), axis=0)",
    ),
    Case("arange-range", module(launch="kernel[(8,)](x, y, x.numel(), BLOCK=96)"), FINE),
    pair(
        "block-shape",
        "x = x + tl.sum(tl.zeros((tl.num_programs(0),), tl.float32))",
        "x = x + tl.sum(tl.zeros((16,), tl.float32))",
    ),
    pair(
        "block-size",
        "wide = tl.zeros((2048, 1024), tl.float32)\nx = x + tl.sum(wide)",
        "wide = tl.zeros((16, 1024), tl.float32)\nx = x + tl.sum(wide)",
    ),
    pair("function-dtype", "x = tl.exp(x.to(tl.float16))", "x = tl.exp(x.to(tl.float16).to(tl.float32))"),
    Case(
        "load-pointer",
        module(launch="kernel[(8,)](x.data_ptr(), y, x.numel(), BLOCK=64)"),
        FINE,
    ),
    pair("load-mask", "x = x + tl.load(x_ptr, other=0.0)", "x = x + tl.load(x_ptr)"),
    pair("scalar-pointer", "tl.store(y_ptr, x)", "tl.store(y_ptr, tl.sum(x, axis=0))"),
    pair("operand-types", "x = x**2", "x = x * x"),
    pair(
        "shape-mismatch",
        "x = x + tl.arange(0, 32)",
        "x = x + tl.arange(0, 64)",
    ),
    pair(
        "dot-shape",
        "x = x + tl.sum(tl.dot(x, x))",
        "square = tl.reshape(tl.zeros((256,), tl.float32), (16, 16))\nx = x + tl.sum(tl.dot(square, square))",
    ),
    pair(
        "branch-type",
        "part = tl.zeros((BLOCK,), tl.float32)\nif n > 5:\n    part = part.to(tl.float16)\nx = x + part",
        "part = tl.zeros((BLOCK,), tl.float32)\nif n > 5:\n    part = part + 1.0\nx = x + part",
    ),
    pair(
        "loop-type",
        "part = 0.0\nfor i in range(n):\n    part = part + x\nx = x + part",
        "part = tl.zeros((BLOCK,), tl.float32)\nfor i in range(n):\n    part = part + x\nx = x + part",
    ),
    pair("tensor-condition", "if x > 0.0:\n    x = x * 2.0", "x = tl.where(x > 0.0, x * 2.0, x)"),
    pair("constant-of-tensor", "x = x + float(tl.program_id(0))", "x = x + tl.program_id(0).to(tl.float32)"),
    pair(
        "loop-bounds",
        "for i in range(0, 4.0):\n    x += 1.0",
        "for i in range(0, 4):\n    x += 1.0",
    ),
    pair(
        "static-loop",
        "for i in tl.static_range(tl.num_programs(0)):\n    x += 1.0",
        "for i in tl.static_range(BLOCK // 32):\n    x += 1.0",
    ),
]

_TWO = '@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])'
_OTHER = '@triton.autotune(configs=[triton.Config({"BLOCK": 64, "OTHER": 2})], key=["n"])'
_POINTER = "kernel[(8,)](x.contiguous(), y, x.numel(), BLOCK=64)"
_TILES = "a = tl.zeros(({0}), tl.{1})\nb = tl.zeros(({2}), tl.{3})\nx = x + tl.sum(tl.dot(a, b))"

MORE = [
    ("launch-tuned-argument", module(decorators=_TWO, launch="kernel[(8,)](x, y, x.numel(), num_warps=4)")),
    ("launch-tuned-argument", module(decorators=_TWO, launch="kernel[(8,)](x, y, x.numel(), BLOCK=64)")),
    ("launch-tuned-argument", module(decorators=_TWO, launch="kernel[(8,)](x, y, x.numel(), 64)")),
    ("launch-unknown-argument", module(decorators=_OTHER, launch="kernel[(8,)](x, y, x.numel())")),
    ("grid-type", module(launch="kernel[(x.numel() / 64,)](x, y, x.numel(), BLOCK=64)")),
    ("missing-triton-name", FINE.replace("import math", "from triton.language import tanh")),
    (
        "missing-triton-name",
        module("x = double(x)", above="@triton.jit\n" + HELPER.replace("v * 2.0", "tl.tanh(v)")),
    ),
    ("call-arguments", module("x = double(x, x)", above="@triton.jit\n" + HELPER)),
    ("undefined-in-kernel", module("x = abs(x)")),
    ("unsupported-syntax", module("x = tl.where(0 < x < 1, x, 0.0)")),
    ("unsupported-syntax", module("if BLOCK in (32, 64):\n    x = x * 2")),
    ("unsupported-syntax", module("a = b = x")),
    ("unsupported-syntax", module("for i in range(n):\n    if n > 3:\n        return")),
    ("unsupported-syntax", module("while True:\n    x += 1")),
    ("unsupported-syntax", module("for i in [1, 2]:\n    x += 1")),
    ("unsupported-syntax", module('d = {"a": x}')),
    ("unsupported-syntax", module("x = [x for i in range(2)][0]")),
    ("unsupported-syntax", module("double = lambda v: v")),
    ("unsupported-syntax", module("raise ValueError")),
    ("dot-shape", module(_TILES.format("16, 16", "float16", "16, 16", "float32"))),
    ("dot-shape", module(_TILES.format("16, 8", "float16", "8, 16", "float16"))),
    ("operand-types", module("x = x.to(tl.float32) & 1.0")),
    ("operand-types", module("x = x + tl.load(x_ptr + 1.5)", launch=_POINTER)),
    ("operand-types", module("if x_ptr != 0:\n    x = x * 2.0", launch=_POINTER)),
    ("scalar-pointer", module("x = x + tl.load(x_ptr, mask=offs < n)")),
    ("function-arguments", module("x = tl.max(x, 0.0)")),
    ("function-arguments", module("x = tl.max(x, x)")),
    ("function-arguments", module("x = tl.cast(tl.float32, x)")),
    ("function-arguments", module("x = x + tl.sum(x, axis=1)")),
    ("function-arguments", module("x = x + tl.program_id(3)")),
    ("branch-type", module("if n > 3:\n    z = x\nelse:\n    z = 0.0\nx = x + z")),
    ("branch-type", module("x = x + (x if n > 3 else 0.0)")),
    ("block-shape", module("x = x + tl.sum(tl.zeros((48,), tl.float32))")),
    ("block-index", module("x = x + tl.zeros((16, 64), tl.float32)[3, :]")),
    ("block-store", module("x[0] += 1.0")),
    ("tensor-attribute", module("x = x.at[0].set(1.0)")),
]
"""Further candidates that a lint stops."""
