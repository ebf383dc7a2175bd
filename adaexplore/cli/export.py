"""``adaexplore export``: recorded runs as training data."""

import argparse
import json
import logging
from pathlib import Path

from adaexplore.core.files.atomic import write_text
from adaexplore.records.run_records import RunRecords
from adaexplore.report.export import ExportFormat, export

logger = logging.getLogger(__name__)

_NO_STEP = "no step passes the filter: judged, correct, not suspect, with its replies recorded"
_NO_PAIR = "no two steps make a pair: the same kernels in view, no repairs, one correct, the other worse"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directory")
    formats = [known.value for known in ExportFormat]
    parser.add_argument("--format", choices=formats, required=True, help="what a row holds")
    parser.add_argument(
        "--min-gain",
        type=float,
        metavar="X",
        help="only timed kernels whose speedup interval has a lower bound of at least X",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write to this file (default: standard output)"
    )


def run(args: argparse.Namespace) -> int:
    """Write one JSON object per line; return 1 if there is none. Runs are only read."""
    runs = [RunRecords.existing(folder) for folder in args.runs]
    rows = [row for each in runs for row in export(each, ExportFormat(args.format), args.min_gain)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    logger.info("%d rows", len(lines))
    if not lines:
        logger.warning(_NO_PAIR if args.format == ExportFormat.PREFERENCE else _NO_STEP)
        return 1
    if args.out is None:
        print("\n".join(lines))  # noqa: T201
    else:
        write_text(args.out, "\n".join(lines) + "\n")
    return 0
