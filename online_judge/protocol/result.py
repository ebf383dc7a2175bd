"""An evaluator's result about one candidate: facts, never a status, a flag or a text for users."""

from typing import Literal, Self

from pydantic import Field, model_validator

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.profile import Profile
from online_judge.checks.facts.endings import Ending, Passed
from online_judge.checks.facts.findings import Fact
from online_judge.checks.facts.kernels import KernelShare, Launches
from online_judge.checks.facts.precision import Graded
from online_judge.checks.problem import ProblemFacts
from online_judge.checks.registry import AnyObservation
from online_judge.protocol.measurement import Timing


class EvaluationResult(Fact):
    kind: Literal["evaluate"] = "evaluate"
    ending: Ending  # how it ended
    trials_passed: int = 0  # correctness trials
    grades: tuple[Graded, ...] = ()  # precision of each output of the graded trials
    observations: tuple[AnyObservation, ...] = ()  # in the order of their discovery
    problem: ProblemFacts | None = None  # None if the candidate failed before
    launches: Launches = Field(default_factory=lambda: Launches({}, 0, 0))  # of one call
    share: KernelShare | None = None  # of one call, if it was profiled
    passed_without_kernels: bool | None = None  # without the candidate's kernels; None: not tried
    timing: Timing | None = None  # None unless the candidate passed and was timed
    tolerance: Tolerance | None = None  # the problem's own, which replaces the tier

    @model_validator(mode="after")
    def _timed_only_when_passed(self) -> Self:
        if self.timing is not None and not isinstance(self.ending, Passed):
            raise ValueError("only a candidate that passed has times")
        return self


class ProfileResult(Fact):
    kind: Literal["profile"] = "profile"
    ending: Ending  # ``passed`` if the candidate ran; says nothing about its outputs
    profile: Profile | None = None  # None also if the profiler does not work or saw nothing
