"""The judge's verdict on one candidate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeGuard, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adaexplore.core.judging.flags import (
    BASELINE_UNCONFIRMED,
    DEGENERATE,
    REJECT,
    SUSPECT,
    Flag,
    ProblemFlag,
    read_flags,
)
from adaexplore.core.judging.status import Status
from adaexplore.core.judging.workloads import WorkloadVerdict, WorstWorkload, read_workloads, read_worst
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
_OTHER_GPUS = "other_gpus"


class Interval(NamedTuple):
    """Confidence interval of a speedup."""

    low: float
    high: float


class Verdict(BaseModel):
    """The judge's verdict, in the form of the wire and of ``step_k_metrics.json``.

    ``runtime_ms`` (mean, milliseconds) and ``runtime_stats`` exist exactly if the candidate
    passed and was timed on real hardware; under the interpreter ``runtime_stats`` is
    ``{"fast_p": 1.0, "timing": "interpreter"}``, which is no measurement. ``metadata`` may hold ``tier``,
    ``tuned``, ``integrity`` and ``problem_flags`` (ids), ``integrity_evidence``, ``problem_flags_evidence``,
    ``workloads``, ``worst_workload``, ``sandbox`` and ``other_gpus`` (metrics by GPU model);
    ``runtime_stats`` may hold ``gpu_ms``, ``e2e_ms``, ``ci_low``, ``ci_high``, ``median``,
    ``p10``, ``p90``, ``baseline``, ``slot``, ``clocks`` and ``stopped_early`` (true if the judge stopped
    timing because the candidate is clearly slower than the request's ``best_so_far``).
    """

    model_config = ConfigDict(frozen=True)

    status: Status
    metadata: dict[str, Any] = Field(default_factory=dict)
    runtime_ms: float | None = None
    runtime_stats: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _times_exactly_when_passed(self) -> Self:
        if self.status is not Status.PASSED and (self.runtime_ms is not None or self.runtime_stats):
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
        if not self.correct or self.runtime_stats.get("timing") == INTERPRETER:
            return None
        value = self.runtime_stats.get("fast_p")
        return None if value is None else float(value)

    @property
    def score(self) -> Score:
        """The score for the search; a correct candidate without a measured speedup counts as 1.0."""
        if not self.correct:
            return Score(self.compiled, False, 0.0)
        return Score(True, True, 1.0 if self.speedup is None else self.speedup)

    @property
    def feedback(self) -> str:
        """The explanation for the model (at most 1.5 KB); empty if there is none."""
        return str(self.metadata.get("feedback", ""))

    @property
    def tuned(self) -> Values | None:
        """Judged values of the candidate's tunables; None without a config sweep."""
        found = self.metadata.get("tuned")
        return _values(found.get("values")) if isinstance(found, Mapping) else None

    @property
    def tuned_by_shape(self) -> dict[ShapeClass, Values]:
        """Values of the tunables by shape class, if the sweep found several."""
        found = self.metadata.get("tuned")
        listed = found.get("by_shape") if isinstance(found, Mapping) else None
        table: dict[ShapeClass, Values] = {}
        for entry in listed if isinstance(listed, list) else ():
            if not isinstance(entry, Mapping):
                continue
            shape, values = entry.get("shape"), _values(entry.get("values"))
            if values is not None and isinstance(shape, list) and all(type(size) is int for size in shape):
                table[tuple(shape)] = values
        return table

    @property
    def speedup_interval(self) -> Interval | None:
        """Confidence interval of :attr:`speedup`, if the judge gave one."""
        low, high = self.runtime_stats.get("ci_low"), self.runtime_stats.get("ci_high")
        if self.speedup is None or not _is_number(low) or not _is_number(high):
            return None
        return Interval(float(low), float(high))

    @property
    def tier(self) -> Tier | None:
        """The precision that the output reached, if the judge states it."""
        return next((tier for tier in get_args(Tier) if tier == self.metadata.get("tier")), None)

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Flags of the kernel, the gravest first."""
        return read_flags(self.metadata).kernel

    @property
    def suspect_flags(self) -> tuple[Flag, ...]:
        """Flags that need a person's review before the speedup is trusted."""
        return tuple(flag for flag in self.flags if flag.severity == SUSPECT)

    @property
    def problem_flags(self) -> tuple[ProblemFlag, ...]:
        """Flags of the problem; they say nothing about the kernel."""
        return read_flags(self.metadata).problem

    @property
    def degenerate(self) -> bool:
        """Whether trivial answers pass the problem."""
        return any(flag.id == DEGENERATE for flag in self.problem_flags)

    @property
    def baseline_unconfirmed(self) -> bool:
        """Whether the reference could not be timed without a candidate."""
        return any(flag.id == BASELINE_UNCONFIRMED for flag in self.flags)

    @property
    def other_gpus(self) -> dict[str, Verdict]:
        """Verdicts on the same kernel by other GPU models of the run, by model."""
        found = self.metadata.get(_OTHER_GPUS)
        return {model: Verdict.from_metrics(told) for model, told in found.items()} if found else {}

    def with_other_gpus(self, others: Mapping[str, Verdict]) -> Verdict:
        told = {model: verdict.to_metrics() for model, verdict in others.items()}
        return self.model_copy(update={"metadata": {**self.metadata, _OTHER_GPUS: told}})

    @property
    def workloads(self) -> tuple[WorkloadVerdict, ...]:
        """Results by workload; empty for a problem with one."""
        return read_workloads(self.metadata)

    @property
    def worst_workload(self) -> WorstWorkload | None:
        """The workload that failed or is slower than the reference; hidden ones are not named."""
        return read_worst(self.metadata)

    def to_metrics(self) -> dict[str, Any]:
        """Return the five keys of ``step_k_metrics.json``, in the release's order (runtime in ms)."""
        return {
            "compiled": self.compiled,
            "correctness": self.correct,
            "metadata": {"status": self.status.value, **self.metadata},
            "runtime": -1.0 if self.runtime_ms is None else self.runtime_ms,
            "runtime_stats": self.runtime_stats,
        }

    @classmethod
    def from_metrics(cls, data: dict[str, Any]) -> Verdict:
        """Read a verdict from a v1 response or a metrics file, including those of the release.

        Args:
            data: a mapping with compiled, correctness, metadata, runtime, runtime_stats.

        Raises:
            KeyError, TypeError, ValueError: ``data`` is not of that shape.
        """
        compiled, correct = bool(data["compiled"]), bool(data["correctness"])
        metadata = dict(data.get("metadata") or {})
        named = metadata.pop("status", None)
        status = Status(named) if named else _status_of_release(compiled, correct, metadata)
        for told in dict(metadata.get(_OTHER_GPUS) or {}).values():
            cls.from_metrics(told)
        if status is not Status.PASSED:
            return cls(status=status, metadata=metadata)
        runtime = float(data.get("runtime", -1.0))
        stats = dict(data.get("runtime_stats") or {})
        if not isinstance(stats.get("fast_p"), int | float | None):
            raise TypeError("fast_p is not a number")
        return cls(
            status=status,
            metadata=metadata,
            runtime_ms=runtime if runtime > 0 else None,
            runtime_stats=stats,
        )


def score_of(verdict: Verdict | None) -> Score:
    """Return the score for the search; a step without a verdict has the lowest."""
    return NO_SCORE if verdict is None else verdict.score


def _values(found: object) -> Values | None:
    if not isinstance(found, Mapping):
        return None
    return {str(name): value for name, value in found.items() if isinstance(value, bool | int | float | str)}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _status_of_release(compiled: bool, correct: bool, metadata: dict[str, Any]) -> Status:
    """Return the status of a verdict of the release, which states none."""
    if correct:
        return Status.PASSED
    if not compiled:
        return Status.LOAD
    if "max_difference" in metadata:
        return Status.WRONG_VALUE
    name = str(metadata.get("runtime_error_name", ""))
    if "correctness_issue_name" in metadata:
        return Status.WRONG_SHAPE
    if "CompilationError" in name or "UnsupportedLanguageConstruct" in name:
        return Status.COMPILE
    if "OutOfMemory" in name:
        return Status.OUT_OF_MEMORY
    return Status.LAUNCH
