"""``adaexplore eval``: judge a kernel against a problem, or compare two kernels."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaexplore.cli.options import add_config, add_short, add_task, configuration
from adaexplore.cli.output import columns
from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import input_text
from adaexplore.core.metrics import to_metrics
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import judge_packages, open_judge
from adaexplore.report.race import race, race_text
from adaexplore.report.text import wrapped
from adaexplore.report.verdict_page import verdict_page
from adaexplore.tasks.sources import task_from_file

INCORRECT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernels",
        type=Path,
        nargs="+",
        metavar="KERNEL.py",
        help="file that defines ModelNew; two files are also compared with each other",
    )
    add_task(parser)
    add_config(parser)
    add_short(parser, "timeout")
    parser.add_argument("--json", action="store_true", help="print the whole verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the verdicts; return 0 if all are correct, 1 if not, 4 if the judge failed."""
    if len(args.kernels) > 2:
        raise UsageError("eval takes one kernel, or two to compare")
    config = configuration(args, args.config)
    task = task_from_file(args.task, config.dtype_str, config.direction, judge_packages(config))
    sources = [input_text(path, "kernel file") for path in args.kernels]
    with open_judge(config, force=True) as access:
        verdicts = [access.first.evaluate(task, source) for source in sources]
    names = [str(path) for path in args.kernels]
    print(_json(names, verdicts) if args.json else _page(names, verdicts, columns()))  # noqa: T201
    return 0 if all(verdict.correct for verdict in verdicts) else INCORRECT


def _page(names: Sequence[str], verdicts: Sequence[Verdict], width: int | None) -> str:
    pages = [verdict_page(verdict, width) for verdict in verdicts]
    if len(pages) == 1:
        return pages[0]
    told = wrapped(race_text(names[0], names[1], race(*verdicts)), width)
    return "\n\n".join([*(f"{name}\n{page}" for name, page in zip(names, pages, strict=True)), told])


def _json(names: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """Write one verdict as an object; two as ``kernels`` with ``file``, and ``race``, first to second."""
    if len(verdicts) == 1:
        return json.dumps(_as_object(verdicts[0]), indent=2)
    kernels = [{"file": name, **_as_object(found)} for name, found in zip(names, verdicts, strict=True)]
    result = race(*verdicts)
    told: dict[str, Any] | None = None
    if result is not None:
        low, high = result.interval or (None, None)
        told = {"ratio": result.ratio, "ci_low": low, "ci_high": high}
    return json.dumps({"kernels": kernels, "race": told}, indent=2)


def _as_object(verdict: Verdict) -> dict[str, Any]:
    problem_flags = [flag.id for flag in verdict.problem_flags]
    return {
        "status": verdict.status.value,
        "speedup": verdict.speedup,
        "problem_flags": problem_flags,
        **to_metrics(verdict),
    }
