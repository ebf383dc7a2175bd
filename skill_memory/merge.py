"""Match a new rule with known rules: by their words, or by a model in doubtful cases."""

import re
from collections.abc import Iterable

from adaexplore.core.plan import Purpose
from adaexplore.core.replies.answers import answer_in
from adaexplore.llm.protocol import Finish, MergeData, ModelClient, ModelRequest
from adaexplore.prompts.render import render

SAME_RULE = 0.85
"""Minimum overlap of words (Jaccard) at which two rules are equal without asking the model."""
NEAR_RULE = 0.4
"""Overlap below which two rules differ without asking the model."""

_WORD = re.compile(r"[a-z_][\w.]*[\w]|\w")
_YES = re.compile(r"same\W*", re.IGNORECASE)
_FILLER = frozenset(
    re.findall(
        r"\w+",
        "a an and as at be by can cannot for from in inside instead is it must no not of on only or so that "
        "the this to use using with you your",
    )
)


def merge(rule: str, known: Iterable[str], client: ModelClient, key: str) -> str:
    """Return the equivalent of ``rule`` in ``known``, else ``rule``; at most one model request.

    Raises:
        ModelError: the model could not be asked.
    """
    near = nearest(rule, known)
    if near is None or near == rule:
        return rule
    if overlap(rule, near) >= SAME_RULE:
        return near
    prompt = render("merge", one=rule, other=near)
    reply = client.complete(ModelRequest(prompt, Purpose.MERGE, key, data=MergeData(rule, near)))
    lines = [line.strip("*`. ") for line in answer_in(reply.text).splitlines() if line.strip()]
    same = reply.finish is Finish.COMPLETE and bool(lines) and _YES.fullmatch(lines[-1]) is not None
    return near if same else rule


def nearest(rule: str, known: Iterable[str], least: float = NEAR_RULE) -> str | None:
    """Return the text in ``known`` with most words in common with ``rule``; None if none has enough."""
    best, best_overlap = None, least
    for text in known:
        value = overlap(rule, text)
        if value >= best_overlap and (best is None or value > best_overlap):
            best, best_overlap = text, value
    return best


def overlap(one: str, other: str) -> float:
    """Return the Jaccard index of the two texts' words without fillers, 0 to 1."""
    a, b = _words(one), _words(other)
    return len(a & b) / len(a | b) if a | b else 1.0


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _FILLER
