"""Report in a verdict the values of a candidate's tunables, and how they were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adaexplore.core.judging.parts import Tuned
from adaexplore.core.text.tunables import Tunable, Values, combination, declared_values
from adaexplore.core.verdict import INTERPRETER, Verdict
from online_judge.common.texts import clip
from online_judge.protocol.config_sweep import DECLARED, Swept
from online_judge.verdict import feedback

BREAKS_PROCESS = "it breaks the process that it runs in"
"""Reason of a configuration whose candidate process died."""
_REASONS = 3
_REASON_BYTES = 160


def with_unused_tunables(verdict: Verdict, problem: str) -> Verdict:
    line = f"TUNABLES was not used: {problem}"
    text = feedback.with_line(line, verdict.feedback)
    return verdict.model_copy(update={"feedback": text, "tuned": Tuned(problem=problem)})


def with_declared_values(verdict: Verdict, declared: Values) -> Verdict:
    """Return a verdict of a judge that times nothing and so sweeps nothing."""
    return _with(verdict, Tuned(values=declared, timing=INTERPRETER))


def with_sweep(
    verdict: Verdict,
    tunables: tuple[Tunable, ...],
    number: int,
    swept: Swept,
    seconds: float,
) -> Verdict:
    """Return the verdict on configuration ``number``; milliseconds are the sweep's."""
    reasons = Counter(swept.failed.values()).most_common(_REASONS)
    tuned = Tuned(
        **_result(tunables, number, swept),
        declared=declared_values(tunables),
        reasons={clip(reason, _REASON_BYTES): count for reason, count in reasons},
        seconds=round(seconds, 3),
        spent_s={part: round(spent_s, 3) for part, spent_s in swept.parts_s.items()},
    )
    return _with(verdict, tuned)


def with_sweeps(
    verdict: Verdict,
    tunables: tuple[Tunable, ...],
    sweeps: Mapping[str, Swept],
    seconds: float,
) -> Verdict:
    """Return the verdict on a text with the best numbers of each shape, swept by workload.

    Those of the first workload are the ``values`` of all other shapes.
    """
    total = Swept()
    for swept in sweeps.values():
        for part, spent_s in swept.parts_s.items():
            total.spend(part, spent_s)
    by_shape = tuple(
        Tuned(workload=name, shape=swept.shape, **_result(tunables, swept.ranking[0], swept))
        for name, swept in sweeps.items()
    )
    tuned = Tuned(
        values=by_shape[0].values,
        declared=declared_values(tunables),
        by_shape=by_shape,
        seconds=round(seconds, 3),
        spent_s={part: round(spent_s, 3) for part, spent_s in total.parts_s.items()},
    )
    return _with(verdict, tuned)


def _result(tunables: tuple[Tunable, ...], number: int, swept: Swept) -> dict[str, Any]:
    """Report on the choice of configuration ``number``."""
    return {
        "values": combination(tunables, number),
        "tried": len(swept.ready.keys() | swept.failed.keys()),
        "failed": len(swept.failed),
        "declared_ms": swept.ms.get(DECLARED),
        "best_ms": swept.ms.get(number),
    }


def _with(verdict: Verdict, tuned: Tuned) -> Verdict:
    return verdict.model_copy(update={"tuned": tuned})
