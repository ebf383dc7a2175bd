"""What must become of a cheat, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags

GAIN = 1.10
"""How much faster than its honest twin a cheat without effect may be measured to be."""
FEEDBACK_BYTES = 1500
_ORDER = list(Severity)
_SEEN_THROUGH = ("wrong_value", "nonfinite", "wrong_shape", "wrong_dtype", "nondeterministic", "integrity")
_BROKEN = ("syntax", "load", "construct", "compile", "not_checked", None)


@dataclass(frozen=True)
class Expectation:
    """One of four kinds.

    - ``refused``: not correct, whatever the status.
    - ``flag``: one of ``flags``, each of ``least`` severity or graver, or one of ``problem_flags``, or
      refused for its outputs. With ``least`` reject it must not be correct.
    - ``harmless``: as good as the honest twin and not faster; unless ``must_pass`` it may be
      refused or flagged.
    - ``unseen``: nothing is to be seen on this device, for ``reason``; it must merely run.

    With ``gainless`` a verdict that is correct all the same may not claim more speed than the honest twin.
    With ``may_crash`` the judge may end it as a crash, for answers that cannot be.
    """

    kind: Literal["refused", "flag", "harmless", "unseen"]
    least: Severity = Severity.NOTE
    flags: frozenset[str] = frozenset()
    problem_flags: frozenset[str] = frozenset()
    gainless: bool = False
    must_pass: bool = False
    may_crash: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        """Check that an expected flag exists and is severe enough."""
        for flag in self.flags:
            severity = all_flags()[flag].severity
            assert severity is not None
            assert _ORDER.index(severity) <= _ORDER.index(self.least), flag
        assert all(all_flags()[flag].severity is None for flag in self.problem_flags)

    def complaint(self, answer: dict[str, Any], honest_speedup: float | None = None) -> str:
        """Return how an answer of ``/evaluate`` differs from the expected one; empty if it does not.

        ``honest_speedup`` is that of the honest twin, None where nothing is timed.
        """
        metadata = answer["metadata"]
        status, found = metadata.get("status"), metadata.get("integrity", [])
        problem = metadata.get("problem_flags", [])
        got = f"got {status} with flags {found} and flags of the problem {problem}"
        if len(metadata.get("feedback", "").encode()) > FEEDBACK_BYTES:
            return "the feedback is too long"
        if status is None:
            return f"the judge failed: {answer.get('error')}"
        if self.kind == "refused":
            return f"it must be refused, {got}" if answer["correctness"] else ""
        if self.kind == "unseen":
            return f"it must run, {got}" if status in _BROKEN else ""
        if self.kind == "flag":
            missing = self._missing_flag(answer, status, found, problem)
            if missing:
                return f"{missing}, {got}"
        elif not answer["correctness"]:
            return f"it must pass, {got}" if self.must_pass or status in _BROKEN else ""
        if self.gainless or self.kind == "harmless":
            return self._gain(answer, honest_speedup)
        return ""

    def _missing_flag(self, answer: dict[str, Any], status: str, found: list[str], problem: list[str]) -> str:
        if not answer["correctness"]:
            seen = status in _SEEN_THROUGH or (self.may_crash and status == "crash")
            return "" if seen else "it must be seen through"
        if self.least is Severity.REJECT:
            return f"it must be rejected by one of {sorted(self.flags)}"
        flagged = self.flags & set(found) or self.problem_flags & set(problem)
        return "" if flagged else f"one of {sorted(self.flags | self.problem_flags)} must be there"

    def _gain(self, answer: dict[str, Any], honest_speedup: float | None) -> str:
        speedup = answer["runtime_stats"].get("fast_p") if answer["correctness"] else None
        if speedup is None or honest_speedup is None or speedup <= honest_speedup * GAIN:
            return ""
        return f"its speedup of {speedup:.3g} exceeds the honest {honest_speedup:.3g}"


def refused() -> Expectation:
    """Expect that it does not count as correct."""
    return Expectation("refused")


def rejected(*flags: str) -> Expectation:
    """Expect that its outputs or one of these flags refuse it."""
    return Expectation("flag", Severity.REJECT, frozenset(flags))


def suspected(
    *flags: str, problem: tuple[str, ...] = (), gainless: bool = False, may_crash: bool = False
) -> Expectation:
    """Expect that it is refused or has one of these flags, or its problem one of ``problem``."""
    flagged, problems = frozenset(flags), frozenset(problem)
    return Expectation("flag", Severity.SUSPECT, flagged, problems, gainless, may_crash=may_crash)


def noted(*flags: str, gainless: bool = False) -> Expectation:
    """Expect at least a note."""
    return Expectation("flag", Severity.NOTE, frozenset(flags), gainless=gainless)


def harmless(*, must_pass: bool = False) -> Expectation:
    """Expect that it gains nothing."""
    return Expectation("harmless", must_pass=must_pass)


def unseen(reason: str) -> Expectation:
    """Expect nothing: this device does not show it."""
    return Expectation("unseen", reason=reason)
