"""Reading what an environment returned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from adaexplore.core.errors import ConfigError
from adaexplore.core.verdict import Score
from tool_scripts.search_bench.environment import Outcome

MISSING = object()
NAMES = {
    "speedup": ("speedup", "fast_p", "measured", "measured_speedup"),
    "correct": ("correct", "correctness"),
    "true_speedup": ("true_speedup", "true", "true_value", "hidden", "truth"),
}


def outcome_of(raw: Any) -> Outcome:
    """What ``raw``, returned by ``small`` or ``large``, says.

    An :class:`Outcome`; an object or mapping with its fields (``score`` may hold them, ``fast_p`` is
    speedup); a (compiled, correct, speedup) triple; a speedup; None for a failure.

    Raises:
        ConfigError: nothing of that.
    """
    if isinstance(raw, Outcome):
        return raw
    if raw is None:
        return Outcome(True, False)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return _checked(raw, True, raw > 0, raw)
    nested = _field(raw, ("score",))
    if nested is not MISSING and _field(raw, NAMES["speedup"]) is MISSING:
        inner = outcome_of(nested)
        true = _field(raw, NAMES["true_speedup"])
        return _checked(
            raw, inner.compiled, inner.correct, inner.speedup, inner.speedup if true is MISSING else true
        )
    if (
        isinstance(raw, Sequence)
        and not isinstance(raw, str)
        and len(raw) == 3
        and not hasattr(raw, "_fields")
    ):
        return _checked(raw, raw[0], raw[1], raw[2])
    speedup, correct = _field(raw, NAMES["speedup"]), _field(raw, NAMES["correct"])
    if speedup is MISSING and correct is MISSING:
        raise ConfigError(f"the environment returned {str(raw)[:80]!r}: give compiled, correct and speedup")
    value = 0.0 if speedup in (MISSING, None) else _number(speedup)
    right = value > 0 if correct is MISSING else bool(correct)
    compiled = _field(raw, ("compiled",))
    true = _field(raw, NAMES["true_speedup"])
    return _checked(
        raw, right if compiled is MISSING else compiled, right, value, None if true is MISSING else true
    )


def score_of(outcome: Outcome) -> Score:
    """What the policy is told."""
    if not outcome.correct:
        return Score(outcome.compiled, False, 0.0)
    return Score(True, True, outcome.speedup)


def _checked(raw: Any, compiled: Any, correct: Any, speedup: Any, true: Any = None) -> Outcome:
    value = _number(speedup) if correct else 0.0
    if correct and not (math.isfinite(value) and value > 0):
        raise ConfigError(
            f"the environment returned a correct candidate of speedup {value}: give one above 0"
        )
    return Outcome(
        bool(compiled) or bool(correct),
        bool(correct),
        value,
        None if true is None else _number(true),
        state=raw,
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(
            f"the environment returned the speedup {str(value)[:80]!r}: give a number"
        ) from None


def _field(raw: Any, names: Sequence[str]) -> Any:
    for name in names:
        if isinstance(raw, Mapping) and name in raw:
            return raw[name]
        if not isinstance(raw, Mapping) and hasattr(raw, name):
            return getattr(raw, name)
    return MISSING
