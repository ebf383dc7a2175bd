"""Every figure that the state of a folder has something of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tool_scripts.judge_bench import (
    correctness_figures,
    note_figures,
    problem_figures,
    service_figures,
    speed_figures,
)
from tool_scripts.judge_bench.figure import Figure
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Session

FIGURES: dict[str, Callable[[Ledger], list[Figure]]] = {
    "catalogue": service_figures.tests,
    "repeat": correctness_figures.repeat,
    "aa": correctness_figures.aa,
    "again": correctness_figures.again,
    "problems": problem_figures.problems,
    "naive": speed_figures.naive,
    "latency": speed_figures.latency,
    "queue": service_figures.queue,
    "recovery": service_figures.tests,
    "malformed": service_figures.tests,
}


def of_folder(folder: Path) -> list[Figure]:
    """The figures of all parts on all devices, each with the calls that measured it."""
    found: list[Figure] = []
    for device in ("cuda", "cpu"):
        for part, figures in FIGURES.items():
            if ledger := _ledger(folder, device, part):
                found += _dated(figures(ledger), ledger)
        honest, plain = _ledger(folder, device, "honest"), _ledger(folder, device, "plain")
        if honest and plain:
            found += _dated(correctness_figures.honest(honest, plain), plain, honest)
        throughput, naive = _ledger(folder, device, "throughput"), _ledger(folder, device, "naive")
        if throughput and naive:
            found += _dated(speed_figures.throughput(throughput, naive), naive, throughput)
        slots = _ledgers(folder, device, ("honest", "throughput"))
        found += _dated(speed_figures.busy(slots), *slots)
        noted = _ledgers(folder, device, note_figures.PARTS)
        found += _dated(note_figures.notes(noted), *noted)
    return found


def _ledger(folder: Path, device: str, part: str) -> Ledger | None:
    exists = (folder / f"{device}-{part}.jsonl").exists()
    return Ledger(folder, device, part) if exists else None


def _ledgers(folder: Path, device: str, parts: Sequence[str]) -> list[Ledger]:
    return [ledger for part in parts if (ledger := _ledger(folder, device, part))]


def _dated(figures: list[Figure], *ledgers: Ledger) -> list[Figure]:
    sessions = tuple(session for ledger in ledgers for session in ledger.of(Session))
    return [figure.model_copy(update={"sessions": sessions}) for figure in figures]
