"""Compare search policies without a model, on a simulated clock; prints JSON.

    python tool_scripts/bench_search.py --tier a --fit DIR --seeds 200

``results/search/README.md`` explains each figure. The parts are in ``tool_scripts/search_bench``.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation

from adaexplore.core.errors import ConfigError
from tool_scripts.script import script, show
from tool_scripts.search_bench.figures import compare
from tool_scripts.search_bench.fit import tier_a
from tool_scripts.search_bench.kernel_table import kernel_problems
from tool_scripts.search_bench.landscapes import landscapes
from tool_scripts.search_bench.simulation import Call, Prices


@script
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bench_search.py", description="Compare search policies without a model (results/search)."
    )
    add = parser.add_argument
    add("--tier", choices=("a", "b", "c"), default="a", help="which environments (a)")
    add("--fit", type=Path, help="folder of recorded trees for tier a")
    add("--leave-out", action="append", default=[], metavar="NAME", help="a tree to leave out; repeatable")
    add("--seeds", type=int, default=200, help="simulations of each policy (200)")
    add("--first-seed", type=int, default=0, help="the first of them (0)")
    add("--steps", type=int, default=100, help="steps of each (100)")
    add("--in-flight", type=int, default=4, help="steps in flight to compare with one (4)")
    add("--call-s", type=float, default=60.0, help="median seconds of a model call (60)")
    add("--call-sigma", type=float, default=0.5, help="sigma of its logarithm (0.5)")
    add("--evaluation-s", type=float, default=4.0, help="seconds of an evaluation (4)")
    add("--gpus", type=int, default=1, help="evaluations at a time (1)")
    add("--call-usd", type=float, default=0.02, help="dollars of a model call (0.02)")
    add("--gpu-hour-usd", type=float, default=3.0, help="dollars of a GPU hour (3)")
    add("--jobs", type=int, help="processes (one a core)")
    add("--out", type=Path, help="file to write the JSON to, besides")
    options = parser.parse_args(arguments)
    show(run(options), options.out)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures that the options ask for.

    Raises:
        ConfigError: an option or a tree cannot be used.
    """
    if min(options.seeds, options.steps, options.in_flight, options.gpus) < 1:
        raise ConfigError("--seeds, --steps, --in-flight and --gpus are at least 1")
    call = Call(
        seeds=range(options.first_seed, options.first_seed + options.seeds),
        steps=options.steps,
        in_flight=options.in_flight,
        jobs=options.jobs or os.cpu_count() or 1,
        prices=Prices(**{field.name: getattr(options, field.name) for field in fields(Prices)}),
    )
    if options.tier == "b":
        return {"tier": "b", **compare(kernel_problems(), call)}
    if options.tier == "c":
        families = {item.name: compare([item], call) for item in landscapes()}
        return {"tier": "c", **compare(landscapes(), call), "families": families}
    if options.fit is None:
        raise ConfigError("--tier a needs recorded trees: give --fit DIR")
    return {"tier": "a", **tier_a(options.fit, options.leave_out, call)}


if __name__ == "__main__":
    sys.exit(main())
