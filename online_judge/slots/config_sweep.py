"""Candidates whose numbers the judge chooses: a sweep, then the ordinary evaluation of its winner."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping

from adaexplore.core.tunables import (
    Tunable,
    TunablesError,
    combination,
    declared_values,
    read_tunables,
    with_values,
)
from adaexplore.core.verdict import INTERPRETER, Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.slots.device_slot import DeviceSlot
from online_judge.verdict import feedback

_PROCESSES = 3
_LEAST_S = 1.0


def evaluate_tuned(
    slot: DeviceSlot, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
) -> Verdict:
    """Judge a candidate with the best values of its tunables that a sweep of ``request.tune_s`` finds.

    The text that is judged is the candidate's with these values in it, and ``metadata["tuned"]`` names them.
    If it does not pass, the candidate is judged as declared. One whose outputs are wrong as declared is not
    swept, unless the evaluation finds them right: its own weights may be what is wanted.
    """
    source = request.custom_model_src
    try:
        tunables = read_tunables(source)
    except TunablesError as error:
        return _with_note(slot.evaluate(request, recorded_ms, cancelled), str(error))
    if not tunables or not request.measure_performance:
        return slot.evaluate(request, recorded_ms, cancelled)
    declared = declared_values(tunables)
    if not slot.executes:
        verdict = slot.evaluate(request, recorded_ms, cancelled)
        return _with(verdict, {"values": declared, "timing": INTERPRETER})
    begin = time.monotonic()
    outcome = _sweep(slot, request, cancelled, screened=True)
    seconds = time.monotonic() - begin
    if outcome.wrong:
        verdict = slot.evaluate(request, recorded_ms, cancelled)
        if not verdict.correct:
            outcome.failed[DECLARED] = verdict.status.value
            return _with(verdict, _account(tunables, DECLARED, outcome, seconds))
        begin = time.monotonic()
        outcome = _sweep(slot, request, cancelled, screened=False, parts_s=outcome.parts_s)
        seconds += time.monotonic() - begin
    best = outcome.ranking[0] if outcome.ranking else DECLARED
    chosen = request.model_copy(update={"custom_model_src": with_values(source, combination(tunables, best))})
    verdict = slot.evaluate(chosen, recorded_ms, cancelled)
    if not verdict.correct:
        outcome.failed.setdefault(best, verdict.status.value)
        if best != DECLARED:
            best = DECLARED
            verdict = slot.evaluate(request, recorded_ms, cancelled)
    return _with(verdict, _account(tunables, best, outcome, seconds))


def _sweep(
    slot: DeviceSlot,
    request: EvaluationRequest,
    cancelled: threading.Event,
    *,
    screened: bool,
    parts_s: Mapping[str, float] | None = None,
) -> Swept:
    """Sweep, with another candidate process if a configuration has broken the last one.

    ``parts_s`` has the seconds of the budget that were spent before.
    """
    total = Swept(parts_s=dict(parts_s or {}))
    careful = False
    for _ in range(_PROCESSES):
        budget_s = request.tune_s - total.spent_s
        if budget_s < _LEAST_S:
            break
        terms = SweepTerms(budget_s, tuple(total.failed), careful, screened and not total.ready)
        swept = slot.sweep(request, terms, cancelled)
        if swept is None:
            break
        for part, spent_s in swept.parts_s.items():
            total.spend(part, spent_s)
        total.failed |= swept.failed
        total.ready |= swept.ready
        total.ms |= swept.ms
        total.wrong = swept.wrong
        if swept.ranking or not total.ranking:
            total.ranking = swept.ranking
        if swept.finished or not swept.suspects:
            break
        if len(swept.suspects) == 1:
            total.failed[swept.suspects[0]] = "it breaks the process that it runs in"
        careful = True
    total.ranking = [number for number in total.ranking if number not in total.failed]
    return total


def _account(tunables: tuple[Tunable, ...], number: int, outcome: Swept, seconds: float) -> dict[str, object]:
    """Return what a verdict reports of its sweep; milliseconds are those of the sweep."""
    reasons = Counter(outcome.failed.values()).most_common(3)
    return {
        "values": combination(tunables, number),
        "declared": declared_values(tunables),
        "tried": len(outcome.ready.keys() | outcome.failed.keys()),
        "failed": len(outcome.failed),
        "reasons": {feedback.clip(reason, 160): count for reason, count in reasons},
        "declared_ms": outcome.ms.get(DECLARED),
        "best_ms": outcome.ms.get(number),
        "seconds": round(seconds, 3),
        "spent_s": {part: round(spent_s, 3) for part, spent_s in outcome.parts_s.items()},
    }


def _with(verdict: Verdict, tuned: dict[str, object]) -> Verdict:
    return verdict.model_copy(update={"metadata": verdict.metadata | {"tuned": tuned}})


def _with_note(verdict: Verdict, problem: str) -> Verdict:
    """Return a verdict on a candidate whose ``TUNABLES`` cannot be used."""
    text = feedback.with_unused_tunables(str(verdict.metadata.get("feedback", "")), problem)
    return verdict.model_copy(
        update={"metadata": verdict.metadata | {"feedback": text, "tuned": {"problem": problem}}}
    )
