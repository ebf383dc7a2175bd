"""Read text files; errors name the file and the remedy."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from adaexplore.core.errors import RecordError
from adaexplore.core.files.inputs import first_fault, regular_bytes
from adaexplore.core.text.json_text import parse_json

T = TypeVar("T")


def read(path: Path) -> str:
    """Read the text of ``path``, with its line ends unchanged.

    Raises:
        RecordError: the file is missing, unreadable or not UTF-8.
    """
    try:
        return regular_bytes(path).decode("utf-8")
    except FileNotFoundError as error:
        raise RecordError(
            f"{path} is missing; restore it, or have `adaexplore repair RUN` set its step aside"
        ) from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise damaged(path, "it is not UTF-8") from error


def read_object(path: Path, missing: dict[str, Any] | None = None) -> dict[str, Any]:
    """Read the JSON object in ``path``; ``missing`` if there is no such file.

    Raises:
        RecordError: it holds no JSON object, or it is missing and must not be.
    """
    if missing is not None and not path.is_file():
        return missing
    data = _value(path)
    if not isinstance(data, dict):
        raise damaged(path, "it holds no JSON object")
    return data


def read_as(path: Path, shape: TypeAdapter[T]) -> T | None:
    """Return the JSON in ``path`` as ``shape``; None if there is no such file.

    Raises:
        RecordError: the file holds something else.
    """
    if not path.is_file():
        return None
    try:
        return shape.validate_python(_value(path))
    except ValidationError as error:
        raise damaged(path, reason(error)) from error


def _value(path: Path) -> Any:
    try:
        return parse_json(read(path))
    except ValueError as error:
        raise damaged(path, f"it is not JSON ({error})") from error


def damaged(path: Path, reason: str) -> RecordError:
    return RecordError(
        f"{path} is damaged: {reason}; restore it, or have `adaexplore repair RUN` set it aside"
    )


def reason(error: Exception) -> str:
    """Describe in one line what is wrong with a file's content."""
    if isinstance(error, KeyError):
        return f"the key {error.args[0]!r} is missing"
    if isinstance(error, ValidationError):
        return first_fault(error)
    return " ".join(str(error).split())
