"""One line of skill memory: the rule, what it is based on, and where it was seen to hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

VERSION = 1
"""Of a line's format; raised when an older reader would misread it."""


@dataclass(frozen=True)
class Evidence:
    """One recorded failure: where, the error's text, and the shortest excerpt that shows the mistake."""

    occurrence: str
    error: str
    excerpt: str


@dataclass(frozen=True)
class Verified:
    """Whether a rule held when its kernels were compiled by ``triton`` for ``target``."""

    triton: str
    target: str
    holds: bool


@dataclass(frozen=True)
class Proof:
    """A minimal candidate that fails as the rule says, and the same without the forbidden construct."""

    reproducer: str
    counterpart: str


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        text: the sentence that prompts show.
        count: the number of independent failures behind it.
        tasks: these failures, ``<run>/<task>#<large step>``; fewer than ``count`` where the rule came
            from a file without them.
        signatures: keys of the kinds of failure that it explains, the most frequent first.
        evidence: some of the recorded failures.
        reproducer: a minimal candidate that fails so.
        counterpart: the same without the forbidden construct, which works.
        others: further such pairs, where the rule forbids several constructs.
        problem: the reference that all are compiled against; None for the plain one.
        verified: under which versions it held or not.
        lint: the preflight's rule that it became.
        extra: keys of the line that this version does not know; kept.
    """

    text: str
    count: float
    tasks: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reproducer: str | None = None
    counterpart: str | None = None
    others: tuple[Proof, ...] = ()
    problem: str | None = None
    verified: tuple[Verified, ...] = ()
    lint: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """All pairs to try; empty where the reproducer or its counterpart is missing."""
        if self.reproducer is None or self.counterpart is None:
            return ()
        return (Proof(self.reproducer, self.counterpart), *self.others)

    def retired(self, triton: str | None) -> bool:
        """Whether it was seen not to hold under this version of Triton."""
        return any(seen.triton == triton and not seen.holds for seen in self.verified)


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """The line's object."""
    return {
        "version": VERSION,
        "rule": rule.text,
        "count": int(rule.count) if rule.count == int(rule.count) else rule.count,
        "tasks": list(rule.tasks),
        "signature": rule.signatures[0] if rule.signatures else None,
        "signatures": list(rule.signatures),
        "evidence": [asdict(item) for item in rule.evidence],
        "reproducer": rule.reproducer,
        "counterpart": rule.counterpart,
        "others": [asdict(item) for item in rule.others],
        "problem": rule.problem,
        "verified": [asdict(item) for item in rule.verified],
        "lint": rule.lint,
        **rule.extra,
    }


def rule_from_json(data: object) -> Rule:
    """The rule that a line's object stands for; all keys but ``rule`` may be missing.

    Raises:
        ValueError: it is no rule; the message says why.
    """
    if not isinstance(data, dict):
        raise ValueError("not an object")
    version = data.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"version {version!r}, this program reads up to {VERSION}")
    text = data.get("rule")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text under 'rule'")
    return Rule(
        text=" ".join(text.split()),
        count=_count(data.get("count", 1)),
        tasks=_texts(data, "tasks"),
        signatures=tuple(dict.fromkeys([*_main_signature(data), *_texts(data, "signatures")])),
        evidence=_records(data, "evidence", Evidence),
        reproducer=_text(data, "reproducer"),
        counterpart=_text(data, "counterpart"),
        others=_records(data, "others", Proof),
        problem=_text(data, "problem"),
        verified=_records(data, "verified", Verified),
        lint=_text(data, "lint"),
        extra={key: value for key, value in data.items() if key not in _KEYS},
    )


_Record = TypeVar("_Record", Evidence, Proof, Verified)
_KEYS = frozenset(rule_to_json(Rule("", 0)))


def _count(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"the count {str(value)[:20]!r} is not a count")
    return float(value)


def _main_signature(data: Mapping[str, Any]) -> tuple[str, ...]:
    signature = _text(data, "signature")
    return () if signature is None else (signature,)


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"'{key}' is not a text")
    return value or None


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"'{key}' is not a list of texts")
    return tuple(value)


def _records(data: Mapping[str, Any], key: str, kind: type[_Record]) -> tuple[_Record, ...]:
    value = data.get(key) or []
    try:
        found = tuple(kind(**item) for item in value)
        if all(
            isinstance(each, bool if name == "holds" else str)
            for one in found
            for name, each in vars(one).items()
        ):
            return found
    except TypeError:
        pass
    names = ", ".join(kind.__dataclass_fields__)
    raise ValueError(f"'{key}' is not a list of objects with {names}")
