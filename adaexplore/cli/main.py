"""``adaexplore COMMAND ...``: the border where errors become one line and an exit code."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import io
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import NoReturn

from adaexplore import __version__
from adaexplore.cli.stopping import sigterm_interrupts
from adaexplore.core.errors import AdaExploreError, StorageError
from adaexplore.report.text import without_control

COMMANDS = {
    "run": "search for faster kernels: one task, a file of your own, or a whole list",
    "replay": "do a recorded run again without a model and without a judge, to the same bytes",
    "stats": "figures of one or several runs",
    "steer": "pause, resume or stop a run from another terminal",
    "view": "a local page of runs, live, or one file with all of it",
    "compare": "the same tasks and seeds under several configurations",
    "export": "recorded runs as training data",
    "show": "a run's tasks, a task's steps and best kernel, or one step with its differences",
    "eval": "judge a kernel against a problem, or two against each other",
    "profile": "where a kernel spends its time on the judge's GPU, and what its launches occupy",
    "repair": "set aside what cannot be read in a damaged run, so that it can go on",
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

_MOST_MISTAKES = 20

logger = logging.getLogger("adaexplore")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 on success, else the exit code of the error (see ``adaexplore.core.errors``).
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no error
    try:
        with sigterm_interrupts():
            return _run(sys.argv[1:] if arguments is None else arguments)
    except SystemExit:  # of argparse, which has printed
        _flush()
        raise
    except AdaExploreError as error:
        lines = str(error).splitlines()
        if len(lines) > _MOST_MISTAKES:
            lines[_MOST_MISTAKES:] = [f"and {len(lines) - _MOST_MISTAKES} more mistakes"]
        for line in lines:
            print(f"adaexplore: {without_control(line)}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        print("adaexplore: interrupted", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:  # the reader, such as head, has seen enough
        _drop_output()
        return 0
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
    completing = "_ARGCOMPLETE" in os.environ  # set by a shell that completes a command line
    if completing:
        given = os.environ.get("COMP_LINE", "").split()[1:]
    parser = _Parser(prog="adaexplore", description="Turn PyTorch modules into faster Triton kernels.")
    parser.add_argument("--version", action="version", version=f"adaexplore {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = parser
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose.capitalize() + ".")
        if list(given[:1]) == [name]:
            chosen = command
            _module(name).add_arguments(command)
    if completing:
        import argcomplete

        argcomplete.autocomplete(parser)
    if given and not given[0].startswith("-") and given[0] not in COMMANDS:
        parser.error(f"no command is called {given[0]!r}{_nearest(given[0], COMMANDS)}")
    args, unknown = parser.parse_known_args(given)
    if unknown:
        near = _nearest(unknown[0].partition("=")[0], chosen._option_string_actions)
        chosen.error(f"unknown argument {unknown[0]!r}{near}")
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "anthropic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    code = int(_module(args.command).run(args))
    _flush()
    return code


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"adaexplore: {message}; see {self.prog} --help\n")


def _nearest(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _flush() -> None:
    """Write what is printed; what cannot be written is an error of the command's own."""
    try:
        print(end="", flush=True)  # noqa: T201
    except BrokenPipeError:
        _drop_output()


def _drop_output() -> None:
    """Have what is still to be printed go nowhere, so that the end of the process says nothing of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"adaexplore.cli.{command.replace('-', '_')}")
