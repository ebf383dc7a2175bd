"""Strict rendering of the templates in ``templates/*.md``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def _template(name: str) -> Template:
    text = files("adaexplore.prompts").joinpath("templates", f"{name}.md").read_text(encoding="utf-8")
    return Template(text.strip("\n"))


def render(name: str, **values: str | int | float) -> str:
    """Fill in the template ``name``, a file in ``templates/``; its variables are written ``${variable}``.

    Raises:
        ValueError: a variable has no value, or a value has no variable.
        FileNotFoundError: there is no such template.
    """
    template = _template(name)
    if not template.is_valid():
        raise ValueError(f"prompt template {name}: a bare $ (write $$)")
    wanted, given = set(template.get_identifiers()), set(values)
    if wanted != given:
        raise ValueError(
            f"prompt template {name}: missing {sorted(wanted - given)}, unused {sorted(given - wanted)}"
        )
    return template.substitute({key: str(value) for key, value in values.items()})
