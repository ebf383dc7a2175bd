"""A reference and what was found out about it, kept between the candidates for one problem."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import torch

from adaexplore.core.wire import BaselineKind, EvaluationRequest
from online_judge.common import trees
from online_judge.evaluator.correctness import comparison, degeneracy, oracles, variants
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.reference import Reference, ReferenceFailed
from online_judge.protocol.result import ProblemFacts

_TRIAL = "facts"
_LOOSE = 0.1
_CONSTANT = 1e-7
_SAMPLE = 2**22


class Problem:
    """What all jobs on one reference share; each fact is found when it is first asked for.

    A method that runs the reference raises :class:`ReferenceFailed` where that fails.
    """

    def __init__(self, reference: Reference) -> None:
        """Find nothing yet."""
        self.reference = reference
        self._clean_ms: dict[tuple[str, str], float] = {}
        self._trivial_answers = cache(partial(degeneracy.check, reference))

    @cached_property
    def cost(self) -> Cost:
        """Bytes and operations of one call."""
        return self.reference.cost(self.reference.inputs(_TRIAL))

    @cached_property
    def _constant_inputs(self) -> bool:
        return degeneracy.constant_inputs(self.reference)

    @cached_property
    def _spreads(self) -> list[tuple[float, float]]:
        leaves = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL).leaves
        return [_middle_and_spread(leaf) for leaf in leaves if leaf.is_floating_point()]

    def outputs_if_finite(self, inputs: list[Any], name: str) -> trees.Tree | None:
        """Return the reference's outputs on copies of inputs that it may refuse; None where it does."""
        try:
            return self.reference.outputs(oracles.copied(inputs), name)
        except ReferenceFailed:
            return None

    def is_steady(self, inputs: list[Any], name: str, outputs: trees.Tree, tolerance: float) -> bool:
        """Say whether ``outputs`` stay within a tolerance when ``inputs`` are rounded as TF32 rounds.

        Where they do not, a wrong output may be lower precision, magnified by a steep function, and says
        nothing about a candidate. Half of the tolerance is left to rounding within the reference.
        """
        rounded = [trees.map_leaves(value, variants.rounded) for value in inputs]
        found = self.reference.outputs(rounded, name)
        return all(
            comparison.equals(one, other, 0.5 * tolerance)
            for one, other in zip(found.leaves, outputs.leaves, strict=True)
        )

    def looseness(self, tolerance: float) -> float:
        """Return the tolerance of a typical element in standard deviations of the output; the loosest's."""
        return max(
            (tolerance * (1.0 + middle) / spread for middle, spread in self._spreads if spread), default=0.0
        )

    def is_loose(self, tolerance: float) -> bool:
        """Return whether a tolerance says little: it exceeds a tenth of an output's standard deviation."""
        return self.looseness(tolerance) > _LOOSE

    def facts(self, tolerance: float) -> ProblemFacts:
        """Return what makes results on this problem say little at this tolerance."""
        return ProblemFacts(
            trivial_answers=tuple(self._trivial_answers(tolerance)),
            constant_inputs=self._constant_inputs,
            tolerance=tolerance,
            looseness=self.looseness(tolerance) if self.is_loose(tolerance) else None,
        )

    def timed_call(self, kind: BaselineKind) -> Callable[..., Any]:
        """Return what runs as the baseline."""
        return self.reference.call(kind, self.reference.inputs(_TRIAL))

    def clean_ms(self, request: EvaluationRequest) -> float | None:
        """Return the baseline's time with nobody else around, where it was measured."""
        return self._clean_ms.get((request.tf32, request.baseline))

    def know_clean(self, request: EvaluationRequest, ms: float) -> None:
        """Take over what was measured, perhaps by another evaluator of the device."""
        self._clean_ms[request.tf32, request.baseline] = ms


def _middle_and_spread(leaf: torch.Tensor) -> tuple[float, float]:
    """Return median size and standard deviation of finite elements; of a constant output the size twice."""
    flat = leaf.reshape(-1)
    if flat.numel() > _SAMPLE:
        generator = torch.Generator(device=flat.device).manual_seed(0)
        flat = flat[torch.randint(flat.numel(), (_SAMPLE,), generator=generator, device=flat.device)]
    some = flat[torch.isfinite(flat)].double()
    if not some.numel():
        return 0.0, 0.0
    middle, spread = float(some.abs().median()), float(some.std(unbiased=False))
    return middle, spread if spread > _CONSTANT * middle else middle
