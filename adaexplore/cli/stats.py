"""``adaexplore stats``: figures of one or several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from adaexplore.report.statistics import run_statistics
from adaexplore.report.tables import TableFormat, render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--step", type=int, default=None, metavar="N", help="count the first N steps only")
    formats = [known.value for known in TableFormat]
    parser.add_argument("--format", choices=formats, default="table", help="how to print (default: table)")


def run(args: argparse.Namespace) -> int:
    """Print the figures; reads only."""
    found = [run_statistics(folder, args.step) for folder in args.runs]
    print(render(found, TableFormat(args.format)))  # noqa: T201
    return 0
