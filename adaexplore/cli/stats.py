"""``adaexplore stats``: print the figures of one or several runs."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from adaexplore.cli.options import need_packages
from adaexplore.cli.output import columns
from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import write_json
from adaexplore.records.run_records import RunRecords
from adaexplore.report.categories import Judged, by_category
from adaexplore.report.statistics import run_results, run_statistics
from adaexplore.report.tables import TableFormat, best_prefix, render, render_categories
from adaexplore.tasks.categories import category_of

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--step", type=int, metavar="N", help="count the first N steps only")
    formats = [known.value for known in TableFormat]
    parser.add_argument("--format", choices=formats, default="table", help="output format (default: table)")
    parser.add_argument(
        "--best-prefix", type=Path, metavar="FILE", help="also write the best kernel after each step, as JSON"
    )
    parser.add_argument(
        "--by", choices=("category",), help="print the figures of each problem category over all runs instead"
    )
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="also write plots, as SVG and PNG")


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
    if args.by is not None:
        print(_by_category(args.runs, args.step, TableFormat(args.format)))  # noqa: T201
        return 0
    found = [run_statistics(folder, args.step) for folder in args.runs]
    print(render(found, TableFormat(args.format), columns()))  # noqa: T201
    return 0


def _by_category(runs: Sequence[Path], within: int | None, table_format: TableFormat) -> str:
    judged = []
    for folder in runs:
        records = RunRecords.existing(folder)
        for result in run_results(folder, within):
            if not result.begun:
                judged.append(Judged(result.key, "not begun", result.best))
                continue
            task = records.task(result.key)
            reference = task.reference() if task.has_reference() else result.key
            judged.append(Judged(reference, category_of(reference), result.best))
    return render_categories(by_category(judged), table_format, columns())


def _plot(runs: Sequence[Path], folder: Path) -> None:
    need_packages("--plot", "view", "jinja2", "resvg_py")
    from adaexplore.view.plot import not_drawn, write_figures
    from adaexplore.view.sources import open_source, read_all

    found = read_all([open_source(path) for path in runs])
    written = write_figures(found, folder)
    for line in not_drawn(found):
        logger.warning("--plot: %s", line)
    if written:
        logger.info("%d plots are in %s", len(written), folder)
