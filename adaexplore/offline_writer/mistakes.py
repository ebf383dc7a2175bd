"""Make typical mistakes of models in Triton (``mistakes.yaml``) on purpose, in a share of the answers.

A mistake is not made if the prompt's rules warn of it, so the effect of the skill memory can be measured
without a model.
"""

import random
import re
from functools import cache

from pydantic import BaseModel, ConfigDict

from adaexplore.settings.yaml_text import read_bundled


class Mistake(BaseModel):
    """One kind of mistake; the file explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pattern: str
    replacement: str
    sign: str = ""
    rule: str = ""
    topics: tuple[tuple[str, ...], ...] = ()

    def warned(self, rules: tuple[str, ...]) -> bool:
        lowered = [rule.lower() for rule in rules]
        return any(all(word in rule for word in words) for rule in lowered for words in self.topics)

    def make(self, source: str, rng: random.Random) -> str | None:
        """Return ``source`` with the mistake in one place; None if it has no place for it."""
        places = list(re.finditer(self.pattern, source, re.M))
        if not places:
            return None
        place = rng.choice(places)
        return source[: place.start()] + place.expand(self.replacement) + source[place.end() :]


class MistakeTable(BaseModel):
    """The content of the file: its first lines explain it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mistakes: tuple[Mistake, ...]
    errors: dict[str, str]


@cache
def mistake_table() -> MistakeTable:
    return MistakeTable.model_validate(read_bundled("adaexplore.offline_writer", "mistakes.yaml"))


def blunder(source: str, rules: tuple[str, ...], rng: random.Random) -> str:
    """Return ``source`` with one random mistake; unchanged if a rule warns of it or none applies."""
    kinds = list(mistake_table().mistakes)
    rng.shuffle(kinds)
    for mistake in kinds:
        made = mistake.make(source, rng)
        if made is not None and made != source:
            return source if mistake.warned(rules) else made
    return source


def rule_for(error: str) -> str | None:
    """Return the rule against the mistake behind ``error``; None for an unknown error."""
    return next((m.rule for m in mistake_table().mistakes if m.sign and re.search(m.sign, error)), None)
