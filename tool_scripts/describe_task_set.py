"""Write a synthesised set's README.md: what it holds, who looked at it, which operators occur.

    python -m tool_scripts.describe_task_set DIR --report FILE ... --made "COMMAND"

Reports are what ``adaexplore synth --check DIR --report FILE`` writes.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from adaexplore.core.files import write_text
from synthesis.catalogue import read_catalogue
from synthesis.manifest import Entry, Manifest


def main(arguments: list[str] | None = None) -> int:
    """Write the page; prints its path."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", type=Path, action="append", default=[])
    parser.add_argument("--made", required=True, help="the command that made the set")
    args = parser.parse_args(arguments)
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in args.report]
    path = args.folder / "README.md"
    write_text(path, page(args.folder.name, Manifest(args.folder).entries, reports, args.made))
    print(path)  # noqa: T201
    return 0


def page(name: str, entries: list[Entry], reports: list[dict[str, Any]], made: str) -> str:
    """The page as Markdown."""
    used = Counter(operator for entry in entries for operator in entry.operators)
    sizes = sorted(entry.elements for entry in entries)
    models = ", ".join(sorted({entry.model for entry in entries}))
    styles = Counter(entry.style for entry in entries)
    parts = [
        f"# {name}",
        f"{len(entries)} problems, {len(used)} distinct operators, no two with the same graph of operators "
        f"and shapes. Inputs, weights and outputs of a problem have {sizes[0]:,} to {sizes[-1]:,} elements, "
        f"{sizes[len(sizes) // 2]:,} in the median.",
        "Small enough for a judge without a GPU; their times on a GPU are mostly launch times, so this is "
        "a set to learn from failures with, not one to compare speedups on.",
        f"Written by `{models}`; styles of the prompts: "
        + ", ".join(f"{style} {count}" for style, count in sorted(styles.items()))
        + f". `manifest.jsonl` has a line for each problem. Made by\n\n```bash\n{made}\n```",
        "## Looked at",
        _looks(reports),
        "## Operators",
        "How many problems call each; one that has a function and a layer counts as one.",
        _coverage(used),
    ]
    return "\n\n".join(parts) + "\n"


def _looks(reports: list[dict[str, Any]]) -> str:
    rows = [
        "| Judge | torch | Triton | problems | can be used | duplicates | a call, median (most) |",
        "|---|---|---|---|---|---|---|",
    ]
    for report in reports:
        versions = report["versions"]
        rows.append(
            f"| {report['hardware']} | {versions.get('torch', '')} | {versions.get('triton', '')} "
            f"| {report['tasks']} | {report['valid']} | {len(report['duplicates'])} "
            f"| {report['call_ms'][1]:.2f} ms ({report['call_ms'][2]:.1f} ms) |"
        )
    return "\n".join(rows)


def _coverage(used: Counter[str]) -> str:
    families: dict[str, list[str]] = {}
    of = {entry.source: entry.family for entry in read_catalogue().operators}
    for operator, count in sorted(used.items()):
        short = operator.removeprefix("torch.").replace("nn.functional.", "F.")
        families.setdefault(of.get(operator, "other"), []).append(f"`{short}` {count}")
    rows = ["| Family | operators | |", "|---|---|---|"]
    rows += [
        f"| {family} | {len(found)} | {', '.join(found)} |" for family, found in sorted(families.items())
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    raise SystemExit(main())
