"""One line of skill memory: the rule, its evidence, and the versions for which it was verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

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
    """One rule.

    Attributes:
        text: the sentence that prompts show.
        count: the number of independent failures behind it.
        tasks: these failures, ``<run>/<task>#<large step>``; fewer than ``count`` if the rule came
            from a file without them.
        signatures: keys of the kinds of failure that it explains, the most frequent first.
        evidence: some of the recorded failures.
        reproducer: a minimal candidate with this failure.
        counterpart: a working candidate without the forbidden construct.
        others: further such pairs, if the rule forbids several constructs.
        problem: the reference for all compilations; None for the plain one.
        verified: the versions for which the rule was checked.
        lint: the id of the lint that covers it.
        extra: unknown keys of the line; they are kept.
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


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow")

    rule: str
    count: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 1.0
    tasks: tuple[str, ...] | None = None
    signature: str | None = None
    signatures: tuple[str, ...] | None = None
    evidence: tuple[Evidence, ...] | None = None
    reproducer: str | None = None
    counterpart: str | None = None
    others: tuple[Proof, ...] | None = None
    problem: str | None = None
    verified: tuple[Verified, ...] | None = None
    lint: str | None = None


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
    try:
        line = _Line.model_validate(data)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from error
    if not line.rule.strip():
        raise ValueError("no text under 'rule'")
    signatures = [*([line.signature] if line.signature else []), *(line.signatures or ())]
    return Rule(
        text=" ".join(line.rule.split()),
        count=line.count,
        tasks=line.tasks or (),
        signatures=tuple(dict.fromkeys(signatures)),
        evidence=line.evidence or (),
        reproducer=line.reproducer or None,
        counterpart=line.counterpart or None,
        others=line.others or (),
        problem=line.problem or None,
        verified=line.verified or (),
        lint=line.lint or None,
        extra={key: value for key, value in (line.model_extra or {}).items() if key != "version"},
    )
