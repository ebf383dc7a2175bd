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
_OPERANDS: dict[str, tuple[int, int]] = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "addmv": (1, 2),
    "addbmm": (1, 2),
    "baddbmm": (1, 2),
    "addmm_": (1, 2),
    "addmv_": (1, 2),
    "addbmm_": (1, 2),
    "baddbmm_": (1, 2),
    "_addmm_activation": (1, 2),
    "convolution": (0, 1),
}
"""Positions of both operands among the arguments of an aten operation."""

Rounding = Callable[[torch.Tensor], torch.Tensor]


def truncated(operand: torch.Tensor) -> torch.Tensor:
    """Clear the bits of a float32 tensor that TF32 lacks, as ``tl.dot`` does; NaN and infinities stay."""
    bits = operand.contiguous().view(torch.int32)
    return ((bits >> _DROPPED_BITS) << _DROPPED_BITS).view(torch.float32)


def rounded_to_bf16(operand: torch.Tensor) -> torch.Tensor:
    """Round a float32 tensor to bfloat16 and return it in float32."""
    return operand.to(torch.bfloat16).to(torch.float32)


ROUNDINGS: dict[Tier, Rounding] = {"tf32": truncated, "half": rounded_to_bf16}


def outputs(model: Any, inputs: list[Any], tier: Tier, seed: int) -> trees.Tree | None:
    """Call ``model`` once, its products in float32 with operands rounded as a kernel of ``tier`` does.

    Args:
        model: its buffers may change.
        inputs: stay as they are.
        tier: ``tf32`` truncates operands to 10 bits of mantissa, ``half`` rounds them to bfloat16.
        seed: set before the call.

    Returns:
        None where the call makes no product, or fails in this form (too little memory, for example).
    """
    try:
        with torch.no_grad(), oracles.highest_precision(), _plain_kernels(), _Products(tier) as products:
            modules.seed_everything(seed)
            tree = trees.take_apart(model(*oracles.copied(inputs)))
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, AssertionError):
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
        # one product, and slow without these
        with _enabled(torch.backends.cudnn, True), _enabled(torch.backends.mkldnn, True):
            return func(*given, **(kwargs or {}))


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """Have attention and recurrent layers made of single products, which can be seen."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            sdpa_kernel(SDPBackend.MATH),
            _enabled(torch.backends.cudnn, False),
            _enabled(torch.backends.mkldnn, False),
        ):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


@contextlib.contextmanager
def _enabled(backend: Any, value: bool) -> Iterator[None]:
    """Switch a backend on or off within the block."""
    before = backend.enabled
    backend.enabled = value
    try:
        yield
    finally:
        backend.enabled = before
