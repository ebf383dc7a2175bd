"""``adaexplore show``: show a run, a task or a step in the terminal."""

import argparse
import os
import sys
from pathlib import Path

from adaexplore.cli.output import columns
from adaexplore.records.run_records import RunRecords
from adaexplore.report.show import Section, find_task, show_run, show_step, show_task
from adaexplore.report.text import without_control


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("task", nargs="?", metavar="TASK", help="task, such as 2_17 (default: the only one)")
    parser.add_argument("step", nargs="?", type=int, metavar="STEP", help="number of a step")


def run(args: argparse.Namespace) -> int:
    """Print the tasks of a run, the steps of a task, or one step; a run directory is only read."""
    records = RunRecords.existing(args.run_dir)
    keys = records.planned()
    if args.task is None and len(keys) != 1:
        sections = show_run(records, columns())
    else:
        task = find_task(records, keys[0] if args.task is None else args.task)
        sections = show_task(task, columns()) if args.step is None else show_step(task, args.step, columns())
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    sections = [Section(without_control(each.text), each.language) for each in sections]
    print("\n\n".join(_coloured(each) if coloured else each.text for each in sections))  # noqa: T201
    return 0


def _coloured(section: Section) -> str:
    if section.language == "text":
        return section.text
    from pygments import highlight
    from pygments.formatters import TerminalFormatter
    from pygments.lexers import get_lexer_by_name

    told = highlight(section.text, get_lexer_by_name(section.language), TerminalFormatter())
    return str(told).rstrip("\n")
