"""``adaexplore steer``: pause, resume or stop a run from another terminal."""

from __future__ import annotations

import argparse
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Action, Steering

_EFFECTS = {
    Action.PAUSE: "begins no further step until --resume; steps in flight are finished",
    Action.RESUME: "begins steps again",
    Action.STOP: "ends after the steps in flight; the command that started it goes on from there",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of a run that is going on")
    actions = parser.add_mutually_exclusive_group(required=True)
    for action, effect in _EFFECTS.items():
        actions.add_argument(
            f"--{action}", dest="action", action="store_const", const=action, help=f"the run {effect}"
        )


def run(args: argparse.Namespace) -> int:
    """Note the request for the run to find."""
    records = RunRecords.existing(args.run)
    if not records.is_written():
        raise UsageError(f"no process of this machine writes {args.run}; start it, or steer it where it runs")
    Steering(args.run).add(args.action)
    print(f"{args.run} {_EFFECTS[args.action]}")  # noqa: T201
    return 0
