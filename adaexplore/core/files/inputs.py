"""Read files that a user names, or refuse them in one line."""

from __future__ import annotations

import io
from pathlib import Path

from pydantic import ValidationError

from adaexplore.core.errors import UsageError


def input_text(path: Path, what: str, error: type[UsageError] = UsageError, advice: str = "") -> str:
    """Read the UTF-8 text of ``path``, without a byte order mark, with line ends ``\\n``.

    Messages call the file ``what`` and, if there is none, end with ``advice``.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        text = input_bytes(path, what, error, advice).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = bytes(reason.object[: reason.start]).count(b"\n") + 1
        raise error(f"{what} {path} is not UTF-8 text: see line {line}; save it as UTF-8") from reason
    return io.StringIO(text, newline=None).getvalue()


def first_fault(error: ValidationError) -> str:
    """Describe the first fault that pydantic found in one line, with its place in the data."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place + ': ' if place else ''}{first['msg']}"


def input_bytes(path: Path, what: str, error: type[UsageError] = UsageError, advice: str = "") -> bytes:
    """Read the bytes of ``path``; see :func:`input_text`.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as reason:
        raise error(f"no {what} {path}" + (f"; {advice}" if advice else "")) from reason
    except OSError as reason:
        what_to_do = "name a file that you may read"
        raise error(f"cannot read {what} {path}: {reason.strerror or reason}; {what_to_do}") from reason
