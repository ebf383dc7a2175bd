"""Mistakes that models make in Triton, made on purpose in a share of the answers.

A mistake is not made where the prompt's rules warn of it, so the skill memory has an effect that
can be measured without a model.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """One kind of mistake.

    Attributes:
        name: for tests and logs.
        pattern: the first (or a random) match in a kernel is replaced.
        replacement: as ``re.sub`` takes it.
        sign: what an error message shows when it was made; empty for slips that teach nothing.
        rule: the one line that would have prevented it.
        topics: a rule that has all words of one of these prevents it.
    """

    name: str
    pattern: str
    replacement: str
    sign: str = ""
    rule: str = ""
    topics: tuple[tuple[str, ...], ...] = ()

    def warned(self, rules: tuple[str, ...]) -> bool:
        """Whether one of ``rules`` is against this."""
        lowered = [rule.lower() for rule in rules]
        return any(all(word in rule for word in words) for rule in lowered for words in self.topics)

    def make(self, source: str, rng: random.Random) -> str | None:
        """``source`` with the mistake at one place; None where there is none for it."""
        places = list(re.finditer(self.pattern, source, re.M))
        if not places:
            return None
        place = rng.choice(places)
        return source[: place.start()] + place.expand(self.replacement) + source[place.end() :]


MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "missing_function",
        r"2\.0 \* tl\.sigmoid\(2\.0 \* (\w+)\) - 1\.0",
        r"tl.tanh(\1)",
        r"has no attribute '?tanh|tl\.tanh",
        "You cannot call tl.tanh, which triton.language does not have; write 2 * tl.sigmoid(2 * x) - 1.",
        (("tl.tanh",), ("tanh", "triton.language")),
    ),
    Mistake(
        "c_function",
        r"tl\.(exp|sqrt|log)\(",
        r"tl.\1f(",
        r"has no attribute '?(exp|sqrt|log)f|tl\.(exp|sqrt|log)f",
        "You cannot call C functions such as tl.expf or tl.sqrtf; the names are tl.exp and tl.sqrt.",
        (("expf",), ("sqrtf",), ("c function",)),
    ),
    Mistake(
        "dtype_call",
        r"= (tl\.load\(.*\))\.to\(tl\.float32\)$",
        r"= tl.float32(\1)",
        r"'?dtype'? object is not callable|dtype\S* (object )?is not callable",
        "You cannot call a dtype such as tl.float32 as a function; convert a tensor with x.to(tl.float32).",
        (("dtype", "call"), ("dtype", "function"), ("tl.float32(",)),
    ),
    Mistake(
        "runtime_bound",
        r"^(.*\b(?:BLOCK|TILE_M)): tl\.constexpr",
        r"\1",
        r"arange's arguments must be of type tl\.constexpr|arguments must be of type tl\.constexpr",
        "You cannot give tl.arange a bound that is not a tl.constexpr; declare block sizes as tl.constexpr.",
        (("arange", "constexpr"),),
    ),
    Mistake(
        "odd_bound",
        r"block = triton\.next_power_of_2\(size\)",
        "block = size",
        r"arange's range must be a power of 2|must be a power of (2|two)",
        "You cannot give tl.arange a range that is no power of 2; round up with triton.next_power_of_2.",
        (
            ("arange", "power of 2"),
            ("arange", "power of two"),
            ("arange", "next_power_of_2"),
            ("num_warps", "power of 2"),
        ),
    ),
    Mistake("lost_tail", r"triton\.cdiv\(numel, BLOCK\)", "max(1, numel // (2 * BLOCK))"),
    Mistake("lost_mask", r"tl\.where\(mask, (\w+), (?:0\.0|float\(\"-inf\"\))\)", r"\1"),
    Mistake("wrong_axis", r"axis=1\)\[:, None\]", "axis=0)[None, :]"),
    Mistake("wrong_constant", r"\b0\.5 \* ", "0.25 * "),
    Mistake("wrong_divisor", r"/ 6\.0\b", "/ 3.0"),
    Mistake("wrong_shape", r"torch\.empty\(shape,", "torch.empty(torch.Size(shape).numel(),"),
    Mistake("wrong_dtype", r"(torch\.empty\(.*dtype=)(?:\w+\.dtype|_dtype\([\w, ]*\))", r"\1torch.float64"),
    Mistake("syntax", r"^(    def forward\(.*\).*):$", r"\1"),
    Mistake("undeclared", r"tl\.store\((out\w*|partial)_ptr", r"tl.store(\1_pointer"),
)


def blunder(source: str, rules: tuple[str, ...], rng: random.Random) -> str:
    """``source`` with one mistake drawn at random; as it is where a rule warns of it or none applies."""
    kinds = list(MISTAKES)
    rng.shuffle(kinds)
    for mistake in kinds:
        made = mistake.make(source, rng)
        if made is not None and made != source:
            return source if mistake.warned(rules) else made
    return source


def rule_for(error: str) -> str | None:
    """The rule against the mistake that ``error`` shows, None for an error not recognised."""
    return next((m.rule for m in MISTAKES if m.sign and re.search(m.sign, error)), None)
