"""Which environments a call runs in: a tier's, or those of a file."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from adaexplore.core.errors import ConfigError
from tool_scripts.search_bench.environment import Environment
from tool_scripts.search_bench.moves import pooled_moves, recorded_moves, repair_rate, timing_noise
from tool_scripts.search_bench.recorded import RecordedProblem
from tool_scripts.search_bench.traces import RecordedTree

NEEDED = ("root", "small", "large")


class PluggedEnvironment:
    """The functions of a file for ``--env``."""

    def __init__(self, name: str, source: Any) -> None:
        self.name = name
        self._source = source
        self.top: float | None = None
        top = getattr(source, "top", None)
        if isinstance(top, int | float) and math.isfinite(top) and top > 1:
            self.top = float(top)

    def root(self, rng: Random) -> Any:
        """The file's."""
        return self._call("root", rng)

    def small(self, parent: Any, rng: Random) -> Any:
        """The file's."""
        return self._call("small", parent, rng)

    def large(self, parent: Any, context: Sequence[Any], rng: Random) -> Any:
        """The file's."""
        return self._call("large", parent, context, rng)

    def _call(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._source, function)(*arguments)
        except (Exception, SystemExit) as error:  # whatever a file of the user's raises
            raise ConfigError(f"{self.name}: {function} raised {type(error).__name__}: {error}") from error


def load_environment(file: Path) -> Environment:
    """The environment in ``file``: its functions, or an instance of its class ``Environment``.

    Raises:
        ConfigError: the file cannot be loaded, or lacks a function.
    """
    spec = importlib.util.spec_from_file_location(f"bench_environment_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigError(
            f"{file} is no Python file: give one with root(rng), small(parent, rng), large(...)"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        source = module if hasattr(module, "root") else module.Environment()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a file of the user's raises
        raise ConfigError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from None
    missing = [name for name in NEEDED if not callable(getattr(source, name, None))]
    if missing:
        raise ConfigError(
            f"{file} lacks {', '.join(missing)}: it needs root(rng), small(parent, rng), large(...)"
        )
    return PluggedEnvironment(file.stem, source)


@dataclass(frozen=True)
class Fit:
    """Which trees were used, and the share of lineages with a ceiling."""

    trees: tuple[RecordedTree, ...]
    ceiling_share: float


def recorded_problems(fit: Fit, others: Sequence[RecordedTree] | None = None) -> list[RecordedProblem]:
    """One environment a tree of ``others`` (by default of the fit), each with its own recorded steps.

    What is shared (ceilings, noise, repairs) comes from the fit.
    """
    noise, repairs = timing_noise(fit.trees), repair_rate(fit.trees)
    return [
        RecordedProblem(tree.name, tree.top, recorded_moves(tree), fit.ceiling_share, noise, repairs)
        for tree in (fit.trees if others is None else others)
    ]


def transferred_problems(fit: Fit, others: Sequence[RecordedTree]) -> list[RecordedProblem]:
    """One environment a tree of ``others``, which give no more than their greatest level.

    All steps come from the fitted trees, scaled to that level.
    """
    noise, repairs = timing_noise(fit.trees), repair_rate(fit.trees)
    return [
        RecordedProblem(
            tree.name, tree.top, pooled_moves(fit.trees, tree.top), fit.ceiling_share, noise, repairs
        )
        for tree in others
    ]


def usable(
    trees: Sequence[RecordedTree], leave_out: Sequence[str], say: Callable[[str], None]
) -> list[RecordedTree]:
    """``trees`` without those named in ``leave_out``, without a gain, or with a constant output.

    Raises:
        ConfigError: a name fits no tree, or none is left.
    """
    for name in leave_out:
        if not any(_fits(name, tree) for tree in trees):
            known = ", ".join(tree.name for tree in trees)
            raise ConfigError(f"--leave-out {name}: no such tree, there are {known}")
    kept = []
    for tree in trees:
        step = tree.proof_of_constant_output()
        if any(_fits(name, tree) for name in leave_out):
            say(f"{tree.name}: left out")
        elif not tree.top > 0:
            say(f"{tree.name}: left out, no kernel in it is correct and faster than 1x")
        elif step is not None:
            say(f"{tree.name}: left out, its output is constant (step {step} is correct and reads no input)")
        else:
            kept.append(tree)
    if not kept:
        raise ConfigError("no recorded tree is left to fit to (a line above for each says why)")
    return kept


def _fits(name: str, tree: RecordedTree) -> bool:
    return name in (tree.name, tree.file)
