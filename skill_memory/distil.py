"""From one failure to one rule: the prompt, the reading of the reply, near-duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import Finish, ModelClient, ModelRequest, Purpose
from adaexplore.prompts.render import render
from skill_memory.signature import error_text, offending_line
from skill_memory.store import SEPARATOR

SAME_RULE = 0.6
"""Token overlap (Jaccard) from which two rules count as one; the bundled rules stay below 0.45."""

_EXCERPT_LINES = 40
_EXCERPT_CHARS = 3000
_ERROR_CHARS = 1500
_RULE_CHARS = (20, 300)

_POSITION = re.compile(r"\b(?:lines?|column|col) \d+|\bat \d+:\d+|\b\w+\.py\b|(?:^|\s)/\w+/", re.IGNORECASE)
_NO_RULE = re.compile(r"no (?:rule|guidance)\W*", re.IGNORECASE)
_WORD = re.compile(r"[a-z_][\w.]*[\w]|\w")
_FILLER = frozenset(
    re.findall(
        r"\w+",
        "a an and as at be by can cannot for from in inside instead is it must no not of on only or so that "
        "the this to use using with you your",
    )
)


@dataclass(frozen=True)
class Failure:
    """One failing step: its number, the candidate, what the judge found."""

    step: int
    source: str
    verdict: Verdict


@dataclass(frozen=True)
class Distilled:
    """What the model made of a failure; ``rule`` is None for no rule."""

    rule: str | None
    usage: Usage


def distil(failure: Failure, key: str, client: ModelClient) -> Distilled:
    """Ask the model for the rule behind ``failure``, in one call.

    Args:
        failure: a failure that has a signature.
        key: the request's key.
        client: the model.

    Raises:
        ModelError: the model could not be asked.
    """
    error = error_text(failure.verdict)
    prompt = render(
        "rule",
        stage=failure.verdict.status.value,
        excerpt=excerpt(failure.source, error),
        error=error[-_ERROR_CHARS:],
    )
    reply = client.complete(ModelRequest(prompt, Purpose.RULE, key))
    return Distilled(rule_in(reply.text) if reply.finish is Finish.COMPLETE else None, reply.usage)


def excerpt(source: str, error: str) -> str:
    """At most 40 lines of ``source`` around the place that ``error`` points to.

    The place is the line above the last caret, else the last line number in the error, else the
    first Triton kernel.
    """
    lines = source.splitlines()
    start = max(0, _place(lines, error) - _EXCERPT_LINES // 2)
    start = max(0, min(start, len(lines) - _EXCERPT_LINES))
    return "\n".join(lines[start : start + _EXCERPT_LINES])[:_EXCERPT_CHARS]


def rule_in(reply: str) -> str | None:
    """The rule on the last line of ``reply``; None for "no rule" and for what is no usable rule.

    Unusable are fragments, rules that do not say "You cannot", and those that name lines or files.
    """
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if not lines:
        return None
    rule = re.sub(r"^(?:[-*>]\s+|\d+[.)]\s+|Rule:\s*)+", "", lines[-1]).strip("*\"' ")
    if rule.startswith("`") and rule.endswith("`") and rule.count("`") == 2:
        rule = rule[1:-1]
    shortest, longest = _RULE_CHARS
    if _NO_RULE.fullmatch(rule) or not rule.lower().startswith("you cannot "):
        return None
    if not shortest <= len(rule) <= longest or SEPARATOR in rule or _POSITION.search(rule):
        return None
    return "You" + rule[3:]


def nearest(rule: str, known: Iterable[str]) -> str | None:
    """The text in ``known`` that says the same as ``rule`` by its words, None if none does."""
    best, best_overlap = None, SAME_RULE
    for text in known:
        value = overlap(rule, text)
        if value >= best_overlap and (best is None or value > best_overlap):
            best, best_overlap = text, value
    return best


def overlap(one: str, other: str) -> float:
    """Jaccard index of the two texts' words, fillers left out; 0 to 1."""
    a, b = _words(one), _words(other)
    return len(a & b) / len(a | b) if a | b else 1.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _FILLER


def _place(lines: list[str], error: str) -> int:
    """Index of the line that ``error`` is about."""
    pointed = offending_line(error)
    if pointed:
        for index, line in enumerate(lines):
            if line.strip() == pointed:
                return index
    numbers = [int(number) for number in re.findall(r"\bline (\d+)", error)]
    for number in reversed(numbers):
        if 1 <= number <= len(lines):
            return number - 1
    for index, line in enumerate(lines):
        if "@triton.jit" in line:
            return index + _EXCERPT_LINES // 2
    return 0
