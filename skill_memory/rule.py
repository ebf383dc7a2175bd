"""One line of skill memory: the rule, its evidence, and the versions for which it was verified."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictBool, TypeAdapter, ValidationError

from adaexplore.core.files.inputs import first_fault

VERSION = 1
"""Version of a line's format; increased when older readers would misread it."""
_EXACT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Evidence:
    """One recorded failure: its place, the error's text, and the shortest excerpt with the mistake."""

    __pydantic_config__ = _EXACT

    occurrence: str
    error: str
    excerpt: str


@dataclass(frozen=True)
class Verified:
    """Result of compiling a rule's kernels with ``triton`` for ``target``: whether the rule held."""

    __pydantic_config__ = _EXACT

    triton: str
    target: str
    holds: StrictBool


@dataclass(frozen=True)
class Proof:
    """A minimal candidate that fails as the rule says, and one without the forbidden construct."""

    __pydantic_config__ = _EXACT

    reproducer: str
    counterpart: str


@dataclass(frozen=True)
class Rule:
    text: str  # the sentence that prompts show
    # the number of independent failures behind it
    count: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
    # these failures, ``<run>/<task>#<large step>``; fewer than ``count`` if the rule came from a file without
    # them
    tasks: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()  # keys of the kinds of failure that it explains, the most frequent first
    evidence: tuple[Evidence, ...] = ()  # some of the recorded failures
    reproducer: str | None = None  # a minimal candidate with this failure
    counterpart: str | None = None  # a working candidate without the forbidden construct
    others: tuple[Proof, ...] = ()  # further such pairs, if the rule forbids several constructs
    problem: str | None = None  # the reference for all compilations; None for the plain one
    verified: tuple[Verified, ...] = ()  # the versions for which the rule was checked
    lint: str | None = None  # the id of the lint that covers it
    extra: Mapping[str, Any] = field(default_factory=dict)  # unknown keys of the line; they are kept

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """All pairs to try; empty if the reproducer or its counterpart is missing."""
        if self.reproducer is None or self.counterpart is None:
            return ()
        return (Proof(self.reproducer, self.counterpart), *self.others)

    def retired(self, triton: str | None) -> bool:
        """Return whether the rule failed its check with this version of Triton."""
        return any(seen.triton == triton and not seen.holds for seen in self.verified)


def rule_to_json(rule: Rule) -> dict[str, Any]:
    fields = asdict(rule)
    text, count, tasks, extra = (fields.pop(key) for key in ("text", "count", "tasks", "extra"))
    return {
        "version": VERSION,
        "rule": text,
        "count": int(count) if count == int(count) else count,
        "tasks": tasks,
        "signature": rule.signatures[0] if rule.signatures else None,
        **fields,
        **extra,
    }


_RULE = TypeAdapter(Rule)
_KEYS = frozenset(part.name for part in fields(Rule)) - {"text", "extra"}


def rule_from_json(data: object) -> Rule:
    """Read the rule in a line's object; all keys except ``rule`` may be missing.

    Raises:
        ValueError: the object is not a rule; the message says why.
    """
    if not isinstance(data, dict):
        raise ValueError("not an object")
    version = data.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"version {version!r}, this program reads up to {VERSION}")
    text = data.get("rule")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no text under 'rule'")
    given = {key: data[key] for key in data if key == "count" or data[key] not in (None, "")}
    kinds = given.get("signatures", [])
    if "signature" in given and isinstance(kinds, list):
        kinds = [given["signature"], *kinds]
    known = {key: given[key] for key in _KEYS & given.keys()}
    extra = {key: data[key] for key in data if key not in _KEYS | {"rule", "signature", "version"}}
    try:
        rule = _RULE.validate_python(
            {"count": 1.0, **known, "text": " ".join(text.split()), "signatures": kinds, "extra": extra}
        )
    except ValidationError as error:
        raise ValueError(first_fault(error)) from error
    return replace(rule, signatures=tuple(dict.fromkeys(rule.signatures)))
