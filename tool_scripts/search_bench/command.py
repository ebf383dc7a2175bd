"""The command of ``tool_scripts/bench_search.py``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from adaexplore.core.errors import AdaExploreError, ConfigError
from tool_scripts.search_bench.clock import Prices
from tool_scripts.search_bench.environment import Environment
from tool_scripts.search_bench.report import table
from tool_scripts.search_bench.runs import Call, compare, hold_out, tier_a
from tool_scripts.search_bench.suites import load_environment

logger = logging.getLogger("bench_search")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    2: something given cannot be used; 1: one of its processes was ended; 130: interrupted.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    options = _parser().parse_args(arguments)
    try:
        with _stdout_kept():
            result = run(options)
    except AdaExploreError as error:
        logger.error("bench_search: %s", error)
        return 2
    except BrokenProcessPool:
        logger.error("bench_search: a process of its own was ended, by the environment or for its memory")
        return 1
    except KeyboardInterrupt:
        logger.error("bench_search: interrupted")
        return 130
    text = json.dumps(result, indent=1)
    if options.out is not None:
        try:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            logger.error("bench_search: cannot write %s: %s", options.out, error.strerror or error)
            return 2
    sys.stdout.write((text if options.json else table(result)) + "\n")
    return 0


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """What an environment of the user's prints goes to standard error, also from other processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What the options ask for, as data.

    Raises:
        ConfigError: an option, a tree or an environment cannot be used.
    """
    call = Call(
        seeds=range(options.first_seed, options.first_seed + options.seeds),
        steps=options.steps,
        in_flight=options.in_flight,
        jobs=options.jobs or os.cpu_count() or 1,
        prices=Prices(
            options.call_s,
            options.call_sigma,
            options.evaluation_s,
            options.gpus,
            options.call_usd,
            options.gpu_hour_usd,
        ),
    )
    if options.env is not None:
        return {"environment": str(options.env), **compare([load_environment(options.env)], call)}
    if options.tier == "a":
        if options.fit is None:
            raise ConfigError("--tier a needs recorded trees: give --fit DIR")
        if options.splits:
            return {"tier": "a", **hold_out(options.fit, options.leave_out, options.splits, call)}
        return {"tier": "a", **tier_a(options.fit, options.leave_out, call)}
    environments: Sequence[Environment]
    if options.tier == "b":
        from tool_scripts.search_bench.table_environment import TABLE, kernel_problems

        environments = kernel_problems(options.table or TABLE)
        return {"tier": "b", **compare(environments, call)}
    from tool_scripts.search_bench.landscapes import landscapes

    environments = landscapes()
    families = {item.name: compare([item], call) for item in environments}
    return {"tier": "c", **compare(environments, call), "families": families}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench_search.py", description="Compare search policies without a model (docs/search.md)."
    )
    parser.add_argument("--tier", choices=("a", "b", "c"), default="a", help="which environments (a)")
    parser.add_argument(
        "--env", type=Path, help="a Python file with root, small and large, in place of a tier"
    )
    parser.add_argument("--fit", type=Path, help="folder of recorded trees for tier a")
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="NAME",
        help="a recorded tree to leave out; again for more",
    )
    parser.add_argument(
        "--splits", type=_count, default=0, help="fit to half of the trees, run on the others, N times"
    )
    parser.add_argument("--table", type=Path, help="table of timed kernels for tier b")
    parser.add_argument("--seeds", type=_count, default=200, help="simulations of each policy (200)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--steps", type=_count, default=100, help="steps of each (100)")
    parser.add_argument("--in-flight", type=_count, default=4, help="steps in flight to compare with one (4)")
    parser.add_argument("--call-s", type=_positive, default=60.0, help="median seconds of a model call (60)")
    parser.add_argument("--call-sigma", type=_positive, default=0.5, help="sigma of its logarithm (0.5)")
    parser.add_argument("--evaluation-s", type=_positive, default=4.0, help="seconds of an evaluation (4)")
    parser.add_argument("--gpus", type=_count, default=1, help="evaluations at a time (1)")
    parser.add_argument("--call-usd", type=_positive, default=0.02, help="dollars of a model call (0.02)")
    parser.add_argument("--gpu-hour-usd", type=_positive, default=3.0, help="dollars of a GPU hour (3)")
    parser.add_argument("--jobs", type=_count, help="processes (one a core)")
    parser.add_argument("--json", action="store_true", help="JSON in place of a table")
    parser.add_argument("--out", type=Path, help="file to write the JSON to, besides")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small, give 1 or more")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no amount, give 0 or more")
    return value
