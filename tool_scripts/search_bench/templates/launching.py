"""Starts the templates' kernels, for real or compiled only; makes the slips that concern the launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tool_scripts.search_bench.templates.space import SLIP_AXIS, Value

_GUARD = 1 << 20  # numbers behind every buffer, so that a dropped mask hurts its own candidate only


def guarded(shape: Sequence[int], device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An uninitialised tensor with room behind it."""
    size = 1
    for extent in shape:
        size *= extent
    return torch.empty(size + _GUARD, device=device, dtype=dtype)[:size].view(*shape)


class Launcher:
    """Starts kernels for one candidate; with ``compile_only`` nothing runs and meta tensors do."""

    def __init__(
        self, choices: Mapping[str, Value], *, compile_only: bool = False, poison: bool = False
    ) -> None:
        self.choices = choices
        self.slip = str(choices[SLIP_AXIS])
        self.compile_only = compile_only
        self.poison = poison

    @property
    def masked(self) -> bool:
        """Whether loads and stores are masked."""
        return self.slip != "no_mask"

    def block(self, size: int) -> int:
        """The block that the candidate takes where ``size`` is right."""
        if self.slip == "odd_block":
            return max(3, size * 3 // 4)
        return max(1, size // 2) if self.slip == "half_block" else size

    def empty(self, *shape: int, like: torch.Tensor) -> torch.Tensor:
        """A buffer to write; filled with NaN when the result is to be checked."""
        buffer = guarded(shape, like.device, like.dtype)
        return buffer.fill_(float("nan")) if self.poison else buffer

    def __call__(
        self, kernel: Any, grid: tuple[int, ...], *args: Any, stages: int = 3, **constants: Any
    ) -> None:
        """Start ``kernel``; warps come from the choices."""
        warps = {"odd_warps": 3, "many_warps": 64}.get(self.slip, int(self.choices["WARPS"]))
        if self.slip == "short_grid":
            grid = ((grid[0] + 1) // 2, *grid[1:])
        if self.slip == "unknown_keyword":
            constants["VECTOR"] = 4
        options = {"num_warps": warps, "num_stages": stages, **constants}
        if self.compile_only:
            kernel.warmup(*args, grid=grid, **options)
        else:
            kernel[grid](*args, **options)
