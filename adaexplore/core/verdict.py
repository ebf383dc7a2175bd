"""The judge's verdict on one candidate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.flags import DEGENERATE, REJECT, SUSPECT, Flag, ProblemFlag
from adaexplore.core.judging.parts import Effect, FailureText, Precision, RuntimeStats, Tuned
from adaexplore.core.judging.status import Status
from adaexplore.core.judging.workloads import WorkloadVerdict, WorstWorkload
from adaexplore.core.text.dispatch import ShapeClass
from adaexplore.core.text.tunables import Values
from adaexplore.core.wire import Tier


@dataclass(frozen=True, order=True)
class Score:
    """Order of candidates: compiled, then correct, then speedup (0 unless correct)."""

    compiled: bool
    correct: bool
    speedup: float

    def as_list(self) -> list[float]:
        """``[0|1, 0|1, speedup]``, as step logs store it."""
        return [float(self.compiled), float(self.correct), self.speedup]


NO_SCORE = Score(False, False, 0.0)
INTERPRETER = "interpreter"


class Interval(NamedTuple):
    """Confidence interval of a speedup."""

    low: float
    high: float


class Verdict(BaseModel):
    """The judge's verdict; ``core/metrics.py`` reads and writes it in the release's form.

    ``timing`` exists exactly if the candidate passed and was timed on real hardware. Under Triton's
    interpreter the verdict is ``interpreted`` and has no times. Fields that are not given are not written.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    status: Status
    hardware: str = ""
    device: str = ""
    notes: tuple[str, ...] = Field(default=(), strict=False)
    sandbox: dict[str, Any] | None = None
    tolerance: Tolerance | None = None
    tier: Tier | None = None  # precision that the output reached
    precision: Precision | None = None
    flags: tuple[Flag, ...] = ()  # of the kernel, the gravest first
    problem_flags: tuple[ProblemFlag, ...] = ()  # they say nothing about the kernel
    correctness_trials: str = ""
    failure: FailureText = FailureText()
    feedback: str = ""  # the explanation for the model, at most 1.5 KB
    lints: tuple[str, ...] = Field(default=(), strict=False)  # rules of the lints that stopped the kernel
    stdout: str = ""
    seconds: dict[str, float] = Field(default_factory=dict)  # by stage
    workloads: tuple[WorkloadVerdict, ...] = Field(default=(), strict=False)  # empty for a problem with one
    # the one that failed or is slower than the reference; hidden ones are not named
    worst_workload: WorstWorkload | None = None
    tuned: Tuned | None = None
    effects: tuple[Effect, ...] = Field(default=(), strict=False)  # given only if there are some
    unknown: dict[str, Any] = Field(default_factory=dict)  # facts of other judges, by the release's keys
    other_gpus: dict[str, Verdict] = Field(default_factory=dict)  # on the same kernel, by GPU model
    timing: RuntimeStats | None = None
    interpreted: bool = False

    @model_validator(mode="after")
    def _times_exactly_when_passed(self) -> Self:
        if self.status is not Status.PASSED and (self.timing is not None or self.interpreted):
            raise ValueError(f"a verdict of status {self.status} cannot have times")
        return self

    @model_validator(mode="after")
    def _rejected_is_not_passed(self) -> Self:
        rejected = [flag.id for flag in self.flags if flag.severity == REJECT]
        if self.correct and rejected:
            raise ValueError(f"a verdict rejected for {', '.join(rejected)} cannot have passed")
        return self

    @property
    def compiled(self) -> bool:
        """v1's ``compiled``: the module imported."""
        return self.status.module_imported

    @property
    def correct(self) -> bool:
        """Whether every check passed."""
        return self.status is Status.PASSED

    @property
    def speedup(self) -> float | None:
        """Reference time / candidate time; None if not correct, not timed, or interpreted."""
        return None if self.timing is None else self.timing.speedup

    @property
    def runtime_ms(self) -> float | None:
        """The candidate's time in milliseconds; None if not timed."""
        return None if self.timing is None else self.timing.runtime_ms

    @property
    def score(self) -> Score:
        """The score for the search; a correct candidate without a measured speedup counts as 1.0."""
        if not self.correct:
            return Score(self.compiled, False, 0.0)
        return Score(True, True, 1.0 if self.speedup is None else self.speedup)

    @property
    def tuned_values(self) -> Values | None:
        """Judged values of the candidate's tunables; None without a config sweep."""
        return None if self.tuned is None else self.tuned.values

    @property
    def tuned_by_shape(self) -> dict[ShapeClass, Values]:
        """Values of the tunables by shape class, if the sweep found several."""
        found = () if self.tuned is None else self.tuned.by_shape
        return {each.shape: each.values for each in found if each.shape and each.values is not None}

    @property
    def speedup_interval(self) -> Interval | None:
        """Confidence interval of :attr:`speedup`, if the judge gave one."""
        if self.timing is None or self.timing.speedup is None:
            return None
        low, high = self.timing.ci_low, self.timing.ci_high
        if low is None or high is None or not math.isfinite(low) or not math.isfinite(high):
            return None
        return Interval(low, high)

    @property
    def suspect_flags(self) -> tuple[Flag, ...]:
        """Flags that need a person's review before the speedup is trusted."""
        return tuple(flag for flag in self.flags if flag.severity == SUSPECT)

    @property
    def degenerate(self) -> bool:
        """Whether trivial answers pass the problem."""
        return any(flag.id == DEGENERATE for flag in self.problem_flags)

    def has_flag(self, name: str) -> bool:
        """Return whether the kernel has the flag of this id."""
        return any(flag.id == name for flag in self.flags)


def score_of(verdict: Verdict | None) -> Score:
    """Return the score for the search; a step without a verdict has the lowest."""
    return NO_SCORE if verdict is None else verdict.score
