"""Options that several commands share, and their effect on the configuration."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.settings.config import RunConfig


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, help="YAML file (default: built-in settings)")
    add_set(parser)
    add_judge(parser)


def add_set(parser: argparse.ArgumentParser, what: str = "override one key (repeatable)") -> None:
    keys = parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=what)
    keys.completer = lambda **_: [f"{key}=" for key in RunConfig.model_fields]  # type: ignore[attr-defined]


def add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--judge",
        metavar="URL",
        help="use this running judge; same as use_remote_eval=true and remote_eval_url=URL",
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", metavar="S", help="seconds that the kernel may take (key timeout)")


def overrides(args: argparse.Namespace) -> list[str]:
    """Return the ``KEY=VALUE`` texts of ``--set``, then those of ``--judge`` and ``--timeout``."""
    judge = [] if args.judge is None else ["use_remote_eval=true", f"remote_eval_url={args.judge}"]
    seconds = getattr(args, "timeout", None)
    return [*args.set, *judge, *([] if seconds is None else [f"timeout={seconds}"])]


def need_packages(what: str, extra: str, *names: str) -> None:
    """Check that the packages of an extra are installed.

    Raises:
        UsageError: one of them is not.
    """
    if any(importlib.util.find_spec(name) is None for name in names):
        raise UsageError(f"{what} needs its own packages: pip install 'adaexplore[{extra}]'")
