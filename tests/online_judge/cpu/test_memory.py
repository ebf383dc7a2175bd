"""Legal accesses of a kernel do not depend on the machine's addresses."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from online_judge.cpu import IllegalAccessError

pytestmark = pytest.mark.usefixtures("gpu")


@triton.jit
def shift(x_ptr, out_ptr, by, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets + by, tl.load(x_ptr + offsets))


@triton.jit
def shift_of(pair, by, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(pair[1] + offsets + by, tl.load(pair[0] + offsets))


def _neighbours(*places: int) -> list[torch.Tensor]:
    """Vectors of 16 numbers, each a storage of its own, at these multiples of their size in one memory."""
    memory = bytearray(64 * 4 * 16)
    return [torch.frombuffer(memory, dtype=torch.float32, count=16, offset=64 * place) for place in places]


def _refusal(x: torch.Tensor, out: torch.Tensor, by: int, *, as_tuple: bool = False) -> str:
    kernel, tensors = (shift_of, ((x, out),)) if as_tuple else (shift, (x, out))
    with pytest.raises(IllegalAccessError) as caught:
        kernel[(1,)](*tensors, by, BLOCK=16)
    return str(caught.value)


@pytest.mark.parametrize("as_tuple", [False, True])
@pytest.mark.parametrize("by", [8, 16, 40, -16, -1])
def test_illegal_access_message_ignores_tensor_placement(by: int, as_tuple: bool) -> None:
    told = {
        _refusal(*_neighbours(*places), by, as_tuple=as_tuple)
        for places in ((20, 10), (10, 20), (10, 11), (11, 10), (10, 12), (12, 10), (30, 60))
    }
    assert len(told) == 1, told


@triton.jit
def copy_of(source, out_ptr, start, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), source.load([start]))


def test_oversized_descriptor_message_ignores_tensor_placement() -> None:
    told = set()
    for places in ((0, 1), (1, 0), (7, 3)):
        x, out = _neighbours(*places)
        claim = TensorDescriptor(x, shape=[64], strides=[1], block_shape=[16])
        copy_of[(1,)](claim, out, 0, BLOCK=16)
        with pytest.raises(IllegalAccessError) as caught:
            copy_of[(1,)](claim, out, 4, BLOCK=16)
        told.add(str(caught.value).partition("; ")[2])
    assert told == {"the first is 0 bytes past the end of a tensor of 64 bytes"}


def test_access_into_adjacent_tensor_is_illegal() -> None:
    told = _refusal(*_neighbours(1, 0), 12)
    assert told.endswith(
        "12 of 16 elements of a store lie outside the tensors of this launch; "
        "the first is 0 bytes past the end of a tensor of 64 bytes"
    )
    assert _refusal(*_neighbours(0, 1), -4).endswith(
        "the first is 16 bytes before the start of a tensor of 64 bytes"
    )


def test_overlapping_storages_share_memory_in_a_kernel() -> None:
    memory = bytearray(256)
    x = torch.frombuffer(memory, dtype=torch.float32, count=48)
    out = torch.frombuffer(memory, dtype=torch.float32, count=48, offset=64)
    x[:16] = torch.arange(16.0)
    shift[(1,)](x, out, 16, BLOCK=16)
    assert x[32:].tolist() == list(range(16))
    assert "96 bytes past the end of a tensor of 256 bytes" in _refusal(x, out, 72)


@triton.jit
def tell_address(x_ptr, table_ptr):
    tl.store(table_ptr, (x_ptr + 1).to(tl.int64))


@triton.jit
def read_at(table_ptr, x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(tl.load(table_ptr).to(tl.pointer_type(tl.float32))))


def test_later_launch_can_dereference_a_stored_address() -> None:
    x, out = torch.arange(4.0, device="cuda"), torch.zeros(1, device="cuda")
    table = torch.zeros(1, dtype=torch.int64, device="cuda")
    tell_address[(1,)](x, table)
    assert table.item() == x.data_ptr() + 4
    read_at[(1,)](table, x, out)
    assert out.item() == 1.0
