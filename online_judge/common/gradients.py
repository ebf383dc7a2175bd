"""Calls that run forward and backward, the same code for reference and candidate."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from adaexplore.core.dialects.arguments import Call, named
from adaexplore.core.wire import Direction
from online_judge.common import modules, trees


def calling(model: Call, direction: Direction, names: Sequence[str] = (), *, candidate: bool = False) -> Call:
    """Return the callable for this direction: ``model`` itself, or its forward and backward passes.

    The last inputs are keyword arguments of these ``names``.
    """
    if direction == "forward":
        return named(model, names)
    return ForwardBackward(model, names, candidate=candidate)


class ForwardBackward:
    """Takes a model's inputs and upstream gradients; returns its outputs and gradients.

    The last argument is a list with a gradient for each tensor of the outputs, None for one that has no
    gradient. The result is a tuple: the outputs, a list with the gradient of each floating tensor of the
    inputs, and a dict with the gradient of each parameter. A tensor on which no output depends has the
    gradient zero. Outputs whose shapes differ from the upstream gradients are an error; for a ``candidate``,
    whose outputs are compared later, all gradients are zero instead. No graph outlives the call, and ``grad``
    of tensors is untouched.
    """

    def __init__(self, model: Call, names: Sequence[str] = (), *, candidate: bool = False) -> None:
        self._call = named(model, names)
        self._candidate = candidate
        parameters = model.named_parameters() if isinstance(model, torch.nn.Module) else ()
        self._parameters = {name: held for name, held in parameters if held.requires_grad}
        self.between: Callable[[], object] | None = None  # called when forward has returned

    def __call__(self, *given: Any) -> tuple[Any, list[torch.Tensor], dict[str, torch.Tensor]]:
        *inputs, upstream = given
        with torch.enable_grad():
            inputs, sources = _watched(inputs)
            outputs = trees.take_apart(self._call(*inputs))
            if self.between is not None:
                self.between()
            fit = _fit(outputs.leaves, upstream)
            if not (fit or self._candidate):
                raise RuntimeError(
                    "forward() returns outputs of other shapes on another call; for gradients, make them "
                    "depend on the shapes of the inputs alone"
                )
            pairs = _pairs(outputs.leaves, upstream) if fit else []
            found = torch.autograd.grad(
                [leaf for leaf, _ in pairs],
                [*sources, *self._parameters.values()],
                [gradient for _, gradient in pairs],
                materialize_grads=True,
            )
        # a sum's gradient is the upstream gradient itself, which would look like an output that aliases an
        # input
        theirs = {gradient.untyped_storage().data_ptr() for _, gradient in pairs}
        found = tuple(each.clone() if each.untyped_storage().data_ptr() in theirs else each for each in found)
        plain = trees.put_together(outputs.shape, tuple(leaf.detach() for leaf in outputs.leaves))
        of_parameters = dict(zip(self._parameters, found[len(sources) :], strict=True))
        return plain, list(found[: len(sources)]), of_parameters


def forms(model: Call, inputs: list[Any], names: Sequence[str] = ()) -> list[torch.Tensor | None]:
    """Return a tensor without data for each output that has a gradient, else None."""
    with torch.enable_grad():
        leaves = trees.take_apart(named(model, names)(*_watched(inputs)[0])).leaves
    return [torch.empty_like(leaf, device="meta") if leaf.requires_grad else None for leaf in leaves]


def names(result: trees.Tree) -> list[str]:
    """Name each tensor of a result of :class:`ForwardBackward`."""
    assert isinstance(result.shape, tuple)
    _, of_inputs, of_parameters = result.shape
    gradients = [
        *(f"the gradient of floating input {index}" for index in range(len(of_inputs))),
        *(f"the gradient of parameter {name}" for name in sorted(of_parameters)),
    ]
    return [f"output {index}" for index in range(len(result.leaves) - len(gradients))] + gradients


def _watched(inputs: list[Any]) -> tuple[list[Any], list[torch.Tensor]]:
    """Return the inputs, floating ones as tensors of the same memory that require a gradient, and these."""
    sources: list[torch.Tensor] = []

    def watch(leaf: torch.Tensor) -> torch.Tensor:
        if not leaf.is_floating_point() or modules.is_float8(leaf):  # float8 has no gradients
            return leaf
        sources.append(leaf.detach().requires_grad_())
        return sources[-1].view_as(leaf)  # torch's flop counter accepts no leaves of a graph

    return [trees.map_leaves(value, watch) for value in inputs], sources


def _fit(leaves: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor | None]) -> bool:
    """Return True if outputs have the shapes of their upstream gradients; autograd casts dtypes."""
    return len(leaves) == len(upstream) and all(
        gradient is None or (leaf.shape, leaf.device) == (gradient.shape, gradient.device)
        for leaf, gradient in zip(leaves, upstream, strict=True)
    )


def _pairs(
    leaves: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor | None]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the pairs of output and upstream gradient."""
    pairs = []
    for index, (leaf, gradient) in enumerate(zip(leaves, upstream, strict=True)):
        if gradient is None:
            continue
        if not leaf.requires_grad:
            raise RuntimeError(
                f"output {index} of forward() has no gradient: compute it with operations of torch or with a "
                "torch.autograd.Function that has a backward, not under torch.no_grad()"
            )
        pairs.append((leaf, gradient))
    return pairs
