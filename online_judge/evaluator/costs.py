"""Count what one call of a module must do: bytes moved, operations done, terms summed."""

import functools
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from online_judge.common import trees

_CHUNK = 2**20
_COMPARED = 2**26
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ALONG_DIM = ("softmax", "cumsum", "cumprod", "logcumsumexp")
_REDUCING = ("sum", "mean", "var", "std", "norm", "prod", "pool")


@dataclass(frozen=True)
class Cost:
    """Least work of one call."""

    output_bytes: int  # memory of outputs that is not memory of inputs
    read_bytes: int  # memory of inputs and weights; a call may get by with less, as an embedding does
    flops: float  # of matrix products, convolutions and attention; 0 where there are none
    depth: float  # terms of the longest sum, at least 1


def of_call(call: Callable[[], object], inputs: list[object], weights: Iterable[torch.Tensor]) -> Cost:
    """Run ``call`` once under meters; ``inputs`` are its arguments."""
    counter = FlopCounterMode(display=False)
    counter.mod_tracker = _NoModules()  # torch's own refuses modules that are called with a parameter
    with _DepthMeter() as meter, counter:
        outputs = call()
    given = [*leaves_of(inputs), *weights]
    known = {storage_of(leaf) for leaf in given}
    made = [leaf for leaf in leaves_of(outputs) if storage_of(leaf) not in known]
    return Cost(nbytes(made), nbytes(given), float(counter.get_total_flops()), meter.depth)


def leaves_of(value: object) -> list[torch.Tensor]:
    """Return all tensors of a value that have ordinary memory."""
    leaves: list[torch.Tensor] = []
    trees.map_leaves(value, leaves.append)
    return [leaf for leaf in leaves if leaf.layout == torch.strided]


def versions(tensors: Iterable[torch.Tensor]) -> list[int]:
    """Return how often each was written, as far as torch counts writes."""
    return [0 if tensor.is_inference() else int(tensor._version) for tensor in tensors]


def storage_of(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def share_storage(ones: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> bool:
    """Return True if one of ``ones`` shares memory with one of ``others``."""
    held = {storage_of(tensor) for tensor in others if tensor.numel()}
    return any(storage_of(tensor) in held for tensor in ones)


def nbytes(tensors: Iterable[torch.Tensor]) -> int:
    """Add up the memory of tensors; shared memory and elements repeated by a stride of 0 count once."""
    held: dict[int, int] = {}
    for tensor in tensors:
        elements = 1
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            elements *= size if stride or size == 0 else 1
        own = held.get(storage_of(tensor), 0) + elements * int(tensor.element_size())
        held[storage_of(tensor)] = min(own, int(tensor.untyped_storage().nbytes()))
    return sum(held.values())


class _NoModules:
    """Stands for ``torch.utils.module_tracker.ModuleTracker`` where one total is wanted, none by module."""

    parents = frozenset({"Global"})

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _DepthMeter(TorchDispatchMode):  # type: ignore[misc]
    """Finds how many terms the longest sum of a run has."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [leaf for leaf in leaves_of(list(args)) if leaf.numel()]
        made = [leaf for leaf in leaves_of(result) if leaf.numel()]
        if given and made:
            self.depth = max(self.depth, _terms(func.overloadpacket.__name__, args, given, made))
        return result


def _terms(name: str, args: tuple[Any, ...], given: list[torch.Tensor], made: list[torch.Tensor]) -> float:
    """Return the number of terms of one operation's sums, as far as shapes show it."""
    if name == "convolution_backward":
        gradient, _, weight = args[:3]
        of_weight = gradient.numel() / gradient.shape[1]
        return float(max(of_weight, weight.numel() / weight.shape[0 if args[7] else 1]))
    if "convolution" in name:
        weight = args[1]
        return float(weight.numel() / weight.shape[1 if args[6] else 0])
    if name == "embedding_dense_backward":
        return float(args[1].numel())
    if name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        return float(args[0].shape[args[2]]) if args[0].dim() else 1.0
    if name in ("mm", "bmm", "mv", "dot", "_int_mm"):
        return float(args[0].shape[-1])
    if name in ("addmm", "addbmm", "baddbmm", "addmv"):
        return float(args[1].shape[-1])
    if "attention" in name:
        return float(max(args[0].shape[-1], args[1].shape[-2]))
    if any(part in name for part in _ALONG_DIM):
        return float(args[0].shape[args[1]]) if args[0].dim() else 1.0
    if any(part in name for part in _REDUCING):  # norms return the statistics that they summed
        return float(given[0].numel() / min(leaf.numel() for leaf in made))
    return 1.0


def checksum(tensor: torch.Tensor) -> int:
    """Return a value that changes if an element changes or moves; comparable within this process only.

    It is the sum of all elements' bits, each times a random weight of its place. Each process draws its own
    weights, so nobody can change elements without changing the sum.
    """
    bits = _bits_of(tensor)
    weights = _place_weights(str(bits.device))
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for start in range(0, bits.numel(), _CHUNK):
        part = bits[start : start + _CHUNK]
        total = total * weights[0] + (part * weights[: part.numel()]).sum()
    return int(total)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if two tensors of one dtype and shape are equal, NaN included."""
    left, right = _bits_of(one), _bits_of(other)
    if left.numel() != right.numel():
        return False
    parts = zip(left.split(_COMPARED), right.split(_COMPARED), strict=True)  # each result needs memory
    return all(torch.equal(*pair) for pair in parts)


def _bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as a flat tensor of whole numbers, parts of complex ones apart."""
    plain = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return plain.detach().reshape(-1).view(_WHOLE[plain.element_size()])


@functools.cache
def _place_weights(device: str) -> torch.Tensor:
    """Draw secret odd numbers, one for each place within a part."""
    generator = torch.Generator().manual_seed(secrets.randbits(63))
    return (torch.randint(-(2**62), 2**62, (_CHUNK,), generator=generator) | 1).to(device)
