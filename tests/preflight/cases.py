"""For each lint a candidate that it stops, and one that differs in little and works."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from adaexplore.core.environment import TritonFacts
from adaexplore.preflight.lints import lint

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


def rules(source: str, api: TritonFacts | None, reference: str | None = REFERENCE) -> set[str]:
    """Return the lints with findings in ``source``."""
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
    """Return a candidate whose kernel loads a block, does ``body`` and stores it; or has body ``whole``."""
    lines = LOAD + body + "\n" + STORE if whole is None else whole
    return MODULE.format(
        above=textwrap.dedent(above),
        decorators=textwrap.dedent(decorators).strip(),
        parameters=parameters,
        body=textwrap.indent(textwrap.dedent(lines), "    "),
        launch=textwrap.indent(textwrap.dedent(launch), "        "),
    )


def pair(rule: str, bad: str, good: str) -> Case:
    """Return a case of two kernel bodies."""
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
    pair("called-dtype", "x = x + tl.float32(1.0)", "x = x + tl.full((1,), 1.0, tl.float32)"),
    Case(
        "unknown-keyword",
        module(whole=(LOAD + STORE).replace("other=0.0)", "other=0.0, dtype=tl.float32)")),
        FINE,
    ),
    pair("function-arguments", "x = x + tl.num_programs()", "x = x + tl.num_programs(0)"),
    pair("block-index", "x = x + x[0]", "x = x + tl.sum(x[None, :], axis=1)"),
    pair("block-store", "x[0] = 0.0", "x = tl.where(offs == 0, 0.0, x)"),
    pair("load-mask", "x = x + tl.load(x_ptr, other=0.0)", "x = x + tl.load(x_ptr)"),
]

_TWO = '@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])'
_OTHER = '@triton.autotune(configs=[triton.Config({"BLOCK": 64, "OTHER": 2})], key=["n"])'

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
    ("unsupported-syntax", module("while True:\n    x += 1")),
    ("unsupported-syntax", module("for i in [1, 2]:\n    x += 1")),
    ("unsupported-syntax", module('d = {"a": x}')),
    ("unsupported-syntax", module("x = [x for i in range(2)][0]")),
    ("unsupported-syntax", module("double = lambda v: v")),
    ("unsupported-syntax", module("raise ValueError")),
    ("function-arguments", module("x = tl.max(x, 0.0)")),
    ("function-arguments", module("x = tl.max(x, x)")),
    ("block-index", module("x = x + tl.zeros((16, 64), tl.float32)[3, :]")),
    ("block-store", module("x[0] += 1.0")),
]
"""Further candidates that a lint stops."""


def _built(statement: str, read: str, above: str = "") -> str:
    """Return a candidate whose constructor runs ``statement``, so that ``forward`` can use ``read``."""
    source = module(above=above, launch=f"kernel[(8,)](x, y, x.numel(), BLOCK=64)\ny = y * {read}")
    return source.replace("self.scale = scale\n", f"self.scale = scale\n        {statement}\n")


_KEEP = "def keep(module):\n    module.factor = 1.0\n"
_REGISTER = (
    "def keep(module, names):\n    for name in names:\n        module.register_buffer(name, torch.ones(1))\n"
)
_SWITCH = 'import os\nos.environ["TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"] = "1"\n'

WORKING = {
    "computed buffer names": _built(
        'for i in range(2): self.register_buffer(f"w{i}", torch.ones(1))', "self.w0 * self.w1"
    ),
    "buffer names of a list": _built(
        "for name in NAMES: self.register_buffer(name, torch.ones(1))", "self.a", above='NAMES = ["a", "b"]'
    ),
    "computed module names": _built(
        'for i in range(2): self.add_module(f"id{i}", nn.Identity())', "self.id0(1.0)"
    ),
    "modules set by key": _built('self._modules["id" + "0"] = nn.Identity()', "self.id0(1.0)"),
    "an attribute that a helper sets": _built("keep(self)", "self.factor", above=_KEEP),
    "buffers that a helper registers": _built('keep(self, "ab")', "self.a", above=_REGISTER),
    "a forward that is set later": FINE.replace("def forward", "def run")
    + "\nModelNew.forward = ModelNew.run\n",
    "an attribute of the class that is set later": _built("pass", "self.factor")
    + "\nModelNew.factor = 1.0\n",
    "names set in globals": module(
        "x = x * INNER",
        above='globals()["OUTER"] = 1.0\nglobals()["INNER"] = tl.constexpr(1.0)',
        launch="kernel[(8,)](x, y, x.numel(), BLOCK=64)\ny = y * OUTER",
    ),
    "plain globals that Triton is told to allow": module("x = x * FACTOR", above=_SWITCH + "FACTOR = 2.0"),
    "a method that a derived class defines": module(
        above="""
            class Base(nn.Module):
                def forward(self, x):
                    return self.shifted(x)

            class Derived(Base):
                def shifted(self, x):
                    return x + 1
        """,
        launch="kernel[(8,)](x, y, x.numel(), BLOCK=64)\nBase.forward(Derived(), x)",
    ),
    "indices asked for by position": module("x = x + tl.max(x, 0, True)[0]"),
}
"""Candidates that work, and that a lint once stopped."""
