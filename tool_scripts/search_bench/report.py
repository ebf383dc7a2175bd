"""The result as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("x@10", "x@25", "x@50", "x@100", "share@50", "auc50", "hours@50", "usd@50")


def table(result: Mapping[str, Any]) -> str:
    """A line a policy, then the comparisons."""
    lines: list[str] = []
    if "policies" in result:
        lines.append(" ".join([f"{'policy':12}", *(f"{name:>9}" for name in COLUMNS)]))
        for name, figures in result["policies"].items():
            cells = ("-" if figures[key] is None else f"{figures[key]:.3f}" for key in COLUMNS)
            lines.append(" ".join([f"{name:12}", *(f"{cell:>9}" for cell in cells)]))
        lines += _comparisons(result)
    for name, part in result.get("families", {}).items():
        lines += [f"{name}:", *("  " + line for line in _comparisons(part))]
    for part in result.get("splits", []):
        lines.append(f"fitted to {' '.join(part['fitted'])}, run on {' '.join(part['run_on'])}:")
        lines += ["  " + line for line in _comparisons(part)]
        lines += ["  all steps transferred: " + line for line in _comparisons(part["transferred"])]
    return "\n".join(lines)


def _comparisons(part: Mapping[str, Any]) -> list[str]:
    lines = []
    for rival in ("paper_l2", "paper_l3"):
        found = part[f"default_vs_{rival}"]
        if found["gain"] is None:
            lines.append(f"default against {rival}: nothing was gained")
        else:
            lines.append(
                f"default against {rival}: {found['gain']:+.1%} ({found['low']:+.1%} to {found['high']:+.1%})"
            )
    if "parallel" in part:
        found = part["parallel"]
        faster = (
            "does not get there" if found["times_faster"] is None else f"{found['times_faster']:.2f}x faster"
        )
        loss = "-"
        if found["loss_per_sample"] is not None:
            loss = f"{found['loss_per_sample']:.1%} ({found['loss_low']:.1%} to {found['loss_high']:.1%})"
        lines.append(f"{found['in_flight']} in flight: {faster}, loss per sample {loss}")
    return lines
