"""Find tensors that share memory."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def share_memory(some: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> bool:
    """Return True if one of ``some`` overlaps in memory with one of ``others``.

    To compare outputs of two calls, hold the first ones until the second call is done.
    """
    spans = [span for tensor in others if (span := _span(tensor))]
    owns = [span for tensor in some if (span := _span(tensor))]
    return any(
        start < other_end and other_start < end for start, end in owns for other_start, other_end in spans
    )


def _span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the addresses of a tensor's first byte and after its last; None if it has no memory."""
    start = int(tensor.data_ptr())
    if tensor.numel() == 0 or start == 0:
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * int(tensor.element_size())
