"""Exact differences between two texts."""

from difflib import unified_diff


def differences_between(old: str, new: str) -> str:
    """Return the hunks of a unified diff from ``old`` to ``new``, without file names; "" if equal."""
    _, _, *hunks = [*unified_diff(old.split("\n"), new.split("\n"), lineterm="")] or ("", "")
    return "\n".join(hunks)
