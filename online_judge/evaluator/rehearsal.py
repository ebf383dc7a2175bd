"""Evaluate a candidate that is always right before an evaluator gets its first order.

PyTorch loads each of its CUDA kernels when a process first calls it. For all kernels of an evaluation this
takes about 0.7 s (H200); without a rehearsal the first candidate of a new reference would wait for it.
"""

from collections.abc import Sequence
from typing import Any

import torch

from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import EvaluationRequest
from online_judge.common import modules, trees
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.dialogue import Dialogue
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.leases import Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.protocol.messages import Job, Lease
from online_judge.protocol.orders import Forward, Order, Reweigh
from online_judge.protocol.result import EvaluationResult
from online_judge.protocol.shared_tensors import SharedTensors
from online_judge.sandbox.process_spec import ProcessSpec

_REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""
_CANDIDATE = "import torch\n"
_ERROR = 3e-4
"""A relative error like that of TF32 operands, so that all tiers are graded."""


class _RightCandidate(Dialogue):
    """Answers all orders itself; nobody's time runs."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self.clock = lambda whose, stage: None

    def ask(
        self,
        stage: Stage,
        order: Order[Any],
        shared_tensors: Sequence[SharedTensors] = (),
        *,
        tuning: bool = False,
    ) -> Any:
        if isinstance(order, Reweigh):
            return {"loaded": True}
        if not isinstance(order, Forward):
            return {}
        sent, received = shared_tensors
        given = tuple(sent.view(place) for place in order.inputs.places)
        call = self._reference.call("eager")
        with torch.no_grad():
            tree = trees.take_apart(call(*trees.put_together(order.inputs.shape, given)))
        for leaf, place in zip(tree.leaves, order.outputs.places, strict=False):
            received.view(place).copy_(leaf * (1 + _ERROR))
        return {"structure": tree.signature(), "leaves": tree.forms()}


class _FreeDevice(Leases):
    """A device without leases."""

    def __init__(self) -> None:
        self._synchronise = lambda: None  # nobody else is to use it next

    def _take(self, lease: Lease) -> float:
        return 0.0

    def _return(self) -> None:
        pass


def rehearse(spec: ProcessSpec) -> EvaluationResult:
    """Judge a candidate that gives the outputs of a small reference, without timing it."""
    request = EvaluationRequest(
        original_model_src=_REFERENCE, custom_model_src=_CANDIDATE, num_correct_trials=1
    )
    with modules.torch_defaults():
        modules.apply_precision(request.tf32)
        reference = Reference(_REFERENCE, Seeds(b"rehearsal"), "fp32", cuda=spec.device == "cuda")
        job = Job(op="evaluate", request=request, seeds="", alone=False, hardware="")
        dialogue, problem = _RightCandidate(reference), Problem(reference)
        evaluation = Evaluation(dialogue, problem, job, spec, _FreeDevice(), Stopwatch)
        try:
            return evaluation.run()
        finally:
            evaluation.free()
