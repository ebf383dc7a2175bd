"""Are the outputs as precise as the arithmetic of the task?"""

from collections.abc import Iterator
from typing import ClassVar

from adaexplore.core.wire import Tier
from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class LowerPrecision(Observation):
    """The outputs are less precise than the arithmetic of the task."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._require_tier"

    reached: Tier
    expected: Tier


LOW_PRECISION = FlagKind(
    "low_precision",
    Severity.SUSPECT,
    "the tier reached and that of the task: `strict`, or `tf32` for fp32 unless `tf32: off`",
    "compare only with kernels of the same tier",
)


def _find(fact: LowerPrecision) -> Iterator[Found]:
    yield LOW_PRECISION.found(f"reaches {fact.reached}, the task's is {fact.expected}")


CHECK = Check((LOW_PRECISION,), (LowerPrecision,), _find)
