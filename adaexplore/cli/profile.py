"""``adaexplore profile``: show where a kernel spends its time on the judge's GPU."""

import argparse
import json
import re
from dataclasses import asdict
from pathlib import Path

from adaexplore.cli.options import add_config, add_task, configuration
from adaexplore.cli.output import columns, show
from adaexplore.cli.sass import sass
from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import input_text
from adaexplore.core.judging.profile import KernelProfile, Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.judge_client.access import judge_packages, open_judge
from adaexplore.judge_client.protocol import Judge
from adaexplore.prompts.profile import call_text
from adaexplore.report.text import NONE, text_table, wrapped
from adaexplore.tasks.sources import task_from_file

NO_PROFILE = 1
_HEADER = (
    "kernel",
    "calls",
    "us",
    "share",
    "registers",
    "spills",
    "occupancy",
    "shared B",
    "warps",
    "programs",
)
_OPTIONAL = ("programs", "warps", "shared B")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", type=Path, metavar="KERNEL.py", help="file that defines ModelNew")
    add_task(parser)
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--asm", choices=("ptx", "sass"), help="write the compiled code of each kernel instead; needs no GPU"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="folder for --asm (default: .)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the profile and return 0; without a profile, log the reason and return 1."""
    config = configuration(args, args.config)
    task = task_from_file(args.task, config.dtype_str, config.direction, judge_packages(config))
    source = input_text(args.kernel, "kernel file")
    with open_judge(config) as access:
        judge = access.first
        if args.asm is not None:
            return _write_code(judge, task, source, args)
        profile = judge.profile(task, source)
    if profile is None:
        return NO_PROFILE
    print(json.dumps(asdict(profile), indent=2) if args.json else _page(profile, columns()))  # noqa: T201
    return 0


def _write_code(judge: Judge, task: Task, source: str, args: argparse.Namespace) -> int:
    """Write a file for each kernel that a call launches; print the paths."""
    report = judge.compile(task, source, asm=True)
    if report.status is Status.NOT_CHECKED:
        raise UsageError("this judge cannot compile; name another judge with --judge, or set dummy=false")
    if not report.asm:
        show(f"{report.status}: {report.message or 'no code: the judge is older, or no kernel was launched'}")
        return NO_PROFILE
    for name, ptx in report.asm.items():
        path = args.out / f"{args.kernel.stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.{args.asm}"
        write_text(path, ptx if args.asm == "ptx" else sass(ptx))
        print(path)  # noqa: T201
    return 0


def _page(profile: Profile, width: int | None) -> str:
    rows = [_row(kernel) for kernel in profile.kernels]
    table = text_table(_HEADER, rows, width, _OPTIONAL)
    return wrapped(f"{profile.hardware}. {call_text(profile)}\n\n{table}", width)


def _row(kernel: KernelProfile) -> list[str]:
    numbers = (kernel.shared_bytes, kernel.warps, kernel.programs)
    return [
        " ".join(kernel.name.split()) + ("" if kernel.own else " (library)"),
        str(kernel.calls),
        f"{kernel.us:.4g}",
        f"{kernel.share:.0%}",
        *(NONE if value is None else str(value) for value in (kernel.registers, kernel.spills)),
        NONE if kernel.occupancy is None else f"{kernel.occupancy:.0%}",
        *(NONE if value is None else str(value) for value in numbers),
    ]
