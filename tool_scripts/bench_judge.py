"""Measure the judge: integrity, repeatability, speed, each figure with its target.

    python tool_scripts/bench_judge.py --device cuda --candidates DIR --json

``results/judge/README.md`` says what each figure means. The work is in ``tool_scripts/judge_bench``.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import get_args

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # works without an installation

from adaexplore.core.errors import UsageError
from adaexplore.core.wire import Direction, DtypeName
from tool_scripts.judge_bench import candidates, own, table
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.parts import PARTS
from tool_scripts.judge_bench.plan import Plan, log
from tool_scripts.judge_bench.records import Ledger
from tool_scripts.judge_bench.service import session
from tool_scripts.script import script, show

UNITS_LEFT = 75
"""Exit code if units are left; run the same command again."""
DEFAULT_PARTS = {
    "cuda": ("honest", "repeat", "aa", "throughput", "latency"),
    "cpu": ("honest",),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="bench_judge.py",
        description="Measure the judge. The same command continues a stopped call; its state is in --out.",
        epilog=f"Exit code {UNITS_LEFT}: the time was up and units are left; run the same command again.",
    )
    add = made.add_argument
    add("--device", choices=("cuda", "cpu"), help="device of the judge (needed unless --merge)")
    add("--part", action="append", choices=tuple(PARTS), help="measure this part; repeatable (a default set)")
    add("--merge", action="store_true", help="only make the table from the state in --out")
    add("--candidates", type=Path, metavar="DIR", help="recorded trajectories (*.json[.gz]) or pairs")
    add("--own", type=Path, action="append", default=[], metavar="DIR", help="more honest pairs; repeatable")
    add("--kernelbench", type=Path, metavar="DIR", help="level<N>/N_*.py: for problems and trajectories")
    add("--levels", type=_levels, default=(3, 2, 1), help="levels of KernelBench, in this order (3,2,1)")
    add("--dtype", choices=get_args(DtypeName), default="fp32", help="of problems (%(default)s)")
    add("--direction", choices=get_args(Direction), default="forward", help="of problems (%(default)s)")
    add("--unit-limit-s", type=int, default=120, help="own seconds of each side in problems (%(default)s)")
    add("--out", type=Path, default=Path("outputs/judge-bench"), metavar="DIR", help="state (%(default)s)")
    add("--results", type=Path, default=Path("results/judge"), metavar="DIR", help="of --merge (%(default)s)")
    add("--json", action="store_true", help="figures as JSON instead of a table")
    add("--limit-s", type=float, default=540.0, help="start no unit later (%(default)s)")
    add("--seed", type=int, default=0, help="seed of every selection (%(default)s)")
    add("--slots", type=int, default=4, help="parallel evaluations on the device (%(default)s)")
    add("--in-flight", type=int, help="parallel submissions (twice the slots)")
    add("--plain-jobs", type=int, default=10, help="parallel plain comparisons (%(default)s)")
    add("--child-limit-s", type=float, default=60.0, help="time limit of a plain comparison (%(default)s)")
    add("--count", type=int, help="candidates or problems of a part (each has its default)")
    add("--repeats", type=int, help="rounds of repeat (20), again (20) and aa (5)")
    add("--designs", type=int, default=4, help="kernels of the offline writer per problem (%(default)s)")
    add("--revision", help="revision of the measured sources (default: from git)")
    return made


@script
def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parser().parse_args(words)
    left = 0 if options.merge else _measure(options, words)
    found = table.of_folder(options.out)
    if options.merge:
        log.info("written: %s", table.store(found, options.results))
    if options.json:
        show(table.as_data(found))
    else:
        sys.stdout.write(table.as_text(found) + "\n")
    return UNITS_LEFT if left else 0


def _levels(text: str) -> tuple[int, ...]:
    return tuple(int(level) for level in text.split(","))


def _measure(options: argparse.Namespace, words: list[str]) -> int:
    if options.device is None:
        raise UsageError("name the device: --device cuda or --device cpu (or --merge)")
    options.in_flight = options.in_flight or 2 * options.slots
    if min(options.slots, options.plain_jobs, options.in_flight, options.designs) < 1:
        raise UsageError("--slots, --in-flight, --plain-jobs and --designs are at least 1")
    parts = options.part or list(DEFAULT_PARTS[options.device])
    if (options.dtype, options.direction) != ("fp32", "forward") and parts != ["problems"]:
        raise UsageError("--dtype and --direction are for --part problems alone")
    plan = _plan(options, parts)
    now = session(options.device, words, options.revision)
    left = 0
    for part in dict.fromkeys(parts):
        ledger = Ledger(options.out, options.device, plan.state_of(part))
        ledger.open_session(now)
        log.info("part %s", part)
        begin = time.monotonic()
        units = PARTS[part](plan, ledger)
        state = f"{units} units left" if units else "complete"
        log.info("part %s: %s after %.0f s", part, state, time.monotonic() - begin)
        left += units
    return left


def _plan(options: argparse.Namespace, parts: Sequence[str]) -> Plan:
    folder = options.candidates
    recorded = [] if folder is None else candidates.read(folder, options.kernelbench)
    ours: list[Candidate] = []
    if "honest" in parts:
        ours += own.offline(options.seed, options.designs)
        ours += own.kernels() if options.device == "cuda" else []
        ours += [each for folder in options.own for each in candidates.read(folder)]
    deadline = time.monotonic() + options.limit_s
    given = vars(options) | {"recorded": recorded, "own": ours, "deadline": deadline}
    return Plan(**{each.name: given[each.name] for each in fields(Plan)})


if __name__ == "__main__":
    sys.exit(main())
