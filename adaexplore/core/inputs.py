"""Files that a user names: read whole, or refused in one line."""

from __future__ import annotations

import io
from pathlib import Path

from adaexplore.core.errors import UsageError


def input_text(path: Path, what: str, error: type[UsageError] = UsageError, advice: str = "") -> str:
    """The UTF-8 text of ``path``, without a byte order mark, its line ends all ``\\n``.

    Args:
        path: the file.
        what: what it is, for messages.
        error: what is raised.
        advice: what to do where there is no such file.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        text = input_bytes(path, what, error, advice).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise error(f"{what} {path} is not UTF-8 text") from reason
    return io.StringIO(text, newline=None).getvalue()


def input_bytes(path: Path, what: str, error: type[UsageError] = UsageError, advice: str = "") -> bytes:
    """The bytes of ``path``; see :func:`input_text`.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as reason:
        raise error(f"no {what} {path}" + (f"; {advice}" if advice else "")) from reason
    except OSError as reason:
        raise error(f"cannot read {what} {path}: {reason.strerror or reason}") from reason
