"""Are the outputs of equal calls equal to the bit?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class EqualCallsDiffer(Observation):
    """Two equal calls differ in their last bits."""

    MEASURED_BY: ClassVar = "evaluator.correctness.repetition.repeat"

    rms: float  # of the difference, in standard deviations of the output


NONDETERMINISTIC = FlagKind(
    "nondeterministic",
    Severity.NOTE,
    "how far outputs of two equal calls differ, in standard deviations of the output",
    "nothing, unless runs must repeat to the bit; atomics do this",
)


def _find(fact: EqualCallsDiffer) -> Iterator[Found]:
    yield NONDETERMINISTIC.found(
        f"two equal calls differ by {fact.rms:.2g} of the output's standard deviation"
    )


CHECK = Check((NONDETERMINISTIC,), (EqualCallsDiffer,), _find)
