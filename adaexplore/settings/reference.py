"""The table of all keys, for the documentation."""

from __future__ import annotations

from typing import Any

from adaexplore.settings.config import RunConfig


def key_table() -> str:
    """Return every key with its defaults in both presets and its meaning, as a Markdown table."""
    paper, default = RunConfig(), RunConfig(preset="default")
    rows = ["| Key | `paper` | `default` | Meaning |", "|---|---|---|---|"]
    for key, field in RunConfig.model_fields.items():
        values = f"{_shown(getattr(paper, key))} | {_shown(getattr(default, key))}"
        rows.append(f"| `{key}` | {values} | {field.description} |")
    return "\n".join(rows) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{list(value) if isinstance(value, tuple) else value}`"
