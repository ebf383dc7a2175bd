"""Problems that a trivial answer solves, whose speedups therefore say little."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from online_judge.common import trees
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.reference import Reference

_TRIAL = "degeneracy"
_OTHER = "degeneracy, other inputs"


def check(reference: Reference, tolerance: float) -> list[str]:
    """Return trivial answers that would pass ``|got - want| <= tolerance + tolerance * |want|``.

    These are ``constant`` (the answer to other inputs), ``zeros``, ``mean`` (each output filled with the mean
    of the answer to other inputs), ``first-row`` (each output repeats its first row), ``input`` (an input as
    it is). All outputs must pass; empty for a sound problem.
    """
    inputs = reference.inputs(_TRIAL)
    given = [leaf.clone() for leaf in costs.leaves_of(inputs)]
    wanted = reference.outputs(inputs, _TRIAL).leaves
    del inputs
    other = reference.outputs(reference.inputs(_OTHER), _TRIAL).leaves
    answers: dict[str, Callable[[int, torch.Tensor], Sequence[torch.Tensor]]] = {
        "constant": lambda index, want: other[index : index + 1],
        "zeros": lambda index, want: [torch.zeros((), dtype=want.dtype, device=want.device)],
        "mean": lambda index, want: [_typical(leaf) for leaf in other[index : index + 1]],
        "first-row": lambda index, want: _first_row(want),
        "input": lambda index, want: given,
    }
    return [
        name
        for name, of in answers.items()
        if all(
            any(_passes(answer, want, tolerance) for answer in of(index, want))
            for index, want in enumerate(wanted)
        )
    ]


def constant_inputs(reference: Reference) -> bool:
    """Say whether ``get_inputs`` gives the same contents under different seeds."""
    first, second = (trees.take_apart(reference.inputs(trial)) for trial in (_TRIAL, _OTHER))
    return first.signature() == second.signature() and all(
        one.shape == other.shape and comparison.equals(one, other, 0.0)
        for one, other in zip(first.leaves, second.leaves, strict=True)
    )


def _passes(answer: torch.Tensor, want: torch.Tensor, tolerance: float) -> bool:
    fits = answer.dtype == want.dtype and (answer.dim() == 0 or answer.shape == want.shape)
    return bool(fits) and comparison.equals(answer, want, tolerance)


def _typical(leaf: torch.Tensor) -> torch.Tensor:
    """Return the mean of the finite elements in the output's dtype; the first element of whole numbers."""
    if not leaf.is_floating_point():
        return leaf.reshape(-1)[0] if leaf.numel() else leaf.new_zeros(())
    finite = torch.isfinite(leaf)
    total = torch.where(finite, leaf, 0.0).sum(dtype=torch.float64)
    return (total / finite.sum().clamp(min=1)).to(leaf.dtype)


def _first_row(want: torch.Tensor) -> list[torch.Tensor]:
    return [want[:1].expand_as(want)] if want.dim() > 1 and want.shape[0] > 1 else []
