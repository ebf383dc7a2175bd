"""Try a candidate with other weights and, if the tolerance is loose, at other scales."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import torch

from online_judge.checks.correctness.stale_weights import StaleWeights
from online_judge.checks.facts.endings import FarOff
from online_judge.common import trees
from online_judge.common.modules import widened
from online_judge.evaluator.correctness import comparison, deviation, variants
from online_judge.evaluator.correctness.grading import Grading
from online_judge.evaluator.dialogue import CandidateFailed
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.trials import Called, Trials, WrongValues

# factors of weights and of inputs; without a loose tolerance only the first pair. Inputs only shrink: larger
# ones, such as indices, may leave the domain
_SCALES = ((1.0, 1.0), (2.0, 0.5), (0.5, 0.5))
# an error above this share of the output's standard deviation is not rounding ...
_FAR_OFF = 0.5
# ... unless operands in bfloat16 cost nearly as much
_BEYOND_HALF = 4.0


@dataclass(frozen=True)
class _Draw:
    name: str
    weights: float
    inputs: float

    @property
    def is_scaled(self) -> bool:
        return (self.weights, self.inputs) != (1.0, 1.0)


@dataclass(frozen=True)
class _Found:
    """Result of one call: wrong by the tolerance or not; the error in units of the spread if far off."""

    wrong: WrongValues | None = None
    far_off: float | None = None


@dataclass(eq=False)
class Draws:
    """Call one candidate with weights that are changed in place.

    Outputs that do not follow the weights are observed as such, and so is a candidate without a tensor for
    one that is constant: nothing shows that it counts. Where the tolerance is loose, see
    :meth:`Problem.looseness`, outputs are also compared with their spread: a candidate that is far off even
    when both sides are constructed under another seed is wrong.
    """

    _trials: Trials
    _problem: Problem
    _job_name: str  # after which draws are named
    _: KW_ONLY
    loose: bool
    loads: bool  # whether the candidate uses weights that are loaded after its construction

    def __post_init__(self) -> None:
        self._reference = self._problem.reference

    def run(self) -> list[StaleWeights]:
        """Make all draws; raise if outputs are wrong under weights that the candidate constructed itself."""
        found: list[StaleWeights] = []
        for weights, inputs in _SCALES if self.loose else _SCALES[:1]:
            name = f"{self._job_name}:weights" if weights == 1.0 else f"{self._job_name}:weights:{weights:g}"
            draw = _Draw(name, weights, inputs)
            if not (self.loads and self._reference.weights):
                self._require_right(draw)
                continue
            try:
                found += self._with_other_weights(draw)
            finally:
                self._reference.restore_weights()
        return found

    def _with_other_weights(self, draw: _Draw) -> list[StaleWeights]:
        rival = None
        if not draw.is_scaled:
            rival = self._problem.outputs_if_finite(self._inputs(draw), draw.name)
        fresh = self._reference.reweigh(draw.name, draw.weights)
        instead = self._trials.reweigh(fresh)
        if instead is not None:
            self._reference.restore_weights()
            self._require_right(draw)
            missing = self._reference.constant_weight(instead)
            return [] if missing is None else [StaleWeights(missing=missing)]
        found = self._call(draw, rival)
        if found.far_off is not None:
            # weights constructed under another seed are not stale, wherever the candidate prepares them
            weights, seed = self._reference.redraw(draw.name)
            self._trials.construct(load=True, weights=weights, seed=seed)
            self._require_right(draw)
            self._reference.restore_weights()
            self._trials.construct(load=True)
        else:
            self._reference.restore_weights()
            self._trials.reweigh(self._reference.weights)
        if found == _Found():
            return []
        return [StaleWeights(wrong=found.wrong.wrong if found.wrong else None)]

    def _require_right(self, draw: _Draw) -> None:
        """Raise where the tolerance is loose and the candidate is wrong, with weights that count for it."""
        if not self.loose:
            return
        found = self._call(draw, None)
        if found.far_off is not None:
            raise CandidateFailed(FarOff(error=found.far_off))
        if found.wrong is not None:
            raise found.wrong

    def _inputs(self, draw: _Draw) -> list[object]:
        self._trials.use_reference_time()
        return variants.shrunk(self._reference.inputs(draw.name), draw.inputs)

    def _call(self, draw: _Draw, rival: trees.Tree | None) -> _Found:
        """Call once; a draw that the reference refuses, or overflows at in another scale, shows nothing."""
        inputs = self._inputs(draw)
        usual = self._problem.outputs_if_finite(inputs, draw.name)
        if usual is None:
            return _Found()
        if draw.is_scaled and not all(bool(torch.isfinite(widened(leaf)).all()) for leaf in usual.leaves):
            return _Found()
        wrong: WrongValues | None = None
        try:
            called = self._trials.call(draw.name, inputs, rival=rival, expected=usual, kept=self.loose)
            outputs, expected = self._without_permitted(called), called.expected
        except WrongValues as failed:
            outputs, expected, wrong = failed.outputs, failed.expected, failed
        far_off = self._far_off(draw, outputs, expected) if self.loose else None
        return _Found(None if draw.is_scaled else wrong, far_off)

    def _without_permitted(self, called: Called) -> tuple[torch.Tensor, ...]:
        """Return the outputs with the wrong elements that the problem's own tolerance permits replaced."""
        tolerance, expected = self._reference.tolerance, called.expected.leaves
        if tolerance is None or not called.outputs:
            return called.outputs
        units = self._reference.units(expected)
        return tuple(
            comparison.without_permitted(got, want, tolerance, unit=unit)
            for got, want, unit in zip(called.outputs, expected, units, strict=True)
        )

    def _far_off(self, draw: _Draw, outputs: Sequence[torch.Tensor], expected: trees.Tree) -> float | None:
        """Return the largest error, in units of the spread, beyond rounding and a common factor."""
        errors = [
            deviation.error(got, want)
            for got, want in zip(outputs, expected.leaves, strict=True)
            if want.is_floating_point()
        ]
        if any(error.odd for error in errors):
            return math.inf
        if all(error.noise <= _FAR_OFF for error in errors):
            return None
        grades = Grading(self._problem, self._inputs(draw), draw.name, expected).grade(outputs)
        beyond = [
            each.error.noise
            for each in grades
            if each.tier == "legacy"
            and max(_FAR_OFF, _BEYOND_HALF * each.limits["half"].noise) < each.error.noise < math.inf
        ]
        return max(beyond, default=None)
