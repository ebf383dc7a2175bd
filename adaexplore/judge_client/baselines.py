"""Time references, in the format of ``results/timing/<gpu>/baseline_time_torch.json``."""

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from adaexplore.core.errors import JudgeError
from adaexplore.core.judging import recorded_times
from adaexplore.core.judging.flags import BASELINE_UNCONFIRMED, REJECT
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import BaselineKind
from adaexplore.judge_client.access import JudgeAccess
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.settings.config import RunConfig

FILE_NAMES: Mapping[BaselineKind, str] = {
    "eager": "baseline_time_torch",
    "compile": "baseline_time_torch_compile_inductor_default",
    "max-autotune": "baseline_time_torch_compile_inductor_max-autotune",
}
"""KernelBench's names, without a suffix."""

RESAMPLES = 1000
_TRIM = 0.05
_APART = 0.15
_OF_THE_JUDGE = ("hardware", "device", "clocks", "baseline_clean_ms")

Entry = dict[str, Any]


@dataclass(frozen=True)
class Timed:
    """A reference's times, or the reason why there are none."""

    task: Task
    entry: Entry | None
    reason: str = ""


def conditions(task: Task, config: RunConfig, identity: JudgeIdentity) -> Entry:
    """Return the conditions of a time; times recorded under other conditions are measured again."""
    known = recorded_times.conditions(
        task.reference, task.hidden_workloads, config.baseline, task.dtype, config.tf32
    )
    return known | {"versions": identity.versions}


def time_reference(task: Task, config: RunConfig, access: JudgeAccess) -> Timed:
    """Judge a reference as its own candidate, and return the baseline's times.

    Raises:
        ProblemError: it cannot be judged.
        JudgeError: the judge failed, or sent no timed calls.
    """
    with access.turn() as judge:
        verdict = judge.evaluate(task, task.as_candidate)
    if not verdict.correct:
        rejects = [f"{flag.id} ({flag.evidence})" for flag in verdict.flags if flag.severity == REJECT]
        why = "; ".join(rejects) or verdict.feedback.partition("\n")[0] or verdict.status.value
        return Timed(task, None, f"the reference does not pass itself: {why}")
    if verdict.has_flag(BASELINE_UNCONFIRMED):
        return Timed(task, None, "the GPU was not free; run the command again when nobody else uses it")
    entry = _entry(verdict)
    if not is_steady(entry):
        times = f"{entry['median']:.4g} ms, and {entry['baseline_clean_ms']:.4g} ms with nobody else around"
        how = "with --set num_processes=1" if config.num_processes > 1 else "when the machine is less busy"
        return Timed(task, None, f"its time varies, {times}; run the command again {how}")
    return Timed(task, entry | conditions(task, config, access.identity))


def is_steady(entry: Mapping[str, Any]) -> bool:
    """Return True if a time is close to the one with nobody else around, or that is not known.

    Else the host was slow for one of them.
    """
    median, without_ms = entry.get("median"), entry.get("baseline_clean_ms")
    if not median or not without_ms:
        return True
    longer, shorter = sorted((float(median), float(without_ms)), reverse=True)
    return longer <= (1 + _APART) * shorter


def _entry(verdict: Verdict) -> Entry:
    timing = verdict.timing
    if timing is None or not timing.baseline_samples:
        raise JudgeError("the judge does not send the timed calls of a baseline; use a judge of this version")
    rounds = timing.baseline_samples
    known = {name: getattr(timing, name) for name in _OF_THE_JUDGE if name in timing.model_fields_set}
    return summary(rounds) | known | {"samples": [[round(ms, 6) for ms in calls] for calls in rounds]}


def summary(rounds: Sequence[Sequence[float]]) -> Entry:
    """Return statistics of timed calls in milliseconds; mean and deviation without 5 % at either end.

    ``ci_low`` and ``ci_high`` are the 95 % interval of the mean, by bootstrap over rounds (calls of a round
    have the same GPU clocks).
    """
    ordered = sorted(chain.from_iterable(rounds))
    kept = _trimmed(ordered)
    tenths = statistics.quantiles(ordered, n=10, method="inclusive") if len(ordered) > 1 else ordered * 9
    rng = random.Random(0)
    draws = (sorted(chain.from_iterable(rng.choices(rounds, k=len(rounds)))) for _ in range(RESAMPLES))
    means = sorted(statistics.fmean(_trimmed(calls)) for calls in draws)
    return {
        "mean": statistics.fmean(kept),
        "std": statistics.stdev(kept) if len(kept) > 1 else 0.0,
        "min": ordered[0],
        "max": ordered[-1],
        "num_trials": len(ordered),
        "median": statistics.median(ordered),
        "p10": tenths[0],
        "p90": tenths[-1],
        "ci_low": means[int(0.025 * RESAMPLES)],
        "ci_high": means[int(0.975 * RESAMPLES) - 1],
    }


def _trimmed(ordered: Sequence[float]) -> Sequence[float]:
    cut = int(len(ordered) * _TRIM)
    return ordered[cut : len(ordered) - cut]
