"""A scripted candidate of one linear layer, for references with a layer ``linear``."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.evaluator.trials import Trials
from online_judge.protocol.orders import Construct, Forward, Reweigh
from online_judge.protocol.shared_tensors import MappedTensors

from .scripted import scripted

FAILED = b'{"failed": {"kind": "RuntimeError", "message": "by hand"}}'
Compute = Callable[[Any, Any, Any], Any]


def relu(x: Any, weight: Any, bias: Any) -> Any:
    return torch.relu(torch.nn.functional.linear(x, weight, bias))


@dataclass
class Candidate:
    """Answers orders as an honest candidate process that computes ``compute(x, weight, bias)``.

    Attributes:
        compute: a test may change it at any time.
        follows: whether it takes over weights that are changed in place.
        shapes: of its own weights if they have other names than the reference's; else None.
        fails_at: number of the call that raises.
        calls: made so far.
        orders: in the order in which they came.
        told: whose time it was, in order.
    """

    compute: Compute = relu
    follows: bool = True
    shapes: list[list[int]] | None = None
    fails_at: int = 0
    calls: int = 0
    orders: list[str] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, order: Any, fds: list[int]) -> list[bytes]:
        self.orders.append(type(order).__name__)
        if isinstance(order, Construct | Reweigh):
            with MappedTensors(order.weights, fds) as sent:
                if self.follows or isinstance(order, Construct):
                    self.weights = {name: value.clone() for name, value in sent.tree().items()}
            if self.shapes is not None:
                return [json.dumps({"loaded": False, "shapes": self.shapes}).encode()]
            return [b'{"loaded": true, "changed": true}']
        assert isinstance(order, Forward)
        self.calls += 1
        if self.calls == self.fails_at:
            return [FAILED]
        with MappedTensors(order.inputs, fds[:1]) as inputs, MappedTensors(order.outputs, fds[1:]) as outputs:
            (x,), (place,) = inputs.leaves, outputs.leaves
            place.copy_(self.compute(x, self.weights["linear.weight"], self.weights["linear.bias"]))
            leaf = [list(place.shape), str(place.dtype), "cpu", list(place.stride())]
        return [json.dumps({"structure": "T", "leaves": [leaf]}).encode()]


@contextmanager
def trials_with(candidate: Candidate, source: str) -> Iterator[tuple[Trials, Problem]]:
    """Give trials with a candidate that is constructed and has the problem's weights."""
    problem = Problem(Reference(source, Seeds(b"key"), "fp32", cuda=False))
    with scripted(candidate) as held:
        candidate.told = held.clock
        tolerance = problem.reference.tolerance or 0.05
        made = Trials(held.dialogue, problem, tolerance, nullcontext)
        try:
            made.construct(load=True)
            candidate.orders.clear()
            yield made, problem
        finally:
            made.free()
