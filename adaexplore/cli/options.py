"""Options that several commands have, and what they mean for the configuration."""

from __future__ import annotations

import argparse
from pathlib import Path

from adaexplore.settings.config import RunConfig


def add_config(parser: argparse.ArgumentParser) -> None:
    """Declare ``--config``, ``--set`` and ``--judge``."""
    parser.add_argument("--config", type=Path, default=None, help="YAML file; without one, defaults")
    add_set(parser)
    add_judge(parser)


def add_set(parser: argparse.ArgumentParser) -> None:
    """Declare ``--set``."""
    keys = parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one key (repeatable)"
    )
    keys.completer = lambda **_: [f"{key}=" for key in RunConfig.model_fields]  # type: ignore[attr-defined]


def add_judge(parser: argparse.ArgumentParser) -> None:
    """Declare ``--judge``."""
    parser.add_argument(
        "--judge",
        default=None,
        metavar="URL",
        help="ask this running judge; the same as use_remote_eval=true and remote_eval_url=URL",
    )


def overrides(args: argparse.Namespace) -> list[str]:
    """Return the ``KEY=VALUE`` texts of ``--set``, then those that ``--judge`` stands for."""
    judge = [] if args.judge is None else ["use_remote_eval=true", f"remote_eval_url={args.judge}"]
    return [*args.set, *judge]
