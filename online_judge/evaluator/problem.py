"""A reference and what was found out about it, kept between the candidates for one problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from adaexplore.core.wire import BaselineKind, EvaluationRequest
from online_judge.common import trees
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.correctness import degeneracy
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.reference import Reference, ReferenceFailed
from online_judge.evaluator.timing import setup
from online_judge.protocol.findings import Stage
from online_judge.protocol.result import ProblemFacts

_TRIAL = "facts"
_LOOSE = 0.1
_CONSTANT = 1e-7
_SAMPLE = 2**22


class Problem:
    """What all matches on one reference share; each fact is found when it is first asked for."""

    def __init__(self, reference: Reference) -> None:
        """Of a loaded reference."""
        self.reference = reference
        self._clean_ms: dict[tuple[str, str], float] = {}
        self._degenerate: dict[float, list[str]] = {}
        self._constant_inputs: bool | None = None
        self._spreads: list[tuple[float, float]] | None = None
        self._cost: Cost | None = None

    @property
    def cost(self) -> Cost:
        """Bytes and operations of one call."""
        if self._cost is None:
            self._cost = self.reference.cost(self.reference.inputs(_TRIAL))
        return self._cost

    def outputs_if_finite(self, inputs: list[Any], name: str) -> trees.Tree | None:
        """The reference's outputs on copies of inputs that it may refuse; None where it does."""
        try:
            return self.reference.outputs(
                [trees.map_leaves(value, lambda leaf: leaf.clone()) for value in inputs], name
            )
        except ReferenceFailed:
            return None

    def looseness(self, tolerance: float) -> float:
        """Return the tolerance of a typical element in standard deviations of the output; the loosest's.

        Raises:
            ReferenceFailed: the reference raises.
        """
        if self._spreads is None:
            leaves = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL).leaves
            self._spreads = [_middle_and_spread(leaf) for leaf in leaves if leaf.is_floating_point()]
        return max(
            (tolerance * (1.0 + middle) / spread for middle, spread in self._spreads if spread), default=0.0
        )

    def facts(self, tolerance: float) -> ProblemFacts:
        """What makes results on this problem say little at this tolerance."""
        if tolerance not in self._degenerate:
            self._degenerate[tolerance] = degeneracy.check(self.reference, tolerance)
        if self._constant_inputs is None:
            self._constant_inputs = degeneracy.constant_inputs(self.reference)
        return ProblemFacts(
            trivial_answers=tuple(self._degenerate[tolerance]),
            constant_inputs=self._constant_inputs,
            tolerance=tolerance,
            looseness=self.looseness(tolerance) if self.is_loose(tolerance) else None,
        )

    def is_loose(self, tolerance: float) -> bool:
        """Return whether a tolerance says little: it exceeds a tenth of an output's standard deviation."""
        return self.looseness(tolerance) > _LOOSE

    def timed_call(self, kind: BaselineKind) -> Callable[..., Any]:
        """What runs as the baseline.

        Raises:
            ReferenceFailed: it cannot be compiled.
        """
        return self.reference.call(kind, self.reference.inputs(_TRIAL))

    def clean_ms(self, request: EvaluationRequest) -> float | None:
        """The baseline's time with nobody else around, where it was measured."""
        return self._clean_ms.get((request.tf32, request.baseline))

    def know_clean(self, request: EvaluationRequest, ms: float) -> None:
        """Take over what another evaluator of the device has measured."""
        self._clean_ms[request.tf32, request.baseline] = ms

    def measure_clean(
        self,
        request: EvaluationRequest,
        lock: Any,
        stopwatch: Callable[[], Stopwatch],
        clock: Callable[[str, str], None],
    ) -> None:
        """Measure :meth:`clean_ms` once, before any candidate of this problem is loaded.

        Raises:
            ReferenceFailed: the reference fails.
        """
        key = (request.tf32, request.baseline)
        if self.clean_ms(request) is not None:
            return
        clock("none", "")
        with lock.hold(exclusive=False):
            clock("reference", Stage.TIMING.value)
            call = self.timed_call(request.baseline)
            tree = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL)
            expected = [torch.empty(leaf.shape, dtype=leaf.dtype, device="meta") for leaf in tree.leaves]
            del tree
        clock("none", "")
        with lock.timing_memory(), lock.hold(exclusive=True):
            clock("reference", Stage.TIMING.value)
            self._clean_ms[key] = setup.clean_ms(self.reference, call, stopwatch(), expected)


def _middle_and_spread(leaf: Any) -> tuple[float, float]:
    """Median size and standard deviation of the finite elements; of a constant output the size itself."""
    flat = leaf.reshape(-1)
    if flat.numel() > _SAMPLE:
        generator = torch.Generator(device=flat.device).manual_seed(0)
        flat = flat[torch.randint(flat.numel(), (_SAMPLE,), generator=generator, device=flat.device)]
    some = flat[torch.isfinite(flat)].double()
    if not some.numel():
        return 0.0, 0.0
    middle, spread = float(some.abs().median()), float(some.std(unbiased=False))
    return middle, spread if spread > _CONSTANT * middle else middle
