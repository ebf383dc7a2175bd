"""The directions of ``templates/directions.yaml``: which apply to a task, and their text in prompts."""

from __future__ import annotations

import re
from functools import cache

from pydantic import BaseModel, ConfigDict

from adaexplore.core.directions import FREE, Directions
from adaexplore.settings.yaml_text import read_bundled


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
    return _Table.model_validate(read_bundled("adaexplore.prompts", "templates/directions.yaml"))


def offered_directions(reference: str) -> Directions:
    """Return the directions that apply to a reference module."""
    table = _table()
    large, small, repair = (
        tuple(name for name, each in kind.items() if re.search(each.when, reference))
        for kind in (table.large, table.small, table.repair)
    )
    return Directions(large, small, repair)


def direction_text(name: str) -> str:
    """Return a direction's sentence as a line of a prompt; "" for none or one of another version."""
    table = _table()
    found = {**table.large, **table.small, **table.repair}.get(name)
    return "" if name == FREE or found is None else f"\n{found.text}"
