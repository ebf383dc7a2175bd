"""Compare equal calls of one candidate with each other."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from online_judge.checks.correctness.equal_calls import EqualCallsDiffer
from online_judge.checks.facts.endings import UnequalCalls, WrongAgain
from online_judge.checks.facts.precision import Error, Limit
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import deviation
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone
from online_judge.evaluator.trials import Called, Trials, WrongValues
from online_judge.protocol.orders import ForwardMode

REPEATS = 3
"""Equal calls after the first one."""
# for a kernel with wrong outputs: more than rounding in another order explains
_WRONG_LIMIT = Limit(rms=1e-2, peak=float("inf"))


def repeat(trials: Trials, name: str, first: Called) -> tuple[Called, EqualCallsDiffer | None]:
    """Make the graded call ``name`` again, several times.

    Outputs may differ from the first ones as far as the precision of these allows, else CandidateFailed is
    raised. Return the first repeated call, and whether bits differ.
    """
    repeated = first
    largest: float | None = None
    limits = [grade.repeat_limit for grade in first.grades]
    units = [grade.error for grade in first.grades]
    for number in range(REPEATS):
        mode: ForwardMode = "plain" if number else "repeated"
        try:
            called = trials.call(name, mode=mode, kept=True, expected=first.expected)
        except WrongValues as wrong:
            raise CandidateFailed(WrongAgain(wrong=wrong.wrong)) from wrong
        if not number:
            repeated = replace(called, changed=None, outputs=())
        found = _compare(called.outputs, first.outputs, limits, units)
        if largest is None and not _same(called.outputs, first.outputs):
            largest = max(each.rms for each in found)
        del called  # its outputs
    return repeated, None if largest is None else EqualCallsDiffer(rms=largest)


def diagnosed(trials: Trials, name: str, wrong: WrongValues) -> CandidateFailed:
    """Return the failure of the call ``name``, or a failure because equal calls differ."""
    limits = [_WRONG_LIMIT] * len(wrong.outputs)
    units = [deviation.error(leaf, leaf) for leaf in wrong.expected.leaves]
    for _ in range(REPEATS):
        try:
            again = trials.call(name, kept=True, expected=wrong.expected).outputs
        except WrongValues as other:
            again = other.outputs
        except (CandidateFailed, CandidateGone):
            break
        try:
            _compare(again, wrong.outputs, limits, units)
        except CandidateFailed as unsteady:
            return unsteady
    return wrong


def _compare(
    again: Sequence[torch.Tensor],
    first: Sequence[torch.Tensor],
    limits: Sequence[Limit],
    units: Sequence[Error],
) -> list[Error]:
    """Return how far outputs differ from those of the first call; raise if that exceeds a limit.

    ``units`` hold the spread of each expected output; the spread of the first call may be mere rounding.
    """
    found = []
    for one, other, limit, unit in zip(again, first, limits, units, strict=True):
        error = deviation.error(one, other).in_units_of(unit)
        if error.odd or not limit.allows(error):
            raise CandidateFailed(UnequalCalls(error=error, limit=limit))
        found.append(error)
    return found


def _same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return all(costs.same_bits(*pair) for pair in zip(one, other, strict=True))
