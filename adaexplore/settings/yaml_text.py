"""YAML as users expect it: ``off`` is text, ``1e-3`` is a number, a duplicate key is an error.

PyYAML follows YAML 1.1, where ``tf32: off`` is false, ``1e-3`` is text and ``2026-01-01`` is a date.
The loader and the dumper here use the core schema of YAML 1.2 for scalars instead.
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import first_fault, input_text

Model = TypeVar("Model", bound=BaseModel)

_RESOLVERS = (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
)


class _Loader(yaml.SafeLoader):
    """Safe loader with YAML 1.2 scalars; refuses duplicate keys."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first_line: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = key_node.value
            if key in first_line:
                problem = f"key '{key}' is given twice (first on line {first_line[key]})"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            first_line[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        try:
            return int(node.value)
        except ValueError:  # Python's limit of digits
            problem = f"a number with {len(node.value)} digits"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        """Read text as written; refuse NUL characters, which no path, address or command can hold."""
        if "\0" in node.value:
            raise yaml.constructor.ConstructorError(
                None, None, "text with a NUL character, which no path can hold", node.start_mark
            )
        return str(node.value)


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes exactly what ``_Loader`` would not read back as text."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own class attribute)


for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))
    _Dumper.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_yaml_str)


class YamlProblem(ValueError):
    """Unusable YAML text; ``line`` starts at 1, None for the whole text."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


def parse_value(text: str) -> Any:
    """Return the value of one YAML text.

    Raises:
        YamlProblem: it is not YAML.
    """
    return _parsed(text)[0]


def parse_mapping(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the top-level mapping of a YAML text, and the line of each key, from 1.

    An empty text is an empty mapping.

    Raises:
        YamlProblem: it is not YAML, or something else than a mapping, or has keys that are not text.
    """
    value, node = _parsed(text)
    if value is None:
        return {}, {}
    if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
        kind = "a list" if isinstance(value, list) else "a single value"
        raise YamlProblem(f"expected lines of the form 'key: value', found {kind}", None)
    lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
    for key in value:
        if not isinstance(key, str):
            raise YamlProblem(f"expected a name as key, got {key!r}", lines.get(str(key)))
    return value, lines


def read_bundled(package: str, name: str) -> dict[str, Any]:
    """Return the mapping in a YAML file of one of this project's packages."""
    return parse_mapping(files(package).joinpath(name).read_text(encoding="utf-8"))[0]


def read_model(path: Path, what: str, model: type[Model], error: type[UsageError] = UsageError) -> Model:
    """Read a YAML file that a user may change, as ``model``; messages call it ``what``.

    Raises:
        UsageError: it cannot be read; of the type ``error``.
    """
    try:
        return model.model_validate(parse_mapping(input_text(path, what, error))[0])
    except (YamlProblem, ValidationError) as fault:
        told = first_fault(fault) if isinstance(fault, ValidationError) else fault
        raise error(f"{path}: {told}; correct the file or restore it") from fault


def _parsed(text: str) -> tuple[Any, yaml.Node | None]:
    try:
        return yaml.load(text, _Loader), yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(error.problem or "not YAML", None if mark is None else mark.line + 1) from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlProblem(" ".join(str(error).split()), None) from error
    except RecursionError as error:
        raise YamlProblem("nested too deeply", None) from error


def dump_mapping(data: dict[str, Any]) -> str:
    """Return ``data`` as YAML that :func:`parse_mapping` reads back to the same values, keys in order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100)
