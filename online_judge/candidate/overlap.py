"""Whether tensors share memory that should be apart."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def aliases(outputs: Iterable[torch.Tensor], inputs: Iterable[torch.Tensor]) -> bool:
    """Whether an output lies, in whole or in part, in the memory of an input."""
    return _overlap(outputs, inputs)


def reused(first_outputs: Iterable[torch.Tensor], second_outputs: Iterable[torch.Tensor]) -> bool:
    """Whether two calls gave results in the same memory; the first ones must still be held."""
    return _overlap(first_outputs, second_outputs)


def _overlap(some: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> bool:
    ranges = [span for tensor in others if (span := _span(tensor))]
    return any(
        own[0] < other[1] and other[0] < own[1]
        for tensor in some
        if (own := _span(tensor))
        for other in ranges
    )


def _span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Addresses from the first byte of a tensor's elements to behind the last; None where it has none."""
    if tensor.numel() == 0:
        return None
    start = int(tensor.data_ptr())
    if start == 0:  # a tensor without data
        return None
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * int(tensor.element_size())
