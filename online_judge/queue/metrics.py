"""The text of ``/metrics``, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import QueueStatus, WorkerState

_NAMESPACE = "adaexplore_judge"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Metrics:
    """Counters, histograms and gauges of one judge; counting is safe from any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, namespace=_NAMESPACE, registry=self._registry)
        gauge = partial(Gauge, namespace=_NAMESPACE, registry=self._registry)
        self._evaluations = counter(
            "evaluations", "Finished evaluations of either protocol", ["kind", "status"]
        )
        self._stages = Histogram(
            "stage_seconds",
            "Time per stage of an evaluation, waiting in the queue included",
            ["stage"],
            namespace=_NAMESPACE,
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._cache = counter(
            "cache_lookups",
            "Jobs by what the result cache had: hit, miss, or joined to an identical job on its way",
            ["result"],
        )
        self._infra = counter("infra_errors", "Evaluations that the judge itself failed")
        self._slot_held = counter(
            "slot_held_seconds", "Time in which a device was held exclusively, to time something", ["device"]
        )
        self._slot_gpu = counter(
            "slot_gpu_seconds",
            "Part of it in which the device worked for a candidate or its baseline",
            ["device"],
        )
        self._flags = counter("integrity_flags", "Verdicts that carry a flag", ["flag"])
        self._drift = counter(
            "baseline_drifts",
            "Baselines that were measured again and had changed by more than they may",
            ["device"],
        )
        self._queued = gauge("queue_depth", "Waiting evaluations")
        self._oldest = gauge("queue_oldest_seconds", "Age of the longest waiting")
        self._running = gauge("busy_slots", "Running evaluations")
        self._workers = gauge("workers", "Devices by state", ["state"])
        self._lost = counter("workers_lost", "Jobs that lost their worker, by how", ["how"])
        self._jobs = gauge("jobs", "Known jobs of protocol v2 by state", ["state"])
        waiting = "Processes that wait for a candidate"
        self._ready = Gauge("adaexplore_judge_armed_players", waiting, ["device"], registry=self._registry)
        for result in ("hit", "miss", "joined"):
            self._cache.labels(result)

    def evaluated(self, kind: str, status: str) -> None:
        self._evaluations.labels(kind, status).inc()
        if status == "infra_error":
            self._infra.inc()

    def spent(self, stage_seconds: Mapping[str, float]) -> None:
        for stage, seconds in stage_seconds.items():
            self._stages.labels(stage).observe(seconds)

    def looked_up(self, result: str) -> None:
        """Count a lookup in the cache: ``hit``, ``miss`` or ``joined``."""
        self._cache.labels(result).inc()

    def judged(self, device: int, verdict: Verdict) -> None:
        """Count what a verdict from a device tells: flags, the sweep, the exclusive use of the device."""
        for flag in {each.id for each in verdict.flags} | {each.id for each in verdict.problem_flags}:
            self._flags.labels(flag).inc()
        if verdict.has_flag("baseline_drift"):
            self._drift.labels(str(device)).inc()
        if verdict.tuned is not None and verdict.tuned.seconds is not None:
            self.spent({"sweep": verdict.tuned.seconds})
        if verdict.timing is not None and (use := verdict.timing.use) is not None:
            self._slot_held.labels(str(device)).inc(use.held_s)
            self._slot_gpu.labels(str(device)).inc(use.gpu_s)

    def show_load(
        self, queue: QueueStatus, oldest_s: float, jobs: Mapping[str, int], ready: Mapping[int, int]
    ) -> None:
        """Set the gauges; ``jobs`` counts by state, ``ready`` the processes that wait by device."""
        self._queued.set(queue.total_queued)
        self._oldest.set(oldest_s)
        self._running.set(queue.total_processing)
        for state, count in jobs.items():
            self._jobs.labels(state).set(count)
        for device, count in ready.items():
            self._ready.labels(str(device)).set(count)

    def lost_worker(self, how: str) -> None:
        self._lost.labels(how).inc()

    def show_workers(self, states: Mapping[WorkerState, int]) -> None:
        for state in get_args(WorkerState):
            self._workers.labels(state).set(states.get(state, 0))

    def render(self) -> bytes:
        return generate_latest(self._registry)
