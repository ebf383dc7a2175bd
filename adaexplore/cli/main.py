"""``adaexplore COMMAND ...``: errors become one line and an exit code here."""

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
    "replay": "repeat a recorded run without a model or a judge, with byte-identical records",
    "stats": "print the figures of one or several runs",
    "steer": "pause, resume or stop a run from another terminal",
    "view": "show runs live on a local web page, or write them to one HTML file",
    "compare": "run the same tasks and seeds with several configurations",
    "export": "write recorded runs as training data",
    "show": "show a run's tasks, a task's steps and best kernel, or one step with its differences",
    "eval": "judge a kernel against a problem, or compare two kernels",
    "profile": "show where a kernel spends its time on the judge's GPU, and the occupancy of its launches",
    "repair": "set aside the unreadable files of a damaged run, so that it can continue",
    "re-evaluate": "judge the best kernels of a run again",
    "lint": "find mistakes that keep kernels from working; needs no judge and no GPU",
    "compile-check": "compile one kernel's launches without running them; needs no GPU",
    "baseline": "time the references and record the times for a GPU",
    "datasets": "list, download and check public benchmarks",
    "synth": "make a set of problems, with or without a model, or check one with a judge",
    "build-memory": "make rules from recorded failures, or verify them",
    "judge": "start the judge service",
    "doctor": "show what is installed, which GPUs and keys there are, and what can run",
}
"""Every command with its purpose; its module is imported on use."""

_MOST_MISTAKES = 20

logger = logging.getLogger("adaexplore")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 on success, else the exit code of the error (see ``adaexplore.core.errors``).
    """
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that it cannot show
    try:
        with sigterm_interrupts():
            return _run(sys.argv[1:] if arguments is None else arguments)
    except SystemExit:  # from argparse, which has printed the message
        _flush()
        raise
    except AdaExploreError as error:
        lines = str(error).splitlines()
        if len(lines) > _MOST_MISTAKES:
            lines[_MOST_MISTAKES:] = [f"and {len(lines) - _MOST_MISTAKES} more mistakes"]
        for line in lines:
            _tell(without_control(line))
        return error.exit_code
    except KeyboardInterrupt:
        _tell("interrupted")
        return 130
    except BrokenPipeError:  # the reader, such as head, closed the pipe
        _drop_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            _tell(f"cannot use {error.filename}: {error.strerror}")
            return StorageError.exit_code
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _tell("cannot write the output: no space is left")
            _drop_output()
            return StorageError.exit_code
        logger.exception("this is a bug in adaexplore; please report it with the lines above")
        return 1


def _run(given: Sequence[str]) -> int:
    completing = "_ARGCOMPLETE" in os.environ  # set by the shell for completion
    if completing:
        given = os.environ.get("COMP_LINE", "").split()[1:]
    parser = _Parser(prog="adaexplore", description="Turn PyTorch modules into faster Triton kernels.")
    parser.add_argument("--version", action="version", version=f"adaexplore {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = parser
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
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
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"adaexplore: {message}; see {self.prog} --help\n")


def _nearest(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _open_closed_streams() -> None:
    """Discard what is written to an output that was closed before the start."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _tell(line: str) -> None:
    """Print an error; if even that is impossible, the exit code tells it."""
    try:
        print(f"adaexplore: {line}", file=sys.stderr, flush=True)  # noqa: T201
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _flush() -> None:
    """Flush the output, so that a failed write is an error of the command."""
    try:
        print(end="", flush=True)  # noqa: T201
    except BrokenPipeError:
        _drop_output()


def _drop_output() -> None:
    """Discard the remaining output, so that the exit of the process reports no error about it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"adaexplore.cli.{command.replace('-', '_')}")
