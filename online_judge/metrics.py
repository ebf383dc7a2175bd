"""What ``/metrics`` tells, in the format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from online_judge.jobs import JobBoard
    from online_judge.scheduler import Scheduler

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

    def watch(self, scheduler: Scheduler, board: JobBoard) -> None:
        """Show the load as well, as it is whenever it is asked for."""
        self.registry.register(_Load(scheduler, board))

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
