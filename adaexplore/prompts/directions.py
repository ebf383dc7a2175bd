"""The directions of ``templates/directions.yaml``: which a task offers, and how a prompt states them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from adaexplore.core.directions import FREE, Directions
from adaexplore.settings.yaml_text import parse_mapping


class _Direction(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    when: str = ""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    large: dict[str, _Direction]
    small: dict[str, _Direction]
    repair: dict[str, _Direction]


@cache
def _table() -> _Table:
    path = files("adaexplore.prompts").joinpath("templates", "directions.yaml")
    return _Table.model_validate(parse_mapping(path.read_text(encoding="utf-8"))[0])


def offered_directions(reference: str) -> Directions:
    """Return the directions that apply to a reference module."""
    table = _table()
    large, small, repair = (
        tuple(name for name, each in kind.items() if re.search(each.when, reference))
        for kind in (table.large, table.small, table.repair)
    )
    return Directions(large, small, repair)


def direction_text(name: str) -> str:
    """Return the sentence for a prompt as a line of its own; "" for none and for one of another version."""
    table = _table()
    found = {**table.large, **table.small, **table.repair}.get(name)
    return "" if name == FREE or found is None else f"\n{found.text}"
