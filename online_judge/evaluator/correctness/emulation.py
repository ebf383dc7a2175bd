"""The reference in float32 with rounded operands of its matrix products: the error that a tier allows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.core.wire import Tier
from online_judge.common import modules, trees
from online_judge.evaluator.correctness import oracles

_DROPPED_BITS = 13  # of float32's 23 bits of mantissa; TF32 keeps 10
# positions of both operands among the arguments of an aten operation
_OPERANDS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "convolution"), (0, 1)),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm", "_addmm_activation"), (1, 2)),
    **dict.fromkeys(("addmm_", "addmv_", "addbmm_", "baddbmm_"), (1, 2)),
}


def truncated(operand: torch.Tensor) -> torch.Tensor:
    """Clear the bits of a float32 tensor that TF32 lacks, as ``tl.dot`` does; NaN and infinities stay."""
    bits = operand.contiguous().view(torch.int32)
    return ((bits >> _DROPPED_BITS) << _DROPPED_BITS).view(torch.float32)


def rounded_to_bf16(operand: torch.Tensor) -> torch.Tensor:
    """Round a float32 tensor to bfloat16 and return it in float32."""
    return operand.to(torch.bfloat16).to(torch.float32)


ROUNDINGS: dict[Tier, Callable[[torch.Tensor], torch.Tensor]] = {"tf32": truncated, "half": rounded_to_bf16}


def outputs(model: torch.nn.Module, inputs: list[Any], tier: Tier, seed: int) -> trees.Tree | None:
    """Call ``model`` once on ``inputs``, which stay, its products in float32 with rounded operands.

    Tier ``tf32`` truncates operands to 10 bits of mantissa, ``half`` rounds them to bfloat16. ``seed`` is set
    before the call; buffers may change. None where the call makes no product, or fails in this form (too
    little memory, for example).
    """
    try:
        with torch.no_grad(), oracles.highest_precision(), _plain_kernels(), _Products(tier) as products:
            modules.seed_everything(seed)
            tree = trees.take_apart(model(*oracles.copied(inputs)))
    except oracles.REFUSALS:
        return None
    return tree if products.seen else None


class _Products(TorchDispatchMode):  # type: ignore[misc]
    """Rounds the float32 operands of matrix products and convolutions."""

    def __init__(self, tier: Tier) -> None:
        super().__init__()
        self.seen = False
        self._rounding = ROUNDINGS[tier]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        positions = _OPERANDS.get(name)
        if positions is None or any(args[place].dtype != torch.float32 for place in positions):
            return func(*args, **(kwargs or {}))
        self.seen = True
        given = list(args)
        for place in positions:
            given[place] = self._rounding(given[place])
        if name != "convolution":
            return func(*given, **(kwargs or {}))
        with _libraries(True):  # one product, and slow without these
            return func(*given, **(kwargs or {}))


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """Have attention and recurrent layers made of single products, which can be seen."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), _libraries(False):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


@contextlib.contextmanager
def _libraries(value: bool) -> Iterator[None]:
    """Switch cuDNN and oneDNN on or off within the block."""
    backends = (torch.backends.cudnn, torch.backends.mkldnn)
    before = [backend.enabled for backend in backends]
    try:
        for backend in backends:
            backend.enabled = value
        yield
    finally:
        for backend, enabled in zip(backends, before, strict=True):
            backend.enabled = enabled
