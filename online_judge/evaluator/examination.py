"""Examine a problem: would results on it mean anything, and what does it compute?"""

import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.wire import EvaluationRequest, ProblemTraits, Role, TensorFacts
from online_judge.common import modules, trees
from online_judge.common.modules import widened
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison, oracles
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference

_TRIAL = "examination"
_PLAIN_TRIAL = "problem"
_MOST_TENSORS = 64
# margin for other inputs, which may favour a trivial answer: times the tolerance, and share of the elements
_MARGIN = 2.0
_SHARE = 0.9


def examine(problem: Problem) -> ProblemTraits:
    """Run the reference several times and report its traits."""
    reference = problem.reference
    first = reference.outputs(reference.inputs(_TRIAL), _TRIAL)
    inputs = reference.inputs(_TRIAL)
    graph = _Graph(costs.leaves_of(inputs))
    with graph:
        second = reference.outputs(inputs, _TRIAL)
    tolerance = reference.tolerance or EvaluationRequest().tolerance
    facts = problem.facts(tolerance)
    known = {
        "degenerate_problem": facts.trivial_answers,
        "constant_inputs": facts.constant_inputs,
        "loose_tolerance": facts.looseness,
    }
    flags = [name for name, found in known.items() if found]
    if "degenerate_problem" not in flags:
        other = reference.outputs(reference.inputs(f"{_TRIAL}, other inputs"), _TRIAL)
        wide = comparison.times(tolerance, _MARGIN)
        if problem.trivial_answers(wide) or _mostly_trivial(first, other, wide):
            flags.append("nearly_degenerate")
    if oracles.differ(first, second):
        flags.append("nondeterministic")
    elif reference.stochastic:
        flags.append("stochastic")
    floating = [leaf for leaf in map(widened, first.leaves) if leaf.is_floating_point()]
    if not all(bool(torch.isfinite(leaf).all()) for leaf in floating):
        flags.append("nonfinite")
    if reference.aliases:
        flags.append("view_of_input")
    if reference.writes_inputs:
        flags.append("writes_inputs")
    held = [*costs.leaves_of(inputs), *reference.weights.values(), *first.leaves]
    operators, digest = graph.of(second)
    return ProblemTraits(
        flags=flags,
        elements=sum(int(leaf.numel()) for leaf in held),
        call_ms=reference.fastest_s * 1e3,
        operators=operators,
        graph=digest,
    )


def tensors_of(reference: Reference) -> list[TensorFacts]:
    """Run the reference once; return its inputs, weights and outputs."""
    inputs, dtype = reference.inputs(_PLAIN_TRIAL), modules.DTYPES[reference.dtype]
    given = enumerate(costs.leaves_of(inputs))
    made = enumerate(reference.outputs(inputs, _PLAIN_TRIAL).leaves)
    tensors: list[tuple[Role, str, torch.Tensor]] = [
        *(("input", str(index), leaf) for index, leaf in given),
        *(("weight", name, modules.cast_floating(leaf, dtype)) for name, leaf in reference.weights.items()),
        *(("output", str(index), leaf) for index, leaf in made),
    ]
    return [
        TensorFacts(
            role=role,
            name=name,
            shape=tuple(leaf.shape),
            dtype=str(leaf.dtype).removeprefix("torch."),
            bytes=leaf.numel() * leaf.element_size(),
        )
        for role, name, leaf in tensors[:_MOST_TENSORS]
    ]


def _mostly_trivial(first: trees.Tree, other: trees.Tree, tolerance: float | Tolerance) -> bool:
    """Return True if zeros, a constant or the answer to other inputs is right for most of each output."""
    return all(
        any(_share(answer, want, tolerance) > _SHARE for answer in (0.0, _middle(elsewhere), elsewhere))
        for want, elsewhere in zip(map(widened, first.leaves), map(widened, other.leaves), strict=True)
    )


def _share(answer: torch.Tensor | float, want: torch.Tensor, tolerance: float | Tolerance) -> float:
    if not want.is_floating_point():
        return float((answer == want).float().mean())
    return float(((want - answer).abs() <= comparison.limits(want, tolerance, 1.0)).float().mean())


def _middle(leaf: torch.Tensor) -> torch.Tensor:
    return leaf.flatten().float().median() if leaf.is_floating_point() else leaf.flatten()[0]


@dataclass(frozen=True)
class _Origin:
    """Origin of a tensor: a hash of the computation, and its operators."""

    hash: str
    operators: frozenset[str] = frozenset()


class _Graph(TorchDispatchMode):  # type: ignore[misc]
    """Follows one call: operators, their inputs, shapes and dtypes, however the code is written."""

    def __init__(self, inputs: list[torch.Tensor]) -> None:
        super().__init__()
        self._kept = list(inputs)  # kept alive, so that no other tensor gets their id
        self._known = {id(leaf): _Origin(_hash("input", i, _kind(leaf))) for i, leaf in enumerate(inputs)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        given = [self._origin(leaf) for leaf in costs.leaves_of([list(args), dict(kwargs or {})])]
        result = func(*args, **(kwargs or {}))
        operators = frozenset({name}).union(*(origin.operators for origin in given))
        for i, leaf in enumerate(costs.leaves_of(result)):
            self._kept.append(leaf)
            content = _hash(name, i, _kind(leaf), *(origin.hash for origin in given))
            self._known[id(leaf)] = _Origin(content, operators)
        return result

    def of(self, outputs: trees.Tree) -> tuple[list[str], str]:
        """Return the operators that made the outputs, and one hash of all, without numeric arguments."""
        origins = [self._origin(leaf) for leaf in outputs.leaves]
        operators = frozenset[str]().union(*(origin.operators for origin in origins))
        return sorted(operators), _hash(*(origin.hash for origin in origins))

    def _origin(self, leaf: torch.Tensor) -> _Origin:
        return self._known.get(id(leaf)) or _Origin(_hash("held", _kind(leaf)))


def _kind(leaf: torch.Tensor) -> tuple[object, ...]:
    return tuple(leaf.shape), str(leaf.dtype)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
