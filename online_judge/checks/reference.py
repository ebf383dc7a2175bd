"""The table of all flags, for the documentation."""

from collections.abc import Iterator

from online_judge.checks.check import FlagKind, Severity
from online_judge.checks.registry import all_checks

_SHOWN = {Severity.REJECT: "**reject**", Severity.SUSPECT: "suspect", Severity.NOTE: "note", None: "-"}


def flag_table() -> str:
    """Return all flags, the gravest first, as a Markdown table."""
    order = list(_SHOWN)
    rows = [row for check in all_checks() for row in _rows(check.flags)]
    lines = ["| Flag | Property of | Severity | Evidence | What to do |", "|---|---|---|---|---|"]
    for ids, kind in sorted(rows, key=lambda row: order.index(row[1].severity)):
        of = "problem" if kind.severity is None else "measurement" if kind.of_measurement else "kernel"
        lines.append(f"| {ids} | {of} | {_SHOWN[kind.severity]} | {kind.evidence} | {kind.advice} |")
    return "\n".join(lines) + "\n"


def _rows(kinds: tuple[FlagKind, ...]) -> Iterator[tuple[str, FlagKind]]:
    """Yield ids and flag of each row; flags of one check that differ by their ids alone share a row."""
    groups: dict[tuple[object, ...], list[FlagKind]] = {}
    for kind in kinds:
        groups.setdefault((kind.severity, kind.of_measurement, kind.evidence, kind.advice), []).append(kind)
    for group in groups.values():
        yield " ".join(f"`{kind.id}`" for kind in group), group[0]
