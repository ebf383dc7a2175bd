"""The memory on disk: JSONL with all data of each rule, or the release's ``rule||count`` text.

Functions raise ConfigError if the file cannot be read, and StorageError if it cannot be written.
"""

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from adaexplore.core.errors import ConfigError, StorageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import regular_bytes
from skill_memory.rule import Rule, rule_from_json, rule_to_json
from skill_memory.sidecar import finish_pending, locked, read_sidecar

SEPARATOR = "||"
JSONL = ".jsonl"
_BOM = b"\xef\xbb\xbf"
_TEXT_FORM = "'You cannot ...||<count>'"
_JSON_FORM = 'an object such as {"rule": "You cannot ...", "count": 3}'

log = logging.getLogger(__name__)


def read_rules(path: Path) -> list[Rule]:
    """Read a memory file: JSONL if its name ends so, else text; a missing count is 1.

    Invalid lines are skipped. One warning names them; it is not repeated while they stay the same.
    """
    rules, faults = [], []
    for number, _, found in _lines(path):
        if isinstance(found, Rule):
            rules.append(found)
        elif found is not None:
            faults.append(f"line {number} ({found})")
    if faults:
        _warn_once(path, ", ".join(faults))
    return rules


@lru_cache(maxsize=64)
def _warn_once(path: Path, faults: str) -> None:
    """Warn about invalid lines once, since a run reads its memory again for every task."""
    log.warning("memory %s: skipped %s; write %s", path, faults, _JSON_FORM if is_jsonl(path) else _TEXT_FORM)


def set_aside(path: Path) -> None:
    """Append the invalid lines of ``path`` to ``<path>.rejected``, before the file is rewritten."""
    if not path.exists():
        return
    rejected = b"".join(line + b"\n" for _, line, found in _lines(path) if isinstance(found, ValueError))
    if rejected:
        aside = path.with_name(f"{path.name}.rejected")
        try:
            with aside.open("ab") as out:
                out.write(rejected)
        except OSError as error:
            raise StorageError(f"cannot write {aside}: {error.strerror or error}; free space") from error
        log.warning("memory %s: its unreadable lines are kept in %s", path, aside)


def write_rules(path: Path, rules: Sequence[Rule]) -> None:
    """Write ``rules`` to ``path`` atomically, in the format of its name."""
    write_text(path, format_rules(rules, jsonl=is_jsonl(path)))


def rewrite(path: Path, change: Callable[[Rule], Rule]) -> None:
    """Change each rule at ``path`` under the lock, from the current state of the file."""
    with locked(path):
        finish_pending(path, read_sidecar(path))
        rules = read_rules(path)
        set_aside(path)
        write_rules(path, [change(rule) for rule in rules])


def make_memory(path: Path) -> None:
    """Create an empty memory at ``path`` unless it exists."""
    if not path.exists():
        with locked(path):
            if not path.exists():  # another process may have created and filled it meanwhile
                write_rules(path, ())


def format_rules(rules: Sequence[Rule], *, jsonl: bool = False) -> str:
    """Return the content of a memory file with ``rules``."""
    if jsonl:
        return "".join(json.dumps(rule_to_json(rule), ensure_ascii=False) + "\n" for rule in rules)
    return "".join(f"{rule.text}{SEPARATOR}{rule.count:.12g}\n" for rule in rules)


def is_jsonl(path: Path) -> bool:
    """Return whether a memory of this name holds JSON lines."""
    return path.suffix == JSONL


def injected(rules: Iterable[Rule], threshold: float, triton: str | None = None) -> tuple[str, ...]:
    """Return the rules for prompts: those with a count of at least ``threshold``, in file order.

    Those retired for ``triton``, the version that compiles kernels, are left out.
    """
    return tuple(rule.text for rule in rules if rule.count >= threshold and not rule.retired(triton))


def rules_for_run(path: Path | None, update: bool, bundled: Path) -> tuple[Rule, ...]:
    """Read the rules of ``general_memory_path``; with ``memory_update``, make a missing file.

    Args:
        path: the configured file; None is a run without memory.
        update: whether the run adds to the memory; a missing file is then created.
        bundled: this project's own memory, the default; an installation without the repository's files
            has none, and its prompts hold no rules.

    Raises:
        ConfigError: the file does not exist or cannot be read.
        StorageError: the new memory cannot be written.
    """
    if path is None:
        return ()
    if not path.exists():
        if update:
            make_memory(path)
        elif path != bundled:
            raise ConfigError(
                f"general_memory_path: {path} does not exist; correct the path, write null for no rules, "
                "or set memory_update: true to create it"
            )
        else:
            log.warning("general_memory_path %s does not exist; prompts hold no rules", path)
            return ()
    return tuple(_with_proofs(path, read_rules(path)))


def known_rules(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the rules of a file by signature key."""
    return {key: rule.text for rule in rules for key in rule.signatures}


def joined(rules: Iterable[Rule]) -> list[Rule]:
    """Merge ``rules`` with equal texts and add their counts."""
    found: dict[str, Rule] = {}
    for rule in rules:
        known = found.get(rule.text)
        found[rule.text] = rule if known is None else replace(known, count=known.count + rule.count)
    return list(found.values())


def _with_proofs(path: Path, rules: Sequence[Rule]) -> list[Rule]:
    """Return ``rules`` of a text memory with the data of equal rules in the JSONL memory beside it."""
    beside = path.with_name(path.stem.rpartition("_")[0] + JSONL)  # name.jsonl for name_200.txt
    if is_jsonl(path) or not beside.is_file():
        return list(rules)
    proven = {rule.text: rule.verified for rule in read_rules(beside)}
    return [replace(rule, verified=proven.get(rule.text, rule.verified)) for rule in rules]


def _lines(path: Path) -> Iterator[tuple[int, bytes, Rule | ValueError | None]]:
    """Yield the lines of a memory: number, content, and the rule, the fault, or None for a blank line."""
    try:
        data = regular_bytes(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read the memory {path}: {error.strerror or error}; correct general_memory_path"
        ) from error
    parse = _parse_json if is_jsonl(path) else _parse_text
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        try:
            text = line.decode("utf-8").strip()
            yield number, line, parse(text) if text else None
        except UnicodeDecodeError:
            yield number, line, ValueError("not UTF-8")
        except ValueError as fault:
            yield number, line, fault


def _parse_text(text: str) -> Rule:
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


def _parse_json(text: str) -> Rule:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {getattr(error, 'msg', error)}") from None
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which no file can hold") from None
    return rule_from_json(data)
