"""Options that several commands share, and the configuration that they and ``--config`` give."""

import argparse
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from adaexplore.core.errors import UsageError
from adaexplore.settings.config import Preset, RunConfig
from adaexplore.settings.load import load_config

WITHOUT_FILE: Preset = "default"
"""Preset of a command without a configuration file; a file that names none means ``paper``."""


@dataclass(frozen=True)
class _Short:
    """A short option for a key; ``value`` is what it sets if it takes none."""

    key: str
    about: str
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    value: str | None = None


_SHORT = {
    "preset": _Short("preset", "defaults of keys that are not given", choices=get_args(Preset)),
    "steps": _Short("total_steps", "steps per task", "N"),
    "out": _Short("save_path", "run directory, new or to continue", "DIR"),
    "model": _Short("model_name", "name of the model", "NAME"),
    "offline": _Short("server_type", "no model and no key: the offline writer answers", value="offline"),
    "timeout": _Short("timeout", "seconds that the kernel may take", "S"),
    "target": _Short("compile_target", "architecture to compile for, such as sm_90", "ARCH"),
}
"""Options by name; each is the same as ``--set KEY=VALUE``."""
_NUMBERS = ("steps", "timeout")


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, help="YAML file (default: built-in settings)")
    add_set(parser)
    add_judge(parser)
    add_short(parser, "preset")


def add_set(parser: argparse.ArgumentParser, what: str = "override one key (repeatable)") -> None:
    keys = parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=what)
    keys.completer = lambda **_: [f"{key}=" for key in RunConfig.model_fields]  # type: ignore[attr-defined]


def add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--judge",
        metavar="URL",
        help="use this running judge; same as use_remote_eval=true and remote_eval_url=URL",
    )


def add_task(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--task`` of a command that takes one problem."""
    parser.add_argument(
        "--task",
        type=Path,
        action=_Once,
        required=required,
        metavar="PROBLEM.py",
        help="the problem's file",
    )


class _Once(argparse.Action):
    """Stores a value that may be given once: another one would replace it silently."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given twice; this command takes one problem")
        setattr(namespace, self.dest, values)


def add_short(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add short options for keys, such as ``steps``: ``--steps N`` is ``--set total_steps=N``."""
    for name in names:
        short = _SHORT[name]
        said = f"{short.about} (key {short.key})"
        if short.value is not None:
            parser.add_argument(
                f"--{name}", dest=_place(name), action="store_const", const=short.value, help=said
            )
        else:
            parser.add_argument(
                f"--{name}", dest=_place(name), metavar=short.metavar, choices=short.choices, help=said
            )


def overrides(args: argparse.Namespace) -> list[str]:
    """Return the ``KEY=VALUE`` texts of ``--set``, then those of the short options and ``--judge``.

    Raises:
        UsageError: a short option and ``--set`` give the same key.
    """
    texts = list(args.set)
    for name, short in _SHORT.items():
        value: str | None = getattr(args, _place(name), None)
        if value is None:
            continue
        for text in args.set:
            if text.partition("=")[0].strip() == short.key:
                raise UsageError(f"--{name} and --set {text} both give {short.key}; leave one of them out")
        texts.append(f"{short.key}={value if name in _NUMBERS else json.dumps(value)}")
    if getattr(args, _place("offline"), None) and getattr(args, _place("model"), None):
        raise UsageError("--offline asks no model; leave out --model")
    judge = [] if args.judge is None else ["use_remote_eval=true", f"remote_eval_url={args.judge}"]
    return texts + judge


def configuration(args: argparse.Namespace, path: Path | None, *settings: str) -> RunConfig:
    """Load the configuration of a command: the file ``path``, its own ``settings``, then the options.

    Raises:
        ConfigError: a line for every problem found.
        UsageError: as :func:`overrides`.
    """
    from adaexplore.run.vendors import check_vendor  # commands without a configuration start faster

    preset = [f"preset={WITHOUT_FILE}"] if path is None else []
    return check_vendor(load_config(path, [*preset, *settings, *overrides(args)]))


def _place(name: str) -> str:
    """Return the attribute of a short option; ``out`` alone is a folder of the command itself elsewhere."""
    return f"short_{name}"


def need_packages(what: str, extra: str, *names: str) -> None:
    """Check that the packages of an extra are installed.

    Raises:
        UsageError: one of them is not.
    """
    if any(importlib.util.find_spec(name) is None for name in names):
        raise UsageError(f"{what} needs its own packages: pip install 'adaexplore[{extra}]'")
