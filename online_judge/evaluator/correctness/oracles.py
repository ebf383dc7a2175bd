"""A module in higher precision than its own."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch

from online_judge.common import modules, trees
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import deviation
from online_judge.evaluator.correctness.tiers import OracleKind

REFUSALS = (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, AssertionError)
"""What a module raises that does not work in another precision than its own, which is no failure."""
_DTYPES: dict[OracleKind, torch.dtype] = {"fp64": torch.float64, "fp32": torch.float32}
_MATMUL = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
# beside weights and inputs, in units of these and the outputs: what a forward call holds on its way
_WORKING_SPACE = 3
# two runs that differ by more than this share of the spread were drawn differently, not rounded
_DRAWN = 1e-3


def run(
    model: torch.nn.Module, inputs: list[Any], kind: OracleKind, seed: int, *, cuda: bool
) -> trees.Tree | None:
    """Call a copy of ``model`` on copies of ``inputs``, both in the precision of ``kind``.

    None where it refuses that precision, or memory does not suffice.
    """
    dtype = _DTYPES[kind]
    if cuda and not _fits(model, inputs, dtype):
        return None
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        with torch.no_grad(), highest_precision():
            wide = _widened(copy.deepcopy(model), dtype)
            given = [
                trees.map_leaves(value, lambda leaf: modules.cast_floating(leaf, dtype))
                for value in copied(inputs)
            ]
            modules.seed_everything(seed)
            tree = trees.take_apart(wide(*given))
            if cuda:
                torch.cuda.synchronize()
    except REFUSALS:
        return None
    finally:
        torch.set_default_dtype(before)
        if cuda:
            torch.cuda.empty_cache()
    return tree


def copied(inputs: list[Any]) -> list[Any]:
    """Return the same inputs in memory of their own."""
    return [trees.map_leaves(value, lambda leaf: leaf.detach().clone()) for value in inputs]


def differ(first: trees.Tree, second: trees.Tree) -> bool:
    """Say whether two runs of one module on one input differ by more than rounding."""
    if first.signature() != second.signature():
        return True
    for one, other in zip(first.leaves, second.leaves, strict=True):
        if one.shape != other.shape:
            return True
        found = deviation.error(one, other)
        if found.odd or found.rms > _DRAWN:
            return True
    return False


@contextlib.contextmanager
def highest_precision() -> Iterator[None]:
    """Allow no TF32 and no reduced-precision sums within."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = {name: getattr(matmul, name) for name in _MATMUL}
    convolutions = cudnn.allow_tf32
    try:
        for name in _MATMUL:
            setattr(matmul, name, False)
        cudnn.allow_tf32 = False
        yield
    finally:
        for name, value in before.items():
            setattr(matmul, name, value)
        cudnn.allow_tf32 = convolutions


@contextlib.contextmanager
def tf32_allowed() -> Iterator[None]:
    """Allow TF32 in matrix products and convolutions within."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def _widened(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Return ``model`` in ``dtype``, with the plain tensors that its modules hold as attributes."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, modules.cast_floating(value, dtype))
    return model.to(dtype)


def _fits(model: torch.nn.Module, inputs: list[Any], dtype: torch.dtype) -> bool:
    """Say whether the GPU has memory for a widened copy and its intermediate results."""
    held = [*model.parameters(), *model.buffers(), *costs.leaves_of(inputs)]
    need = sum(
        int(leaf.numel()) * int(dtype.itemsize if leaf.is_floating_point() else leaf.element_size())
        for leaf in held
    )
    torch.cuda.empty_cache()
    return need * (1 + _WORKING_SPACE) <= int(torch.cuda.mem_get_info()[0])
