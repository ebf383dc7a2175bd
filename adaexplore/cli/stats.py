"""``adaexplore stats``: figures of one or several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from adaexplore.cli.output import columns
from adaexplore.core.errors import UsageError
from adaexplore.core.files import write_json
from adaexplore.report.statistics import run_results, run_statistics
from adaexplore.report.tables import TableFormat, best_prefix, render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--step", type=int, default=None, metavar="N", help="count the first N steps only")
    formats = [known.value for known in TableFormat]
    parser.add_argument("--format", choices=formats, default="table", help="how to print (default: table)")
    parser.add_argument(
        "--best-prefix",
        type=Path,
        default=None,
        metavar="FILE",
        help="also write the best after each step, as JSON",
    )


def run(args: argparse.Namespace) -> int:
    """Print the figures; a run directory is only read."""
    if args.best_prefix is not None:
        if len(args.runs) != 1:
            raise UsageError("--best-prefix takes one run at a time")
        write_json(args.best_prefix, best_prefix(run_results(args.runs[0], args.step)))
    found = [run_statistics(folder, args.step) for folder in args.runs]
    print(render(found, TableFormat(args.format), columns()))  # noqa: T201
    return 0
