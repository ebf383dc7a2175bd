"""``adaexplore repair``: make a damaged run usable again."""

import argparse
from pathlib import Path

from adaexplore.cli.output import show
from adaexplore.records.repair import repair
from adaexplore.records.run_records import RunRecords
from adaexplore.report.text import count_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run directory")


def run(args: argparse.Namespace) -> int:
    """Rename damaged files and print their names; no file is deleted."""
    if not args.run_dir.is_dir():
        RunRecords.existing(args.run_dir)  # raises with the reason
    records = RunRecords(args.run_dir)
    with records.lock():
        renamed = repair(records)
    RunRecords.existing(args.run_dir)
    if not renamed:
        show(f"nothing in {args.run_dir} is damaged")
        return 0
    lines = [f"{path} renamed to end in .damaged" for path in renamed]
    lines.append(
        f"{count_of(len(renamed), 'file')} set aside; "
        f"Next: the command that made the run, with save_path={args.run_dir}, repeats the missing steps"
    )
    show("\n".join(lines))
    return 0
