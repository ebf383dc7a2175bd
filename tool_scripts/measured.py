"""What measured figures are kept with, and how seconds are told."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tool_scripts.judge_bench.surroundings import session


def dated(command: str) -> dict[str, Any]:
    """Date, command, revision, hardware and versions of a measurement without a GPU."""
    now = session("cpu", [], None)
    return {
        "command": command,
        "date": now.date,
        "revision": now.revision,
        "hardware": f"{now.hardware}; {now.machine}",
        "versions": dict(now.versions),
    }


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 90th percentile and maximum."""
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered), 4),
        "p90": round(ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)], 4),
        "max": round(ordered[-1], 4),
    }
