"""Do results on a problem mean anything?"""

from collections.abc import Iterator
from typing import ClassVar

from adaexplore.core.judging.flags import DEGENERATE
from online_judge.checks.check import Check, CheckFact, FlagKind, Found


class ProblemFacts(CheckFact):
    """Facts that make results on a problem say little."""

    MEASURED_BY: ClassVar = "evaluator.problem.Problem.facts"

    trivial_answers: tuple[str, ...] = ()  # names of trivial answers that would pass
    constant_inputs: bool = False  # whether ``get_inputs`` gives the same values under every seed
    empty: bool = False  # whether no output has an element
    tolerance: float | None  # of the request; None if the problem has its own
    looseness: float | None = None  # a loose tolerance in standard deviations of the output
    unwritten: float | None = None  # share of the outputs that the reference never writes, if it is left out


TRIVIAL_WORKLOAD = FlagKind(
    "trivial_workload",
    None,
    "the first workload on which trivial answers pass; they do not pass on all",
    "none: the score leaves it out",
)
"""Of several workloads: it replaces the next one where other workloads are sound."""
DEGENERATE_PROBLEM = FlagKind(
    DEGENERATE,
    None,
    "trivial answers that pass: `constant`, `zeros`, `mean`, `first-row`, `input`",
    "leave the problem out of comparisons; its speedups say little",
)
CONSTANT_INPUTS = FlagKind(
    "constant_inputs",
    None,
    "`get_inputs()` gives the same values under every seed",
    "a replayed result goes unseen: read the kernel",
)
LOOSE_TOLERANCE = FlagKind(
    "loose_tolerance",
    None,
    "the tolerance in standard deviations of the output (over a tenth)",
    "read `tier`: passing alone says little",
)
UNWRITTEN_OUTPUTS = FlagKind(
    "unwritten_outputs",
    None,
    "share of the outputs that the reference never writes; these elements are compared nowhere",
    "leave these elements of the result alone",
)


def _find(fact: ProblemFacts) -> Iterator[Found]:
    if fact.trivial_answers:
        yield DEGENERATE_PROBLEM.found(f"trivial answers pass: {', '.join(fact.trivial_answers)}")
    if fact.constant_inputs:
        yield CONSTANT_INPUTS.found("get_inputs() gives the same values under every seed")
    if fact.looseness is not None:
        which = "problem's TOLERANCE" if fact.tolerance is None else f"tolerance {fact.tolerance:g}"
        times = f"{fact.looseness:.2g} standard deviations of the output"
        yield LOOSE_TOLERANCE.found(f"the {which} is {times}")
    if fact.unwritten is not None:
        yield UNWRITTEN_OUTPUTS.found(
            f"the reference never writes {fact.unwritten:.2%} of its outputs, which are not compared"
        )


CHECK = Check(
    (TRIVIAL_WORKLOAD, DEGENERATE_PROBLEM, CONSTANT_INPUTS, LOOSE_TOLERANCE, UNWRITTEN_OUTPUTS),
    (ProblemFacts,),
    _find,
)
