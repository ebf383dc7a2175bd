"""Other weights, and where the tolerance is loose other scales: the candidate must be right there as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.verdict import Status
from online_judge.evaluation import deviation, feedback, trees, variants
from online_judge.evaluation.dialogue import CandidateFailed
from online_judge.evaluation.flags import Flag
from online_judge.evaluation.grading import Grading
from online_judge.evaluation.problem import Problem
from online_judge.evaluation.trials import Trials, WrongValues

# factors of weights and of inputs; the first alone where the tolerance is not loose
_SCALES = (1.0, 2.0, 0.5)
# an error of this share of the output's standard deviation is no rounding ...
_FAR_OFF = 0.5
# ... unless operands in bfloat16 cost nearly as much
_BEYOND_HALF = 4.0


@dataclass(frozen=True)
class _Draw:
    """Names a draw; ``scale`` is the factor of weights and inputs."""

    name: str
    scale: float


@dataclass(frozen=True)
class _Found:
    """What one call shows: wrong by the tolerance; if far off, the error (rms) in units of the spread."""

    wrong: WrongValues | None
    far_off: float | None


class Draws:
    """Calls one candidate with weights that are changed in place.

    Outputs that do not follow the weights are the flag ``stale_weights``. Where the tolerance is loose, see
    :meth:`Problem.looseness`, outputs are also compared with their spread: a candidate that is far off when
    it is constructed with these weights is wrong.
    """

    def __init__(self, trials: Trials, problem: Problem, job: str, *, loose: bool, loads: bool) -> None:
        """Prepare.

        Args:
            trials: with the candidate.
            problem: whose weights and inputs are drawn.
            job: names the draws.
            loose: whether the tolerance says little.
            loads: whether the candidate uses weights that are loaded after its construction.
        """
        self._trials = trials
        self._problem = problem
        self._reference = problem.reference
        self._job = job
        self._loose = loose
        self._loads = loads and bool(problem.reference.weights)

    def run(self) -> list[Flag]:
        """Make all draws.

        Raises:
            CandidateFailed: an output is far off, or what a call raises.
            ReferenceFailed, PlayerGone: as :meth:`Trials.call`.
        """
        flags: list[Flag] = []
        for scale in _SCALES if self._loose else _SCALES[:1]:
            draw = _Draw(f"{self._job}:weights" if scale == 1.0 else f"{self._job}:weights:{scale:g}", scale)
            if not self._loads:
                self._require_near(draw)
                continue
            try:
                flags += self._with_other_weights(draw)
            finally:
                self._reference.restore_weights()
        return flags

    def _with_other_weights(self, draw: _Draw) -> list[Flag]:
        rival = self._problem.outputs_if_finite(self._inputs(draw), draw.name)
        fresh = self._reference.reweigh(draw.name, draw.scale)
        if not self._trials.reweigh(fresh):
            self._reference.restore_weights()
            self._require_near(draw)
            return []
        found = self._call(draw, rival)
        if found.wrong is None and found.far_off is None:
            self._restore()
            return []
        if found.far_off is not None:  # constructed with these weights, it can have no stale ones
            self._trials.construct(load=True, weights=fresh)
            self._require_near(draw)
            self._reference.restore_weights()
            self._trials.construct(load=True)
        else:
            self._restore()
        text = "outputs do not follow weights that are changed in place"
        return [Flag("stale_weights", feedback.first_line(found.wrong.metadata) if found.wrong else text)]

    def _restore(self) -> None:
        self._reference.restore_weights()
        self._trials.reweigh(self._reference.weights)

    def _require_near(self, draw: _Draw) -> None:
        """Raise where the tolerance is loose and the candidate is far off."""
        if not self._loose:
            return
        found = self._call(draw, None)
        if found.far_off is not None:
            raise CandidateFailed(Status.WRONG_VALUE, feedback.of_far_off(found.far_off, draw.scale))

    def _inputs(self, draw: _Draw) -> list[Any]:
        return variants.scaled(self._reference.inputs(draw.name), draw.scale)

    def _call(self, draw: _Draw, rival: trees.Tree | None) -> _Found:
        wrong: WrongValues | None = None
        try:
            called = self._trials.call(draw.name, self._inputs(draw), rival=rival, kept=self._loose)
            outputs, expected = called.outputs, called.expected
        except WrongValues as failed:
            outputs, expected, wrong = failed.outputs, failed.expected, failed
        far_off = self._far_off(draw, outputs, expected) if self._loose else None
        return _Found(wrong if draw.scale == 1.0 else None, far_off)

    def _far_off(self, draw: _Draw, outputs: Sequence[Any], expected: trees.Tree) -> float | None:
        """The largest error (rms) in units of the spread where no rounding explains it."""
        largest = max(
            deviation.error(got, want).rms for got, want in zip(outputs, expected.leaves, strict=True)
        )
        if not _FAR_OFF < largest < float("inf"):
            return None
        grades = Grading(self._problem, self._inputs(draw), draw.name, expected).grade(outputs)
        beyond = [
            each.error.rms
            for each in grades
            if each.tier == "legacy"
            and each.error.rms > max(_FAR_OFF, _BEYOND_HALF * each.limits["half"].rms)
        ]
        return max(beyond, default=None)
