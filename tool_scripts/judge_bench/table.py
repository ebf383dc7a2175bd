"""All figures of a folder's state: for people, for programs, and for ``results/judge``."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import write_json
from tool_scripts.judge_bench import correctness_figures, speed_figures
from tool_scripts.judge_bench.figure import Figure
from tool_scripts.judge_bench.records import Ledger, Session

FORMAT = 1
FIGURES: dict[str, Callable[[Ledger], Iterator[Figure]]] = {
    "repeat": correctness_figures.repeat,
    "aa": correctness_figures.aa,
    "again": correctness_figures.again,
    "problems": correctness_figures.problems,
    "throughput": speed_figures.throughput,
    "latency": speed_figures.latency,
}
PARTS = (*FIGURES, "plain", "honest")
_VERDICTS = {True: "met", False: "MISSED", None: "-"}


def of_folder(folder: Path) -> list[Figure]:
    """Return the figures of all parts on all devices, each with the calls that measured it."""
    found: list[Figure] = []

    def add(figures: Iterable[Figure], *ledgers: Ledger) -> None:
        about = {
            "device": device,
            "sessions": tuple(session for ledger in ledgers for session in ledger.of(Session)),
        }
        found.extend(figure.model_copy(update=about) for figure in figures)

    for device in ("cuda", "cpu"):
        stems = [file.stem.removeprefix(f"{device}-") for file in sorted(folder.glob(f"{device}-*.jsonl"))]
        known = [part for part in PARTS if part in stems]
        known += [part for part in stems if part.startswith("problems-")]  # other precisions and directions
        ledgers = {part: Ledger(folder, device, part) for part in known}
        for part, ledger in ledgers.items():
            if figures := FIGURES.get(part.partition("-")[0]):
                add(figures(ledger), ledger)
        if {"plain", "honest"} <= ledgers.keys():
            both = ledgers["plain"], ledgers["honest"]
            add(correctness_figures.honest(*both), *both)
        slots = [ledgers[part] for part in ("honest", "throughput") if part in ledgers]
        add(speed_figures.busy(slots), *slots)
    return found


def as_data(figures: Sequence[Figure]) -> dict[str, Any]:
    """Return one object with all figures; sessions are listed once, figures refer to them by number."""
    sessions: list[Session] = []
    rows = []
    for figure in figures:
        for session in figure.sessions:
            if session not in sessions:
                sessions.append(session)
        numbers = [sessions.index(session) for session in figure.sessions]
        rows.append({**figure.model_dump(mode="json", exclude={"sessions"}), "sessions": numbers})
    return {
        "format": FORMAT,
        "figures": rows,
        "missed": [figure.name for figure in figures if figure.met is False],
        "sessions": [session.model_dump(mode="json") for session in sessions],
    }


def as_text(figures: Sequence[Figure]) -> str:
    """Return a Markdown table; misses are below it."""
    lines = ["| Figure | On | Measured | Must reach | | Samples |", "|---|---|---|---|---|---|"]
    for each in figures:
        cells = [each.name, each.device, each.value, each.target, _VERDICTS[each.met], each.samples]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    missed = [f"{each.name} ({each.device}): {each.miss}" for each in figures if each.miss]
    return "\n".join([*lines, *([""] if missed else []), *missed])


def store(figures: Sequence[Figure], folder: Path) -> Path:
    """Write ``<folder>/<gpu>.json`` (``cpu.json`` if nothing ran on a GPU), and return the file.

    Raises:
        UsageError: there are no figures, or they come from several GPU models.
    """
    if not figures:
        raise UsageError("nothing is measured yet; run a part first")
    gpus = {s.hardware for each in figures if each.device == "cuda" for s in each.sessions}
    if len(gpus) > 1:
        raise UsageError(f"the state is of several GPUs ({', '.join(sorted(gpus))}); keep one --out for each")
    name = re.sub(r"[^a-z0-9]+", "-", next(iter(gpus), "cpu").lower()).strip("-")
    file = folder / f"{name}.json"
    write_json(file, as_data(figures))
    return file
