"""Facts about the end of a candidate's evaluation and of its process; imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from adaexplore.core.wire import Tf32Policy, Tier
from online_judge.checks.facts.findings import Difference, Fact, Failure
from online_judge.checks.facts.precision import Error, Graded, Limit


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended, as its supervisor reports it."""

    folder: str  # its folder, whose paths are shortened in texts
    how: str  # words that follow "the process ended"
    printed: str  # the end of its printed text
    out_of_memory: bool = False  # whether the kernel killed one of its processes for lack of host memory
    orphans: int = 0  # number of its processes that still ran after their starter had ended
    sandbox: Mapping[str, object] | None = None  # sandbox in force; None if unknown
    died: bool = False  # by a signal, or together with its supervisor


class Passed(Fact):
    """Every call returned the reference's outputs, in the requested precision."""

    kind: Literal["passed"] = "passed"


class Raised(Fact):
    """The candidate's process reported an exception; it has exited since."""

    kind: Literal["raised"] = "raised"
    failure: Failure

    @model_validator(mode="after")
    def _is_claimable(self) -> Self:
        if not self.failure.is_claimable:
            raise ValueError(f"no candidate can report {self.failure.status} in {self.failure.stage}")
        return self


class WrongForm(Fact):
    """An output has another structure, shape, dtype or device than the reference's."""

    kind: Literal["wrong_form"] = "wrong_form"
    part: Literal["structure", "shape", "dtype", "device"]  # the differing part
    expected: str  # its value for the reference
    got: str  # its value for the candidate, at most 200 characters and a mark
    output: int | None = None  # index; None if there is only one, or if the structure differs


class WrongValue(Fact):
    """Elements of an output differ from the reference's by more than the tolerance."""

    kind: Literal["wrong_value"] = "wrong_value"
    difference: Difference
    output: int | None = None  # index of the output; None if there is only one
    name: str = ""  # name of the output, if the index says too little


class OtherWeights(Fact):
    """The outputs are within the tolerance, but belong to the module's earlier weights."""

    kind: Literal["other_weights"] = "other_weights"


WrongOutputs = Annotated[WrongValue | OtherWeights, Field(discriminator="kind")]
"""Outputs of the right form whose values are wrong."""


class WrongAgain(Fact):
    """A call with the inputs of an earlier, right call gave wrong outputs."""

    kind: Literal["wrong_again"] = "wrong_again"
    wrong: WrongOutputs


class UnequalCalls(Fact):
    """Two calls with the same inputs differ by more than rounding explains."""

    kind: Literal["unequal_calls"] = "unequal_calls"
    error: Error  # difference of one output between both calls
    limit: Limit  # largest difference that rounding explains


class FarOff(Fact):
    """Outputs within a loose tolerance are wrong with other weights or inputs."""

    kind: Literal["far_off"] = "far_off"
    error: float  # in standard deviations of the output; infinite if elements are not finite


class BelowTier(Fact):
    """The outputs are within the tolerance but less precise than the tier of the request."""

    kind: Literal["below_tier"] = "below_tier"
    grade: Graded  # of the least precise output
    needed: Tier
    tf32: Tf32Policy

    @model_validator(mode="after")
    def _limit_is_known(self) -> Self:
        if self.needed not in self.grade.limits:
            raise ValueError(f"the limit of tier {self.needed} is missing")
        return self


Ending = Annotated[
    Passed | Raised | WrongForm | WrongValue | OtherWeights | WrongAgain | UnequalCalls | FarOff | BelowTier,
    Field(discriminator="kind"),
]
