"""Logs, errors and output of the scripts."""

import functools
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

from adaexplore.core.errors import AdaExploreError
from adaexplore.core.files.atomic import json_text, write_text

P = ParamSpec("P")


def script(main: Callable[P, int | None]) -> Callable[P, int]:
    """Return ``main`` with logs on stderr; a deliberate error becomes one line and its exit code."""

    @functools.wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        for noisy in ("httpx", "httpx2"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        try:
            return main(*args, **kwargs) or 0
        except AdaExploreError as error:
            logging.error("error: %s", error)
            return error.exit_code
        except KeyboardInterrupt:
            logging.error("interrupted")
            return 130

    return run


def show(figures: object, out: Path | None = None) -> None:
    """Print figures as JSON; write them to the file ``out`` too.

    Raises:
        StorageError: the file cannot be written.
    """
    text = json_text(figures)
    if out is not None:
        write_text(out, text)
    sys.stdout.write(text)
