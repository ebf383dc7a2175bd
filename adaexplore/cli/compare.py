"""``adaexplore compare``: run the same tasks and seeds with several configurations."""

import argparse
import json
import logging
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

from adaexplore.cli.options import add_judge, add_set, add_short, overrides
from adaexplore.cli.output import columns
from adaexplore.cli.run import carry_out
from adaexplore.core.errors import UsageError
from adaexplore.report.comparison import compare, comparison_table
from adaexplore.run.vendors import check_vendor
from adaexplore.settings.environment import read_environment
from adaexplore.settings.load import load_config
from adaexplore.tasks.sources import load_tasks

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="two or more configurations; the others are compared with the first",
    )
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="runs per configuration (default: 3)"
    )
    parser.add_argument("--tasks", type=Path, metavar="LIST", help="test list for all configurations")
    add_set(parser, "override one key in all configurations")
    add_judge(parser)
    add_short(parser, "preset", "steps", "model", "offline")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for the runs, as NAME/seed-N"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Run all unfinished runs, seed by seed, and print the comparison."""
    names = [path.stem for path in args.config]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UsageError("--config takes two or more files with different names")
    if args.seeds < 1:
        raise UsageError(f"--seeds must be at least 1, not {args.seeds}")
    tasks_given = {} if args.tasks is None else {"test_list_path": str(args.tasks)}
    runs = {name: [args.out / name / f"seed-{seed}" for seed in range(args.seeds)] for name in names}
    planned = []
    for seed in range(args.seeds):
        for path in args.config:
            folder = runs[path.stem][seed]
            chosen = {"seed": seed, "save_path": str(folder), **tasks_given}
            config = check_vendor(load_config(path, overrides(args), chosen))
            planned.append((config, load_tasks(config, read_environment(os.environ))))
    if len({tuple(task.key for task in tasks) for _, tasks in planned}) > 1:
        raise UsageError("the configurations name different tasks; give one list with --tasks")
    if any(config.memory_update for config, _ in planned):
        raise UsageError(
            "with memory_update one run would learn from another; set it to false in all configurations"
        )
    if len({(config.tier, config.baseline, config.total_steps) for config, _ in planned}) > 1:
        logger.warning("tier, baseline or total_steps differ between the configurations")
    for config, tasks in planned:
        with redirect_stdout(sys.stderr):
            carry_out(config, tasks)
    compared = compare(runs)
    if args.json:
        print(json.dumps([each.model_dump() for each in compared], indent=2))  # noqa: T201
    else:
        print(comparison_table(compared, columns()))  # noqa: T201
    return 0
