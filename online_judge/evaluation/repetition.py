"""Equal calls of one candidate, compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adaexplore.core.verdict import Status
from online_judge.evaluation import costs, deviation, feedback
from online_judge.evaluation.dialogue import CandidateFailed, PlayerGone
from online_judge.evaluation.flags import Flag
from online_judge.evaluation.reference import Reference
from online_judge.evaluation.tiers import Limit
from online_judge.evaluation.trials import Called, Trials, WrongValues
from online_judge.orders import ForwardMode

REPEATS = 3
"""Equal calls after the first one."""
# of a kernel whose outputs are wrong: what rounding in another order does not explain
_WRONG_LIMIT = Limit(rms=1e-2, peak=float("inf"))


def repeat(trials: Trials, reference: Reference, name: str, first: Called) -> tuple[Called, list[Flag]]:
    """Make the graded call ``name`` again, several times.

    Outputs may differ from the first ones as far as the precision that these reach allows.

    Returns:
        The first repeated call, which observes launches and memory, and a flag where bits differ.

    Raises:
        CandidateFailed: ``nondeterministic`` where outputs differ by more, or what the call raises.
        ReferenceFailed, PlayerGone: as :meth:`Trials.call`.
    """
    observed: Called | None = None
    flag: list[Flag] = []
    limits = [grade.repeat_limit for grade in first.grades]
    for _ in range(REPEATS):
        mode: ForwardMode = "plain" if observed else "repeated"
        try:
            called = trials.call(name, reference.inputs(name), mode=mode, kept=True)
        except WrongValues as wrong:
            raise CandidateFailed(Status.NONDETERMINISTIC, feedback.of_repeat(wrong.metadata)) from wrong
        observed = observed or called
        _compare(called.outputs, first.outputs, limits)
        if not flag and not _same(called.outputs, first.outputs):
            largest = max(
                deviation.error(*pair).rms for pair in zip(called.outputs, first.outputs, strict=True)
            )
            evidence = f"two equal calls differ by {largest:.2g} of the output's standard deviation"
            flag = [Flag("nondeterministic", evidence)]
    assert observed is not None
    return observed, flag


def diagnosed(trials: Trials, reference: Reference, name: str, wrong: WrongValues) -> CandidateFailed:
    """Return the failure of the call ``name``, or ``nondeterministic`` where equal calls differ.

    Raises:
        ReferenceFailed: as :meth:`Trials.call`.
    """
    limits = [_WRONG_LIMIT] * len(wrong.outputs)
    for _ in range(REPEATS):
        try:
            again: Sequence[Any] = trials.call(name, reference.inputs(name), kept=True).outputs
        except WrongValues as other:
            again = other.outputs
        except (CandidateFailed, PlayerGone):
            break
        try:
            _compare(again, wrong.outputs, limits)
        except CandidateFailed as unsteady:
            return unsteady
    return wrong


def _compare(again: Sequence[Any], first: Sequence[Any], limits: Sequence[Limit]) -> None:
    """Raise ``nondeterministic`` where an output differs from its twin by more than its limit."""
    for one, other, limit in zip(again, first, limits, strict=True):
        found = deviation.error(one, other)
        if found.odd or not limit.allows(found):
            raise CandidateFailed(Status.NONDETERMINISTIC, feedback.of_unequal_calls(found, limit))


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(costs.same_bits(*pair) for pair in zip(one, other, strict=True))
