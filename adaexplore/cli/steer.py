"""``adaexplore steer``: pause, resume or stop a run from another terminal, or choose what it edits next."""

import argparse
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.records import layout
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Action, Steering
from adaexplore.report.show import find_task

_EFFECTS = {
    Action.PAUSE: "starts no further step until --resume; steps in flight are finished",
    Action.RESUME: "starts steps again",
    Action.STOP: "ends after the steps in flight; the command that started it continues from there",
}

_MAX_NOTE = 2000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (  # argparse would write the whole group into one line
        "%(prog)s RUN (--pause | --resume | --stop |\n"
        "       --pin NODE | --ban NODE | --note TEXT) [--task KEY]"
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="directory of a running run")
    actions = parser.add_mutually_exclusive_group(required=True)
    for action, effect in _EFFECTS.items():
        actions.add_argument(
            f"--{action}", dest="action", action="store_const", const=action, help=f"the run {effect}"
        )
    actions.add_argument(
        f"--{Action.PIN}", type=int, metavar="NODE", help="the next step of a task edits this step's kernel"
    )
    actions.add_argument(
        f"--{Action.BAN}",
        type=int,
        metavar="NODE",
        help="the search ignores this step and all steps below it",
    )
    actions.add_argument(
        f"--{Action.NOTE}", metavar="TEXT", help='add TEXT to the end of prompts from now on; "" removes it'
    )
    parser.add_argument(
        "--task", metavar="KEY", help="only this task (default: all; for --pin and --ban the run's only task)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the request into the run directory."""
    records = RunRecords.existing(args.run)
    if not records.is_written():
        raise UsageError(
            f"no process on this machine is running {args.run}; start it, or steer it on its own machine"
        )
    if args.note is not None:
        if len(args.note) > _MAX_NOTE:
            raise UsageError(f"a note has at most {_MAX_NOTE} characters, not {len(args.note)}")
        task = "" if args.task is None else _task(records, args.task)
        Steering(args.run).add(Action.NOTE, task, text=args.note.strip())
        print(f"prompts of {task or 'all tasks'} end with that note from the next step on")  # noqa: T201
        return 0
    if args.pin is None and args.ban is None:
        Steering(args.run).add(args.action)
        print(f"{args.run} {_EFFECTS[args.action]}")  # noqa: T201
        return 0
    task, node = _task(records, args.task), args.ban if args.pin is None else args.pin
    kernel = layout.step_files(records.folder / task, layout.MCTS, node).code
    if not kernel.is_file() or not kernel.stat().st_size:
        raise UsageError(
            f"task {task} has no kernel {kernel.name} from a tree search; name a step that has one"
        )
    Steering(args.run).add(Action.BAN if args.pin is None else Action.PIN, task, node)
    pinned = f"the next planned step of {task} edits step {node}"
    banned = f"the search of {task} ignores step {node} and all steps below it"
    print(banned if args.pin is None else pinned)  # noqa: T201
    return 0


def _task(records: RunRecords, named: str | None) -> str:
    keys = records.tasks()
    if named is None and len(keys) != 1:
        raise UsageError(f"name one of the run's tasks with --task: {', '.join(keys[:20])}")
    return find_task(records, keys[0] if named is None else named).folder.name
