"""Verdicts in tests, by the keys of the release's form."""

from __future__ import annotations

from typing import Any

from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import from_metrics, to_metrics
from adaexplore.core.verdict import Verdict


def make_verdict(
    status: Status,
    metadata: dict[str, Any] | None = None,
    runtime_ms: float | None = None,
    runtime_stats: dict[str, Any] | None = None,
) -> Verdict:
    return from_metrics(
        {
            "compiled": status.module_imported,
            "correctness": status is Status.PASSED,
            "metadata": {**(metadata or {}), "status": status.value},
            "runtime": -1.0 if runtime_ms is None else runtime_ms,
            "runtime_stats": runtime_stats or {},
        }
    )


def metadata_of(verdict: Verdict) -> dict[str, Any]:
    """Return the keys of ``metadata`` but for the status."""
    found: dict[str, Any] = to_metrics(verdict)["metadata"]
    return {key: value for key, value in found.items() if key != "status"}


def stats_of(verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = to_metrics(verdict)["runtime_stats"]
    return found


def changed(verdict: Verdict, metadata: dict[str, Any] | None = None, **stats: Any) -> Verdict:
    """Return the verdict with further keys of ``metadata`` and ``runtime_stats``."""
    told = metadata_of(verdict) | (metadata or {})
    return make_verdict(verdict.status, told, verdict.runtime_ms, stats_of(verdict) | stats)
