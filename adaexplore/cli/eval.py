"""``adaexplore eval``: judge one kernel against one problem."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from pathlib import Path
from typing import Any

from adaexplore.cli.options import add_config, overrides
from adaexplore.cli.output import columns
from adaexplore.core.inputs import input_text
from adaexplore.core.verdict import Verdict
from adaexplore.report.verdict_page import verdict_page
from adaexplore.run.build import open_judge
from adaexplore.settings.load import load_config
from adaexplore.tasks.sources import task_from_file

INCORRECT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("kernel", type=Path, metavar="KERNEL.py", help="file that defines ModelNew")
    parser.add_argument("--task", type=Path, required=True, metavar="PROBLEM.py", help="the problem's file")
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print the whole verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the verdict; 0 when correct, 1 when not, 4 when the judge failed."""
    preset = [] if args.config is not None else ["preset=default"]
    config = load_config(args.config, [*preset, *overrides(args)])
    task = task_from_file(args.task, config.dtype_str)
    source = input_text(args.kernel, "kernel file")
    with tempfile.TemporaryDirectory(prefix="adaexplore-eval-") as folder:
        log_path = Path(folder) / "judge.log"
        with open_judge(config, log_path, threading.Event(), force=True) as access:
            verdict = access.of_worker(0).evaluate(task, source)
    print(json.dumps(_as_object(verdict), indent=2) if args.json else verdict_page(verdict, columns()))  # noqa: T201
    return 0 if verdict.correct else INCORRECT


def _as_object(verdict: Verdict) -> dict[str, Any]:
    problem_flags = [flag.id for flag in verdict.problem_flags]
    return {
        "status": verdict.status.value,
        "speedup": verdict.speedup,
        "problem_flags": problem_flags,
        **verdict.to_metrics(),
    }
