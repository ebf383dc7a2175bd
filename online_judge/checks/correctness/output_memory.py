"""Do outputs have memory of their own?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class OutputAliasesInput(Observation):
    """An output shares memory with an input; the reference's outputs do not."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._repeat"


class OutputReused(Observation):
    """Two calls gave outputs in the same memory."""

    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._repeat"


OUTPUT_ALIASES_INPUT = FlagKind(
    "output_aliases_input",
    Severity.SUSPECT,
    "an output shares memory with an input, and no output of the reference does",
    "copy the output before the input changes",
)
OUTPUT_REUSED = FlagKind(
    "output_reused",
    Severity.SUSPECT,
    "two calls returned the same memory while both results were held",
    "copy each output before the next call",
)


def _find(fact: OutputAliasesInput | OutputReused) -> Iterator[Found]:
    if isinstance(fact, OutputReused):
        yield OUTPUT_REUSED.found("two calls gave outputs in the same memory")
    else:
        yield OUTPUT_ALIASES_INPUT.found("an output lies in the memory of an input")


CHECK = Check[OutputAliasesInput | OutputReused](
    (OUTPUT_ALIASES_INPUT, OUTPUT_REUSED), (OutputAliasesInput, OutputReused), _find
)
