"""``adaexplore stats``: figures of one or several runs."""

from __future__ import annotations

import argparse
import importlib.util
import logging
from collections.abc import Sequence
from pathlib import Path

from adaexplore.cli.output import columns
from adaexplore.core.errors import UsageError
from adaexplore.core.files import write_json
from adaexplore.report.statistics import run_results, run_statistics
from adaexplore.report.tables import TableFormat, best_prefix, render

logger = logging.getLogger(__name__)


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
    parser.add_argument(
        "--plot", type=Path, default=None, metavar="FOLDER", help="also write figures, as SVG and PNG"
    )


def run(args: argparse.Namespace) -> int:
    """Print the figures; a run directory is only read."""
    if args.best_prefix is not None:
        if len(args.runs) != 1:
            raise UsageError("--best-prefix takes one run at a time")
        write_json(args.best_prefix, best_prefix(run_results(args.runs[0], args.step)))
    if args.plot is not None:
        if args.step is not None:
            raise UsageError("--plot draws all steps; leave out --step")
        _plot(args.runs, args.plot)
    found = [run_statistics(folder, args.step) for folder in args.runs]
    print(render(found, TableFormat(args.format), columns()))  # noqa: T201
    return 0


def _plot(runs: Sequence[Path], folder: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("jinja2", "resvg_py")):
        raise UsageError("--plot needs its own packages: pip install 'adaexplore[view]'")
    from adaexplore.view.plot import write_figures
    from adaexplore.view.sources import open_source, read_all

    written = write_figures(read_all([open_source(path) for path in runs]), folder)
    logger.info("%d figures are in %s", len(written), folder)
