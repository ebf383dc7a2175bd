"""Recorded trees, in the web-bundle format of the released AdaExplore."""

import gzip
import json
import logging
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from adaexplore.core.errors import ConfigError
from adaexplore.core.plan import StepKind

logger = logging.getLogger("bench_search")


@dataclass(frozen=True)
class RecordedStep:
    """One node of a recorded tree; ``speedup`` and ``runtime_ms`` count if it is correct."""

    id: int
    parent_id: int
    kind: StepKind
    context_ids: tuple[int, ...]
    correct: bool
    speedup: float
    runtime_ms: float | None = None
    source: str = ""
    error: str = ""

    @property
    def level(self) -> float | None:
        """The natural logarithm of the speedup; None if the kernel failed."""
        return math.log(self.speedup) if self.correct and 0 < self.speedup < math.inf else None


@dataclass(frozen=True)
class RecordedTree:
    """One problem's search: its steps in order, without the root.

    ``top`` is the level that counts as the whole gain; 0 if no correct kernel beats 1x. ``file`` is the
    file's name without its endings.
    """

    name: str
    steps: tuple[RecordedStep, ...]
    top: float
    file: str = ""
    reference: str = ""

    def curve(self, length: int) -> list[float]:
        """Return the share of the log-gain after 1 .. ``length`` steps; constant after the last step."""
        shares, best = [], 0.0
        for step in self.steps[:length]:
            best = max(best, step.level or 0.0)
            shares.append(best / self.top)
        return shares + [best / self.top] * (length - len(shares))


def mean_curve(trees: Sequence[RecordedTree], length: int) -> tuple[float, ...]:
    """Return the mean share of the log-gain of ``trees`` after each of the first steps."""
    return tuple(fmean(values) for values in zip(*(tree.curve(length) for tree in trees), strict=True))


def read_trees(folder: Path) -> list[RecordedTree]:
    """Return all trees of ``folder``, ``*.json`` and ``*.json.gz``, by name.

    Raises:
        ConfigError: the folder holds no tree, or a file that is none.
    """
    files = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")])
    if not files:
        raise ConfigError(f"{folder} holds no recorded trees, *.json or *.json.gz: name another folder")
    return [read_tree(file) for file in files]


def read_tree(file: Path) -> RecordedTree:
    """Read the tree in ``file``, compressed by gzip or not.

    Raises:
        ConfigError: it is not a tree in that format.
    """
    try:
        packed = file.read_bytes()
        data = json.loads(gzip.decompress(packed) if file.suffix == ".gz" else packed)
        steps = tuple(_step(item) for item in data["steps"] if item["created_by"] != StepKind.DUMMY_ROOT)
        name = Path(str(data.get("run_dir") or "")).name
        known = {0}
        for step in steps:
            if missing := {step.parent_id, *step.context_ids} - known:
                raise ValueError(f"step {step.id} names node {min(missing)}, which is not before it")
            known.add(step.id)
    except (
        *(OSError, EOFError, zlib.error, RecursionError),
        *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    ) as error:
        raise ConfigError(
            f"{file} is not a recorded tree ({type(error).__name__}: {error}): leave it out of the folder"
        ) from None
    top = max((step.level for step in steps if step.level is not None), default=0.0)
    stem, reference = file.name.partition(".json")[0], str(data.get("reference_src") or "")
    return RecordedTree(name or stem, steps, max(top, 0.0), stem, reference)


def usable(trees: Sequence[RecordedTree], leave_out: Sequence[str]) -> list[RecordedTree]:
    """Return ``trees`` without those named in ``leave_out`` or without a gain.

    Raises:
        ConfigError: a name fits no tree, or none is left.
    """
    for name in leave_out:
        if not any(name in (tree.name, tree.file) for tree in trees):
            known = ", ".join(tree.name for tree in trees)
            raise ConfigError(f"--leave-out {name}: no such tree, there are {known}")
    kept = []
    for tree in trees:
        if {tree.name, tree.file} & set(leave_out):
            logger.info("%s: left out", tree.name)
        elif not tree.top > 0:
            logger.info("%s: left out, no kernel in it is correct and faster than 1x", tree.name)
        else:
            kept.append(tree)
    if not kept:
        raise ConfigError("no recorded tree is left to fit to (a line above for each says why)")
    return kept


def _step(item: dict[str, Any]) -> RecordedStep:
    return RecordedStep(
        id=int(item["node_id"]),
        parent_id=int(item.get("parent_node_id") or 0),
        kind=StepKind(item["created_by"]),
        context_ids=tuple(int(node) for node in item.get("context_node_ids") or ()),
        correct=bool(item["score"]["correct"]),
        speedup=float(item["score"].get("fast_p") or 0.0),
        runtime_ms=item.get("runtime_us"),  # which holds milliseconds
        source=str(item.get("code") or ""),
        error=str(item.get("error") or ""),
    )
