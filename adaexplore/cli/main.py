"""``adaexplore COMMAND ...``: the border where errors become one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from adaexplore import __version__
from adaexplore.cli.stopping import sigterm_interrupts
from adaexplore.core.errors import AdaExploreError, StorageError

COMMANDS = {
    "run": "search for faster kernels: one task, a file of your own, or a whole list",
    "replay": "do a recorded run again without a model and without a judge, to the same bytes",
    "stats": "figures of one or several runs",
    "steer": "pause, resume or stop a run from another terminal",
    "view": "a local page of runs, live, or one file with all of it",
    "eval": "judge one kernel against one problem",
    "re-evaluate": "judge the best kernels of a run again",
    "lint": "find mistakes in kernels with which they cannot work; needs no judge and no GPU",
    "compile-check": "compile one kernel's launches without running them; needs no GPU",
    "baseline": "time the references themselves and record the times for a GPU",
    "synth": "make a set of problems, with a model or without one, or have a judge look at one",
    "build-memory": "rules out of recorded failures, and proof that they hold",
    "judge": "start the judge service",
    "doctor": "what is installed, which GPUs and keys are there, what would run",
}
"""Every command with its purpose; each has a module of its own, imported when it is used."""

logger = logging.getLogger("adaexplore")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 on success, else the exit code of the error (see ``adaexplore.core.errors``).
    """
    try:
        with sigterm_interrupts():
            return _run(sys.argv[1:] if arguments is None else arguments)
    except AdaExploreError as error:
        print(f"adaexplore: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        print("adaexplore: interrupted", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:
        _drop_output()
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            print(f"adaexplore: cannot use {error.filename}: {error.strerror}", file=sys.stderr)  # noqa: T201
            return StorageError.exit_code
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            print("adaexplore: cannot write the output: no space is left", file=sys.stderr)  # noqa: T201
            _drop_output()
            return StorageError.exit_code
        logger.exception("this is a fault of adaexplore itself; please report it with the lines above")
        return 1


def _run(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="adaexplore", description="Turn PyTorch modules into faster Triton kernels."
    )
    parser.add_argument("--version", action="version", version=f"adaexplore {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose.capitalize() + ".")
        if list(given[:1]) == [name]:
            _module(name).add_arguments(command)
    args = parser.parse_args(given)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "anthropic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    code = int(_module(args.command).run(args))
    print(end="", flush=True)  # noqa: T201 - what cannot be written is an error of the command's own
    return code


def _drop_output() -> None:
    """Have what is still to be printed go nowhere, so that the end of the process says nothing of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"adaexplore.cli.{command.replace('-', '_')}")
