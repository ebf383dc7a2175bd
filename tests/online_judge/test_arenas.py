import fcntl
import os

import pytest
import torch

from online_judge.common import cuda_driver
from online_judge.common.trees import UnsupportedTree, take_apart
from online_judge.protocol.shared_tensors import (
    MappedTensors,
    Parcel,
    Place,
    SharedBlocks,
    SharedTensors,
    lay_out,
    pack,
)

VALUES = [
    torch.randn(3, 4).T,
    torch.arange(5),
    torch.tensor([True, False]),
    torch.randn(0, 3),
    torch.randn(()),
    torch.randn(4, 1).expand(4, 7),
    torch.randn(2, 3, dtype=torch.complex64),
    torch.randn(8, 8)[::2, ::2],
    torch.randn(2, 3).bfloat16(),
    torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    torch.randn(8, 8)[::2, ::2].T,
]


def opened(shared: SharedTensors, parcel: object) -> MappedTensors:
    return MappedTensors(parcel, [os.dup(shared.fds[0])])  # type: ignore[arg-type]


def test_tree_arrives_as_it_was_sent() -> None:
    sent = [*VALUES, 3, "text", None, (torch.ones(2), {"key": torch.zeros(1), 7: [True]})]
    shared, parcel = pack(sent, cuda=False)
    with opened(shared, parcel) as window:
        received = window.tree()
        for want, got in zip(VALUES, received, strict=False):
            assert torch.equal(got, want)
            assert got.dtype == want.dtype
            assert got.stride() == want.clone().stride()
        assert received[11:14] == [3, "text", None]
        assert isinstance(received[14], tuple)
        assert list(received[14][1]) == ["key", 7]
    shared.free()


def test_what_the_candidate_process_writes_the_evaluator_reads() -> None:
    places, nbytes = lay_out([torch.empty(3, 4).T], contiguous=True)
    shared = SharedTensors(nbytes, cuda=False)
    shared.fill(0xFF, nbytes)
    view = shared.view(places[0])
    assert view.isnan().all()
    with opened(shared, shared.parcel(None, places)) as window:
        window.leaves[0].fill_(2.5)
    assert (view == 2.5).all()
    shared.free()
    shared.free()


def test_shared_memory_cannot_be_resized_by_its_peer() -> None:
    shared, parcel = pack([torch.zeros(4096)], cuda=False)
    fd = os.dup(shared.fds[0])
    for change in (0, 2 * parcel.nbytes):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, change)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    with opened(shared, parcel) as window:
        window.leaves[0].fill_(1.0)
    assert (shared.view(parcel.places[0]) == 1).all()
    os.close(fd)
    shared.free()


def test_small_blocks_are_reused_and_large_ones_freed() -> None:
    blocks = SharedBlocks(cuda=False)
    first, second, large = blocks.take(100), blocks.take(100), blocks.take(2**26 + 1)
    assert first is not second
    blocks.put_back()
    assert not large.fds
    assert {id(blocks.take(2**21)), id(blocks.take(1))} == {id(first), id(second)}
    assert blocks.take(2**22 + 1).nbytes == 3 * 2**21
    wider = blocks.take(2**21 + 1)
    assert wider not in (first, second)
    shared, parcel = pack([torch.ones(3)], cuda=False, take=blocks.take)
    with opened(shared, parcel) as window:
        assert window.leaves[0].tolist() == [1.0, 1.0, 1.0]
    blocks.free()
    assert not any(block.fds for block in (first, second, wider, shared))


def test_fresh_gpu_memory_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = torch.ones(2 * cuda_driver.BLOCK_BYTES, dtype=torch.uint8)
    monkeypatch.setattr(cuda_driver, "allocate", lambda nbytes: 1)
    monkeypatch.setattr(cuda_driver, "export", lambda address: b"handle")
    monkeypatch.setattr(cuda_driver, "as_bytes", lambda address, nbytes: memory[:nbytes])
    SharedTensors(100, cuda=True)
    assert int(memory.sum()) == cuda_driver.BLOCK_BYTES


def test_memory_that_stays_is_mapped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    bytes_of = {number: torch.full((512,), number, dtype=torch.uint8) for number in range(1, 5)}
    numbers = iter(bytes_of)
    monkeypatch.setattr(cuda_driver, "open_exported", lambda handle: calls.append(handle) or next(numbers))
    monkeypatch.setattr(cuda_driver, "close_exported", calls.append)
    monkeypatch.setattr(cuda_driver, "as_bytes", lambda address, nbytes: bytes_of[address])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(MappedTensors, "_staying", {})
    place = Place(0, (1,), (1,), torch.uint8)
    for handle, stays, value in ((b"a", True, 1), (b"b", True, 2), (b"a", True, 1), (b"c", False, 3)):
        with MappedTensors(Parcel(None, (place,), 512, handle, stays), []) as window:
            assert window.leaves[0].tolist() == [value]
    assert calls == [b"a", b"b", b"c", 3]


def test_unsupported_values_are_named() -> None:
    with pytest.raises(UnsupportedTree, match=r"builtins\.object"):
        pack([object()], cuda=False)
    with pytest.raises(UnsupportedTree, match="meta"):
        pack([torch.empty(2, device="meta")], cuda=False)
    with pytest.raises(UnsupportedTree, match="layout"):
        pack([torch.eye(2).to_sparse()], cuda=False)


def test_signature_distinguishes_structures_except_list_from_tuple() -> None:
    x = torch.ones(1)
    assert take_apart((x, x)).signature() == take_apart([x, x]).signature() == ["T", "T"]
    assert take_apart(x).signature() != take_apart([x]).signature()
    assert take_apart({"a": x, "n": 1}).signature() == {"a": "T", "n": {"value": "1"}}


@pytest.mark.parametrize(
    ("free", "needed", "given_back"), [(50, 0, False), (20, 0, True), (50, 60, True), (50, 40, False)]
)
def test_cached_memory_others_need_is_given_back(
    monkeypatch: pytest.MonkeyPatch, free: int, needed: int, given_back: bool
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 100))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("emptied"))
    cuda_driver.free_cache_if_scarce(needed)
    assert bool(calls) == given_back
