"""Is it right on inputs of another distribution?"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity
from online_judge.checks.facts.endings import Ending

Variant = Literal["scaled", "shifted", "tied", "mixed"]


class VariantFailed(Observation):
    """A call with inputs of another distribution failed; ``mixed`` ones are those of the timing."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._try_variant"

    variant: Variant
    ending: Ending  # how it failed


def _fails(variant: Variant, evidence: str, advice: str) -> FlagKind:
    return FlagKind(f"fails_{variant}_inputs", Severity.SUSPECT, evidence, advice)


_OTHER = ("how outputs are wrong on inputs of another distribution", "do not use it on other data")
_FLAGS: dict[Variant, FlagKind] = {
    "scaled": _fails("scaled", *_OTHER),
    "shifted": _fails("shifted", *_OTHER),
    "tied": _fails("tied", *_OTHER),
    "mixed": _fails(
        "mixed",
        "how outputs are wrong on mixtures of draws of `get_inputs()`; it was timed on draws as they are",
        "use it only where inputs have the same structure, such as symmetry",
    ),
}


def _find(fact: VariantFailed) -> Iterator[Found]:
    yield _FLAGS[fact.variant].found(fact.ending)


CHECK = Check(tuple(_FLAGS.values()), (VariantFailed,), _find)
