"""The memory on disk: one rule a line, ``You cannot ...||<count>``."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import ConfigError
from adaexplore.core.files import write_text

SEPARATOR = "||"
_BOM = b"\xef\xbb\xbf"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rule:
    """One line of memory; ``count`` is the number of independent failures behind it."""

    text: str
    count: float


@dataclass(frozen=True)
class Memory:
    """The memory a run uses; ``path`` is the file that was read, None where there is none."""

    path: Path | None
    rules: tuple[Rule, ...]


def read_rules(path: Path) -> list[Rule]:
    """Read a memory file; a line without a count counts 1.

    Lines that are no rule are skipped, and one warning names them.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the memory {path}: {error.strerror or error}; correct general_memory_path"
        ) from error
    rules, faults = [], []
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        try:
            rule = _parse(line)
        except ValueError as fault:
            faults.append(f"line {number} ({fault})")
        else:
            if rule is not None:
                rules.append(rule)
    if faults:
        log.warning("memory %s: skipped %s; write 'You cannot ...||<count>'", path, ", ".join(faults))
    return rules


def write_rules(path: Path, rules: Sequence[Rule]) -> None:
    """Write ``rules`` to ``path`` atomically.

    Raises:
        StorageError: the file cannot be written.
    """
    write_text(path, format_rules(rules))


def format_rules(rules: Sequence[Rule]) -> str:
    """The content of a memory file with ``rules``."""
    return "".join(f"{rule.text}{SEPARATOR}{rule.count:.12g}\n" for rule in rules)


def injected(rules: Sequence[Rule], threshold: float) -> tuple[str, ...]:
    """The texts that go into prompts: those with a count of at least ``threshold``, in file order."""
    return tuple(rule.text for rule in rules if rule.count >= threshold)


def memory_for_run(path: Path | None, update: bool, bundled: Path) -> Memory:
    """The memory that ``general_memory_path`` and ``memory_update`` stand for.

    Args:
        path: the configured file; None is a run without memory.
        update: whether the run adds to the memory. A file that does not exist is then created.
        bundled: this project's own memory, read (with a warning) where ``path`` does not exist
            and ``update`` is off; an installation without the repository's files has none.

    Raises:
        ConfigError: ``update`` without a path, or a file that cannot be read.
        StorageError: the new memory cannot be written.
    """
    if path is None:
        if update:
            raise ConfigError("memory_update needs a file: set general_memory_path")
        return Memory(None, ())
    if not path.exists():
        if update:
            write_rules(path, ())
        elif bundled.exists():
            log.warning("general_memory_path %s does not exist; using the bundled memory %s", path, bundled)
            path = bundled
        else:
            log.warning("general_memory_path %s does not exist; prompts hold no rules", path)
            return Memory(None, ())
    return Memory(path, tuple(read_rules(path)))


def _parse(line: bytes) -> Rule | None:
    """The rule on ``line``, None for a blank one; ValueError says what is wrong with it."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    if not text:
        return None
    head, separator, tail = text.rpartition(SEPARATOR)
    rule, number = (head.strip(), tail.strip()) if separator else (text, "")
    if not rule:
        raise ValueError("no rule before the count")
    try:
        count = float(number or 1)
    except ValueError:
        raise ValueError(f"the count {number!r} is not a number") from None
    if not math.isfinite(count) or count < 0:
        raise ValueError(f"the count {number!r} is not a count")
    return Rule(rule, count)
