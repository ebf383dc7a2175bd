"""``adaexplore compile-check``: compile one kernel's launches for a GPU, without one."""

import argparse
import json
from pathlib import Path

from adaexplore.cli.options import add_judge, add_set, add_short, add_task, configuration
from adaexplore.core.files.inputs import input_text
from adaexplore.judge_client.access import judge_packages, open_judge
from adaexplore.tasks.sources import task_from_file

STOPPED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", type=Path, metavar="FILE", help="file that defines ModelNew")
    add_task(parser)
    add_set(parser)
    add_judge(parser)
    add_short(parser, "preset", "target", "timeout")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the finding; return 0 without one, 1 if the kernel cannot work, 4 if the judge failed."""
    config = configuration(args, None, "judge_device=cpu", "num_processes=1")
    task = task_from_file(args.task, config.dtype_str, config.direction, judge_packages(config))
    source = input_text(args.kernel, "kernel file")
    with open_judge(config) as access:
        found = access.first.compile(task, source)
    if args.json:
        told = {"file": str(args.kernel), **found.model_dump(exclude={"error_name"})}
        print(json.dumps(told, indent=2))  # noqa: T201
    else:
        place = f"{args.kernel}:{found.line}" if found.line is not None else str(args.kernel)
        kernel = f" in {found.kernel}" if found.kernel is not None else ""
        print(f"{place}: {found.status}{kernel}")  # noqa: T201
        if found.message:
            print(found.message)  # noqa: T201
    return 0 if found.ok else STOPPED
