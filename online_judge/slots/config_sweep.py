"""Evaluate a candidate with tunables: sweep its configurations, then evaluate the fastest one."""

import threading
import time
from collections.abc import Mapping, Sequence

from adaexplore.core.text.dispatch import can_dispatch, with_dispatch, without_dispatch
from adaexplore.core.text.tunables import (
    Tunable,
    TunablesError,
    combination,
    declared_values,
    read_tunables,
    with_values,
)
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, Workload
from online_judge.protocol.config_sweep import DECLARED, SweepTerms, Swept
from online_judge.slots.device_slot import DeviceSlot
from online_judge.verdict import tuning

_PROCESSES = 3
_LEAST_S = 1.0
_SHARE_S = 3.0
"""Least budget of a sweep on one workload among several."""


def evaluate_tuned(
    slot: DeviceSlot, request: EvaluationRequest, recorded_ms: float | None, cancelled: threading.Event
) -> Verdict:
    """Judge a candidate with the best values of its tunables found in a sweep of ``request.tune_s``.

    The judged text is the candidate's with these values, and ``metadata["tuned"]`` names them.
    If it does not pass, the candidate is judged as declared. If the declared configuration is wrong in the
    sweep, the candidate is evaluated first and swept only if it passes: it may need its own weights.
    """
    source = without_dispatch(request.custom_model_src)  # from an earlier sweep; this one writes its own
    try:
        tunables = read_tunables(source)
    except TunablesError as error:
        return tuning.with_unused_tunables(slot.evaluate(request, recorded_ms, cancelled), str(error))
    if not tunables or not request.measure_performance:
        return slot.evaluate(request, recorded_ms, cancelled)
    request = request.model_copy(update={"custom_model_src": source})
    if not slot.executes:
        verdict = slot.evaluate(request, recorded_ms, cancelled)
        return tuning.with_declared_values(verdict, declared_values(tunables))
    if "get_workloads" in request.original_model_src and can_dispatch(source, tunables):
        shown = _shown_workloads(slot, request, cancelled)
        if len(shown) > 1:
            tuned = _evaluate_by_shape(slot, request, tunables, shown, cancelled)
            if tuned is not None:
                return tuned
    begin = time.monotonic()
    outcome = _sweep(slot, request, cancelled, screened=True)
    seconds = time.monotonic() - begin
    declared: Verdict | None = None
    if outcome.wrong:
        declared = slot.evaluate(request, recorded_ms, cancelled)
        if not declared.correct:
            outcome.failed[DECLARED] = declared.status.value
            return tuning.with_sweep(declared, tunables, DECLARED, outcome, seconds)
        begin = time.monotonic()
        outcome = _sweep(slot, request, cancelled, screened=False, parts_s=outcome.parts_s)
        seconds += time.monotonic() - begin
    best = outcome.ranking[0] if outcome.ranking else DECLARED
    if best != DECLARED:
        text = with_values(source, combination(tunables, best))
        chosen = request.model_copy(update={"custom_model_src": text})
        verdict = slot.evaluate(chosen, recorded_ms, cancelled)
        if verdict.correct:
            return tuning.with_sweep(verdict, tunables, best, outcome, seconds)
        outcome.failed.setdefault(best, verdict.status.value)
    declared = declared or slot.evaluate(request, recorded_ms, cancelled)
    if not declared.correct:
        outcome.failed.setdefault(DECLARED, declared.status.value)
    return tuning.with_sweep(declared, tunables, DECLARED, outcome, seconds)


def _shown_workloads(
    slot: DeviceSlot, request: EvaluationRequest, cancelled: threading.Event
) -> list[tuple[int, Workload]]:
    """Return as many of the heaviest shown workloads as the budget allows, with their numbers."""
    shown = [each for each in enumerate(slot.workloads(request, cancelled)) if not each[1].hidden]
    shown.sort(key=lambda each: -each[1].weight)
    return shown[: int(request.tune_s // _SHARE_S)]


def _evaluate_by_shape(
    slot: DeviceSlot,
    request: EvaluationRequest,
    tunables: tuple[Tunable, ...],
    shown: Sequence[tuple[int, Workload]],
    cancelled: threading.Event,
) -> Verdict | None:
    """Sweep on each workload with its share of the budget, and judge a text with the numbers of each shape.

    None if a sweep finds nothing or the text does not pass.
    """
    begin = time.monotonic()
    share = request.model_copy(update={"tune_s": request.tune_s / len(shown)})
    sweeps: dict[str, Swept] = {}
    for number, workload in shown:
        swept = _sweep(slot, share, cancelled, screened=True, workload=number)
        if swept.wrong or not swept.ranking:
            return None
        if swept.shape not in [each.shape for each in sweeps.values()]:  # the heaviest decides
            sweeps[workload.name] = swept
    seconds = time.monotonic() - begin
    by_shape = {each.shape: combination(tunables, each.ranking[0]) for each in sweeps.values()}
    text = with_values(request.custom_model_src, next(iter(by_shape.values())))
    text = with_dispatch(text, by_shape)
    verdict = slot.evaluate(request.model_copy(update={"custom_model_src": text}), None, cancelled)
    return tuning.with_sweeps(verdict, tunables, sweeps, seconds) if verdict.correct else None


def _sweep(
    slot: DeviceSlot,
    request: EvaluationRequest,
    cancelled: threading.Event,
    *,
    screened: bool,
    parts_s: Mapping[str, float] | None = None,
    workload: int = 0,
) -> Swept:
    """Sweep; continue in another candidate process if a configuration breaks the present one.

    ``parts_s`` are the seconds of the budget already spent.
    """
    total = Swept(parts_s=dict(parts_s or {}))
    careful = False
    for _ in range(_PROCESSES):
        budget_s = request.tune_s - total.spent_s
        if not budget_s >= _LEAST_S:  # an evaluator may claim NaN
            break
        terms = SweepTerms(budget_s, tuple(total.failed), careful, screened and not total.ready)
        swept = slot.sweep(request, terms, cancelled, workload)
        if swept is None:
            break
        for part, spent_s in swept.parts_s.items():
            total.spend(part, spent_s)
        total.failed |= swept.failed
        total.ready |= swept.ready
        total.ms |= swept.ms
        total.wrong = swept.wrong
        total.shape = swept.shape
        if swept.ranking or not total.ranking:
            total.ranking = swept.ranking
        if swept.finished or not swept.suspects:
            break
        if len(swept.suspects) == 1:
            total.failed[swept.suspects[0]] = tuning.BREAKS_PROCESS
        careful = True
    # it ended before its final, so it has no ranking
    ranking = total.ranking or sorted(total.ms, key=total.ms.__getitem__)
    total.ranking = [number for number in ranking if number not in total.failed]
    return total
