"""Do outputs follow weights that are changed in place, or loaded after construction?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity
from online_judge.checks.facts.endings import WrongOutputs


class StaleWeights(Observation):
    """Outputs do not follow weights that are changed in place, or nothing shows that they do."""

    MEASURED_BY: ClassVar = "evaluator.correctness.draws.Draws._with_other_weights"

    missing: str | None = None  # a constant weight of the reference for which the candidate has no place
    wrong: WrongOutputs | None = None  # how the outputs were wrong; None where the tolerance hides it


class LoadedWeightsUnused(Observation):
    """Weights that are loaded after construction make the outputs wrong."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._check"


STALE_WEIGHTS = FlagKind(
    "stale_weights",
    Severity.SUSPECT,
    "how outputs are wrong once weights are changed in place, or loaded after construction; or which "
    "constant weight cannot be loaded",
    "do not use it where weights change",
)


def _find(fact: StaleWeights | LoadedWeightsUnused) -> Iterator[Found]:
    if isinstance(fact, LoadedWeightsUnused):
        yield STALE_WEIGHTS.found(
            "weights loaded after construction are not used: loading them makes the output wrong"
        )
    elif fact.missing is not None:
        yield STALE_WEIGHTS.found(
            f"weights cannot be loaded: nothing shows that {fact.missing}, a constant, is used"
        )
    else:
        yield STALE_WEIGHTS.found(fact.wrong or "outputs do not follow weights that are changed in place")


CHECK = Check[StaleWeights | LoadedWeightsUnused](
    (STALE_WEIGHTS,), (StaleWeights, LoadedWeightsUnused), _find
)
