"""Conditions under which the time of a reference is recorded, and under which it counts."""

from __future__ import annotations

from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import BaselineKind, DtypeName, Tf32Policy


def conditions(
    reference: str, hidden_workloads: str | None, baseline: BaselineKind, dtype: DtypeName, tf32: Tf32Policy
) -> dict[str, str]:
    """Return those in an entry of ``baseline_time_torch.json``, without versions and hardware."""
    return {
        "baseline": baseline,
        "dtype": dtype,
        "tf32": tf32,
        "reference": text_digest(reference + (hidden_workloads or "")),
    }
