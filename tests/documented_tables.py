"""Tables of the documentation that are made from the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adaexplore.settings.config import RunConfig
from online_judge.checks.check import FlagKind, Severity
from online_judge.checks.registry import all_checks

_SEVERITIES = {Severity.REJECT: "**reject**", Severity.SUSPECT: "suspect", Severity.NOTE: "note", None: "-"}


def flag_table() -> str:
    """Return all flags, the gravest first, as a Markdown table."""
    order = list(_SEVERITIES)
    rows = [row for check in all_checks() for row in _rows(check.flags)]
    lines = ["| Flag | Property of | Severity | Evidence | What to do |", "|---|---|---|---|---|"]
    for ids, kind in sorted(rows, key=lambda row: order.index(row[1].severity)):
        of = "problem" if kind.severity is None else "measurement" if kind.of_measurement else "kernel"
        lines.append(f"| {ids} | {of} | {_SEVERITIES[kind.severity]} | {kind.evidence} | {kind.advice} |")
    return "\n".join(lines) + "\n"


def _rows(kinds: tuple[FlagKind, ...]) -> Iterator[tuple[str, FlagKind]]:
    """Yield ids and flag of each row; flags of one check that differ by their ids alone share a row."""
    groups: dict[tuple[object, ...], list[FlagKind]] = {}
    for kind in kinds:
        groups.setdefault((kind.severity, kind.of_measurement, kind.evidence, kind.advice), []).append(kind)
    for group in groups.values():
        yield " ".join(f"`{kind.id}`" for kind in group), group[0]


def key_table() -> str:
    """Return every key with its defaults in both presets and its meaning, as a Markdown table."""
    paper, default = RunConfig(), RunConfig(preset="default")
    rows = ["| Key | `paper` | `default` | Meaning |", "|---|---|---|---|"]
    for key, field in RunConfig.model_fields.items():
        values = f"{_value(getattr(paper, key))} | {_value(getattr(default, key))}"
        rows.append(f"| `{key}` | {values} | {field.description} |")
    return "\n".join(rows) + "\n"


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{list(value) if isinstance(value, tuple) else value}`"
