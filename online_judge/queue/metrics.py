"""What ``/metrics`` tells, in the format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from online_judge.processes.pool import Pool
    from online_judge.queue.board import JobBoard
    from online_judge.queue.scheduler import Scheduler

_PREFIX = "adaexplore_judge_"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Metrics:
    """Counters and histograms of one judge; safe to call from threads."""

    def __init__(self) -> None:
        """All at zero."""
        self.registry = CollectorRegistry()
        self._evaluations = Counter(
            f"{_PREFIX}evaluations",
            "Finished evaluations of either protocol",
            ("kind", "status"),
            registry=self.registry,
        )
        self._stages = Histogram(
            f"{_PREFIX}stage_seconds",
            "Time per stage of an evaluation, waiting in the queue included",
            ("stage",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._cache = Counter(
            f"{_PREFIX}cache_lookups",
            "Jobs by what the result cache had: hit, miss, or joined to an identical job on its way",
            ("result",),
            registry=self.registry,
        )
        self._infra = Counter(
            f"{_PREFIX}infra_errors", "Evaluations that the judge itself failed", registry=self.registry
        )
        self._slot_held = Counter(
            f"{_PREFIX}slot_held_seconds",
            "Time in which a device was held exclusively, to time something",
            ("device",),
            registry=self.registry,
        )
        self._slot_gpu = Counter(
            f"{_PREFIX}slot_gpu_seconds",
            "Part of it in which the device worked for a candidate or its baseline",
            ("device",),
            registry=self.registry,
        )
        self._flags = Counter(
            f"{_PREFIX}integrity_flags", "Verdicts that carry a flag", ("flag",), registry=self.registry
        )
        self._drift = Counter(
            f"{_PREFIX}baseline_drifts",
            "Baselines that were measured again and had changed by more than they may",
            ("device",),
            registry=self.registry,
        )
        for result in ("hit", "miss", "joined"):
            self._cache.labels(result)

    def evaluated(self, kind: str, status: str) -> None:
        """One more evaluation is over."""
        self._evaluations.labels(kind, status).inc()
        if status == "infra_error":
            self._infra.inc()

    def spent(self, stage_seconds: Mapping[str, float]) -> None:
        """The times of one evaluation."""
        for stage, seconds in stage_seconds.items():
            self._stages.labels(stage).observe(seconds)

    def looked_up(self, result: str) -> None:
        """One more look into the cache: ``hit``, ``miss`` or ``joined``."""
        self._cache.labels(result).inc()

    def timed(self, device: int, held_s: float, gpu_s: float) -> None:
        """One exclusive use of a device is over.

        Args:
            device: the judge's number of it.
            held_s: for how long it was held.
            gpu_s: for how long of that it worked for a candidate or its baseline; flushes do not count.
        """
        self._slot_held.labels(str(device)).inc(held_s)
        self._slot_gpu.labels(str(device)).inc(gpu_s)

    def flagged(self, ids: Iterable[str]) -> None:
        """One more verdict carries these flags."""
        for flag in set(ids):
            self._flags.labels(flag).inc()

    def drifted(self, device: int) -> None:
        """One more baseline is no longer what it was."""
        self._drift.labels(str(device)).inc()

    def watch(self, scheduler: Scheduler, board: JobBoard) -> None:
        """Show the load as well, as it is whenever it is asked for."""
        self.registry.register(_Load(scheduler, board))

    def watch_processes(self, pools: Mapping[int, Pool]) -> None:
        """Show how many candidate processes of each device wait for a candidate."""
        self.registry.register(_Processes(pools))

    def render(self) -> bytes:
        """The text of ``/metrics``."""
        return generate_latest(self.registry)


class _Load(Collector):
    """Gauges that are counted when they are read."""

    def __init__(self, scheduler: Scheduler, board: JobBoard) -> None:
        self._scheduler = scheduler
        self._board = board

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: the load cannot be asked for before the judge runs."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Load now."""
        status = self._scheduler.status()
        oldest = self._scheduler.oldest()
        age_s = 0.0 if oldest is None else time.monotonic() - oldest
        yield GaugeMetricFamily(f"{_PREFIX}queue_depth", "Waiting evaluations", value=status.total_queued)
        yield GaugeMetricFamily(f"{_PREFIX}queue_oldest_seconds", "Age of the longest waiting", value=age_s)
        yield GaugeMetricFamily(f"{_PREFIX}busy_slots", "Running evaluations", value=status.total_processing)
        jobs = GaugeMetricFamily(f"{_PREFIX}jobs", "Known jobs of protocol v2 by state", labels=("state",))
        for state, count in self._board.count().items():
            jobs.add_metric([state], count)
        yield jobs


class _Processes(Collector):
    """ReadyProcess candidate processes, counted when they are asked for."""

    def __init__(self, pools: Mapping[int, Pool]) -> None:
        self._pools = pools

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Processes now."""
        ready = GaugeMetricFamily(
            f"{_PREFIX}armed_players", "Processes that wait for a candidate", labels=("device",)
        )
        for device, pool in self._pools.items():
            ready.add_metric([str(device)], pool.ready)
        yield ready
