"""The merged table: for people, for programs, and for ``results/judge``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaexplore.core.errors import UsageError
from adaexplore.core.files import write_json
from tool_scripts.judge_bench.figure import Figure
from tool_scripts.judge_bench.records import Session

FORMAT = 1
_VERDICTS = {True: "met", False: "MISSED", None: "-"}


def as_data(figures: Sequence[Figure]) -> dict[str, Any]:
    """One object with every figure; the sessions stand once, figures name them by number."""
    sessions: list[Session] = []
    rows = []
    for figure in figures:
        numbers = []
        for session in figure.sessions:
            if session not in sessions:
                sessions.append(session)
            numbers.append(sessions.index(session))
        rows.append({**figure.model_dump(mode="json", exclude={"sessions"}), "sessions": numbers})
    return {
        "format": FORMAT,
        "figures": rows,
        "missed": [figure.name for figure in figures if figure.met is False],
        "sessions": [session.model_dump(mode="json") for session in sessions],
    }


def as_text(figures: Sequence[Figure]) -> str:
    """A Markdown table; misses are told below it."""
    lines = ["| Figure | On | Measured | Must reach | | Samples |", "|---|---|---|---|---|---|"]
    for each in figures:
        cells = [each.name, each.device, each.value, each.target, _VERDICTS[each.met], each.samples]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    missed = [each for each in figures if each.miss]
    if missed:
        lines += ["", *(f"{each.name} ({each.device}): {each.miss}" for each in missed)]
    return "\n".join(lines)


def store(figures: Sequence[Figure], folder: Path) -> Path:
    """Write ``<folder>/<gpu>.json`` (``cpu.json`` where nothing ran on a GPU); gives the file.

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
