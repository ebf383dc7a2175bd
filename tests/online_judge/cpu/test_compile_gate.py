"""The compile gate alone: no memory, no execution."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from online_judge.cpu.compile_gate import CompileGate
from online_judge.cpu.target import gpu_model


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def _gate() -> CompileGate:
    return CompileGate(gpu_model("sm_90"))


def test_meta_tensors_are_enough() -> None:
    x = torch.empty(64, dtype=torch.bfloat16, device="meta")
    launch = _gate().compile(copy, (x, x, 64), {"BLOCK": 64, "num_warps": 2})
    assert launch.signature["x_ptr"] == "*bf16"
    assert "tt.load" in launch.ttir
    assert launch.options.num_warps == 2


def test_integers_are_specialised_as_triton_does() -> None:
    x = torch.empty(64, device="meta")
    gate = _gate()
    types = [gate.compile(copy, (x, x, n), {"BLOCK": 64}).signature["n"] for n in (1, 2, 2**40)]
    assert types == ["constexpr", "i32", "i64"]


def test_each_specialisation_has_its_ptx() -> None:
    x = torch.empty(64, device="meta")
    gate = _gate()
    for block in (64, 128, 64):
        gate.compile(copy, (x, x, 64), {"BLOCK": block})
    found = gate.ptx(10**6)
    assert list(found) == ["copy", "copy-2"]
    assert all(".target sm_90" in text and ".entry copy(" in text for text in found.values())
    assert list(gate.ptx(len(found["copy"]))) == ["copy"]


def test_block_that_is_no_power_of_two_fails() -> None:
    x = torch.empty(64, device="meta")
    with pytest.raises(CompilationError, match="power of 2"):
        _gate().compile(copy, (x, x, 60), {"BLOCK": 60})
