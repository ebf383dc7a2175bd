"""Read files that a user names, or refuse them in one line."""

import errno
import io
import stat
from pathlib import Path

from pydantic import ValidationError

from adaexplore.core.errors import UsageError

MAX_INPUT_BYTES = 64 * 2**20
"""Larger files are refused, unless the caller states another limit."""

_REFUSED = (errno.EINVAL, errno.EFBIG)


def input_text(
    path: Path,
    what: str,
    error: type[UsageError] = UsageError,
    advice: str = "",
    limit: int = MAX_INPUT_BYTES,
) -> str:
    """Read the UTF-8 text of ``path``, without a byte order mark, with line ends ``\\n``.

    Messages call the file ``what`` and, if there is none, end with ``advice``. A file of more than ``limit``
    bytes is refused, and so is what is no regular file, such as a device or a pipe.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        text = input_bytes(path, what, error, advice, limit).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = bytes(reason.object[: reason.start]).count(b"\n") + 1
        raise error(f"{what} {path} is not UTF-8 text: see line {line}; save it as UTF-8") from reason
    return io.StringIO(text, newline=None).getvalue()


def first_fault(error: ValidationError) -> str:
    """Describe the first fault that pydantic found in one line, with its place in the data."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place + ': ' if place else ''}{first['msg']}"


def input_bytes(
    path: Path,
    what: str,
    error: type[UsageError] = UsageError,
    advice: str = "",
    limit: int = MAX_INPUT_BYTES,
) -> bytes:
    """Read the bytes of ``path``; see :func:`input_text`.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        return regular_bytes(path, limit)
    except FileNotFoundError as reason:
        raise error(f"no {what} {path}" + (f"; {advice}" if advice else "")) from reason
    except OSError as reason:
        what_to_do = "name a file that you may read"
        if reason.errno in _REFUSED:
            what_to_do = f"name a regular file of at most {_size(limit)}"
        raise error(f"cannot read {what} {path}: {reason.strerror or reason}; {what_to_do}") from reason


def regular_bytes(path: Path, limit: int = 2**30) -> bytes:
    """Read the bytes of a regular file.

    Raises:
        OSError: it cannot be read, is no regular file (reading a device or a pipe may never end), or is
            larger than ``limit`` bytes.
    """
    found = path.stat()
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if stat.S_ISREG(found.st_mode) and found.st_size > limit:
        raise OSError(errno.EFBIG, f"it is larger than {_size(limit)}", str(path))
    return path.read_bytes()


def _size(limit: int) -> str:
    return f"{limit / 2**20:g} MiB" if limit < 2**30 else f"{limit / 2**30:g} GiB"
