"""The figures about the service: the full queue, and what tests found."""

from __future__ import annotations

from typing import Any

from tool_scripts.judge_bench.figure import Figure
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Flood, TestRun

_TESTS = {
    "catalogue": ("fixtures of the catalogue of ways to cheat that are caught", "all"),
    "recovery": ("killed processes and hostile candidate processes", "right status or retried, nothing lost"),
    "malformed": ("malformed requests", "no 500"),
}


def queue(ledger: Ledger) -> list[Figure]:
    """What became of far too many submissions at once."""
    if not ledger.of(Flood):
        return []
    flood = ledger.of(Flood)[-1]
    expected = flood.limit + flood.devices
    faults = {
        f"{flood.running_and_waiting} running and waiting": flood.running_and_waiting != expected,
        f"{flood.accepted} accepted": flood.accepted != expected,
        f"{flood.refused} refused": flood.refused != flood.submissions - expected,
        f"{flood.refused - flood.retry_after} refusals without Retry-After": flood.refused
        != flood.retry_after,
        f"other answers {flood.other_answers}": bool(flood.other_answers),
        f"{flood.lost} lost": flood.lost != 0,
        "an id given twice": flood.distinct_ids != flood.accepted,
        f"{flood.started_twice} started twice": flood.started_twice != 0,
        f"failed jobs {flood.ended}": flood.ended.get("failed", 0) != 0,
    }
    wrong = [text for text, fault in faults.items() if fault]
    full = flood.submissions >= 600 and flood.limit == 100 and flood.sleep_s >= 60
    return [
        Figure(
            name=f"{flood.submissions} simultaneous submissions at a limit of {flood.limit}, "
            f"candidates that sleep {flood.sleep_s:g} s",
            device=ledger.device,
            value=f"{flood.running_and_waiting} running and waiting, {flood.refused} refused, "
            f"{flood.lost} lost, {flood.started_twice} twice",
            target=f"{expected} running and waiting, the rest refused with Retry-After, none lost or twice",
            met=False if wrong else (True if full else None),
            samples=f"{flood.submissions} submissions in {flood.burst_s:.1f} s",
            miss="; ".join(wrong),
            details=flood.model_dump(mode="json"),
        )
    ]


def tests(ledger: Ledger) -> list[Figure]:
    """How the part's tests ended."""
    runs = ledger.of(TestRun)
    if not runs:
        return []
    run = runs[-1]
    if run.report is not None:
        return [_catalogue(ledger.device, run, run.report)]
    name, target = _TESTS[ledger.part]
    return [
        Figure(
            name=name,
            device=ledger.device,
            value=run.last_line,
            target=target,
            met=run.exit_code == 0,
            samples=" ".join(run.paths),
            miss="" if run.exit_code == 0 else f"pytest ended with {run.exit_code}",
        )
    ]


def _catalogue(device: str, run: TestRun, report: tuple[dict[str, Any], ...]) -> Figure:
    """Fixtures that another place decides about (``caught`` is None) count neither way."""
    decided = [each for each in report if each.get("caught") is not None]
    caught = [each for each in decided if each["caught"]]
    missed = [each for each in decided if not each["caught"]]
    rows = {each.get("row") for each in decided}
    return Figure(
        name="fixtures of the catalogue of ways to cheat that are caught",
        device=device,
        value=f"{len(caught)} of {len(decided)} in {len(rows)} rows",
        number=len(caught) / len(decided) if decided else None,
        target="all",
        met=bool(decided) and not missed and run.exit_code == 0,
        samples=f"{len(report)} fixtures; {run.last_line}",
        miss="; ".join(f"{each.get('fixture')}: {each.get('complaint')}" for each in missed)
        or ("" if run.exit_code == 0 else f"pytest ended with {run.exit_code}"),
        details={
            "rows": sorted(row for row in rows if isinstance(row, int)),
            "not_decided": [each.get("fixture") for each in report if each.get("caught") is None],
            "fixtures": list(report),
        },
    )
