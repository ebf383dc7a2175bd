"""Recorded trees, in the web-bundle format of the released AdaExplore."""

from __future__ import annotations

import ast
import gzip
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import ConfigError
from adaexplore.core.plan import StepKind

METADATA = frozenset(
    {"shape", "size", "device", "dtype", "numel", "ndim", "dim", "stride", "is_contiguous", "is_cuda"}
)
"""What a kernel may ask of a tensor without reading its values."""
_GZIP = b"\x1f\x8b"
_UNREADABLE = (OSError, EOFError, zlib.error, RecursionError)
_MISSHAPEN = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class RecordedStep:
    """One node of a recorded tree; ``level`` is the natural logarithm of its speedup, None if it failed."""

    id: int
    parent_id: int
    kind: StepKind
    context_ids: tuple[int, ...]
    compiled: bool
    level: float | None
    source: str


@dataclass(frozen=True)
class RecordedTree:
    """One problem's search, steps in the order in which they were made, the root left out.

    ``top`` is the level that counts as the whole gain, 0 where nothing in it is correct and beats 1x;
    ``file`` is the file's name without its endings.
    """

    name: str
    steps: tuple[RecordedStep, ...]
    top: float
    file: str = ""

    def curve(self, length: int) -> list[float]:
        """Share of the log-gain after 1 .. ``length`` steps; the last one holds where the tree ends."""
        shares, best = [], 0.0
        for step in self.steps[:length]:
            best = max(best, step.level or 0.0)
            shares.append(best / self.top)
        return shares + [best / self.top] * (length - len(shares))

    def proof_of_constant_output(self) -> int | None:
        """The step of a correct kernel that never reads its input's values; None where there is none.

        Such a kernel passes only on a problem whose output does not depend on its input, and says
        nothing about search.
        """
        correct = (step for step in self.steps if step.level is not None)
        return next((step.id for step in correct if reads_no_input(step.source)), None)


def read_trees(folder: Path) -> list[RecordedTree]:
    """All trees of ``folder``, ``*.json`` and ``*.json.gz``, by name.

    Raises:
        ConfigError: the folder holds no tree, or a file that is none.
    """
    files = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz")]) if folder.is_dir() else []
    if not files:
        raise ConfigError(
            f"{folder} holds no recorded trees: give a folder with web bundles, *.json or *.json.gz"
        )
    return [read_tree(file) for file in files]


def read_tree(file: Path) -> RecordedTree:
    """The tree in ``file``, compressed by gzip or not.

    Raises:
        ConfigError: it is not a tree in that format.
    """
    try:
        packed = file.read_bytes()
        text = gzip.decompress(packed) if packed.startswith(_GZIP) else packed
        data = json.loads(text.decode("utf-8-sig"))
        steps = tuple(_step(item) for item in data["steps"] if item["created_by"] != StepKind.DUMMY_ROOT)
        stem = file.name.partition(".json")[0]
        name = Path(str(data.get("run_dir") or "")).name or stem
    except (*_UNREADABLE, *_MISSHAPEN) as error:
        raise ConfigError(
            f"{file} is not a recorded tree ({type(error).__name__}: {error}): leave it out of the folder"
        ) from None
    _check_parents(file, steps)
    top = max((step.level for step in steps if step.level is not None), default=0.0)
    return RecordedTree(name, steps, max(top, 0.0), stem)


def reads_no_input(source: str) -> bool:
    """Whether ``ModelNew.forward`` uses its arguments for their shape, type and place only."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    forwards = [
        item
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == "ModelNew"
        for item in node.body
        if isinstance(item, ast.FunctionDef) and item.name == "forward"
    ]
    if not forwards:
        return False
    names = {argument.arg for argument in forwards[-1].args.args[1:]}
    asked = {
        id(node.value)
        for node in ast.walk(forwards[-1])
        if isinstance(node, ast.Attribute) and node.attr in METADATA
    }
    uses = [node for node in ast.walk(forwards[-1]) if isinstance(node, ast.Name) and node.id in names]
    return bool(names) and all(id(node) in asked for node in uses)


def _step(item: dict[str, Any]) -> RecordedStep:
    score = item["score"]
    speedup = float(score["fast_p"] or 0.0)
    correct = bool(score["correct"]) and 0 < speedup < math.inf
    return RecordedStep(
        id=int(item["node_id"]),
        parent_id=int(item["parent_node_id"] or 0),
        kind=StepKind(item["created_by"]),
        context_ids=tuple(int(node) for node in item.get("context_node_ids") or ()),
        compiled=bool(score["compiled"]),
        level=math.log(speedup) if correct else None,
        source=str(item.get("code") or ""),
    )


def _check_parents(file: Path, steps: Sequence[RecordedStep]) -> None:
    known = {0}
    for step in steps:
        missing = {step.parent_id, *step.context_ids} - known
        if missing:
            raise ConfigError(f"{file}: step {step.id} names node {min(missing)}, which is not before it")
        known.add(step.id)
