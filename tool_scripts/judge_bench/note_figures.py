"""The figures about two notes on a measurement: how often they occur, and how far they move a speedup."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tool_scripts.judge_bench.figure import Figure, by_problem, latest, quantile
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Judged

PARTS = ("repeat", "aa", "honest", "problems")
NOTES = ("throttled", "baseline_drift")
_REPEATED = ("repeat", "aa")


def notes(ledgers: Sequence[Ledger]) -> list[Figure]:
    """Return one figure per note; none where nothing was timed."""
    verdicts = {ledger.part: latest(ledger.of(Judged)) for ledger in ledgers}
    everything = [each for part in verdicts.values() for each in part if each.error is None]
    if not any(each.speedup is not None for each in everything):
        return []
    repeated = [verdicts[part] for part in _REPEATED if part in verdicts]
    return [_figure(note, ledgers[0].device, everything, _shifts(note, repeated)) for note in NOTES]


def _figure(note: str, device: str, verdicts: Sequence[Judged], shifts: dict[str, dict[str, Any]]) -> Figure:
    flagged = [each for each in verdicts if note in each.flags]
    unflagged = [each for each in verdicts if note not in each.flags]
    worst = max(shifts, key=lambda name: abs(shifts[name]["shift"]), default=None)
    shift = None if worst is None else float(shifts[worst]["shift"])
    moved = (
        "no kernel with and without" if shift is None else f"speedup moves by up to {shift:+.2%} ({worst})"
    )
    return Figure(
        name=f"verdicts with the note {note}",
        device=device,
        value=f"{len(flagged)} of {len(verdicts)}; {moved}",
        number=shift,
        samples=f"{len(verdicts)} verdicts, {len(shifts)} kernels judged with and without",
        details={
            "flagged_by_part": dict(Counter(each.unit.partition("/")[0] for each in flagged)),
            "shifts": shifts,
            "baseline_moves": {"flagged": _baseline_moves(flagged), "unflagged": _baseline_moves(unflagged)},
        },
    )


def _shifts(note: str, parts: Sequence[Sequence[Judged]]) -> dict[str, dict[str, Any]]:
    """Compare the flagged with the unflagged verdicts of each candidate that has both."""
    found: dict[str, dict[str, Any]] = {}
    for verdicts in parts:
        for mine in by_problem(verdicts).values():
            timed = [(note in each.flags, each.speedup) for each in mine if each.speedup is not None]
            flagged = [speedup for has_note, speedup in timed if has_note]
            unflagged = [speedup for has_note, speedup in timed if not has_note]
            if flagged and unflagged:
                found[mine[0].candidate] = {
                    "shift": statistics.median(flagged) / statistics.median(unflagged) - 1,
                    "flagged": len(flagged),
                    "unflagged": len(unflagged),
                }
    return found


def _baseline_moves(verdicts: Sequence[Judged]) -> dict[str, float] | None:
    """Return the distribution of (baseline beside the candidate) / (baseline alone) - 1."""
    moves = [
        each.baseline_gpu_ms / each.baseline_clean_ms - 1
        for each in verdicts
        if each.baseline_gpu_ms and each.baseline_clean_ms
    ]
    if not moves:
        return None
    return {
        "n": len(moves),
        "min": min(moves),
        "p50": quantile(moves, 0.5),
        "p90": quantile(moves, 0.9),
        "max": max(moves),
    }
