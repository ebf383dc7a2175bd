"""Load a validated configuration from YAML and ``--set key=value``, and write it as YAML."""

import difflib
import json
import logging
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from adaexplore.core.errors import ConfigError
from adaexplore.core.files.inputs import input_text
from adaexplore.settings.config import RunConfig
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import YamlProblem, dump_mapping, parse_mapping, parse_value

logger = logging.getLogger(__name__)

_EXPECTED = {
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "text without halves of surrogate pairs",
    "tuple_type": "a list such as {example}",
    "finite_number": "a finite number",
    "string_too_short": "text that is not empty",
    "too_short": "a list that is not empty",
    "greater_than": "a number > {gt}",
    "greater_than_equal": "a number >= {ge}",
    "less_than_equal": "a number <= {le}",
    "literal_error": "one of {expected}",
    "string_pattern_mismatch": "a target such as sm_90",
}
_LISTS = {"omit_facts": "[versions]", "task": "[softmax.py, problems]"}
"""Examples of values of keys that take a list of names."""


def load_config(
    path: Path | None, overrides: Sequence[str] = (), chosen: Mapping[str, object] | None = None
) -> RunConfig:
    """Read a configuration.

    Args:
        path: YAML file; None or an empty file means defaults.
        overrides: ``key=value`` texts, values written as in YAML; later ones override earlier ones, and
            all override the file.
        chosen: values of the command itself, which override all others.

    Raises:
        ConfigError: a line for every problem found.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []
    if path is not None:
        values, lines = _read_file(path)
        origins = {key: f"{path}:{line}" for key, line in lines.items()}
    for text in overrides:
        try:
            key, value = _parse_override(text)
        except YamlProblem as problem:
            problems.append(" ".join(f"--set {text}: {problem}".split()))
            continue
        values[key] = value
        origins[key] = "--set"
    for key, chosen_value in (chosen or {}).items():
        values[key] = chosen_value
        origins.pop(key, None)
    try:
        config = RunConfig.model_validate(values)
    except ValidationError as error:
        problems += _describe_all(error.errors(include_url=False), origins)
    if problems:
        raise ConfigError("\n".join(problems))
    if config.max_small_failures is not None:
        logger.warning("%s: max_small_failures has no effect", origins["max_small_failures"])
    return config


def resolved_yaml(config: RunConfig) -> str:
    """Return every key with its value in use, as YAML that :func:`load_config` reads back unchanged."""
    return dump_mapping(config.model_dump(mode="json"))


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    advice = "check the path given with --config"
    try:
        return parse_mapping(input_text(locate(path), "configuration file", ConfigError, advice))
    except YamlProblem as problem:
        where = path if problem.line is None else f"{path}:{problem.line}"
        raise ConfigError(f"{where}: {problem}") from problem


def _parse_override(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise YamlProblem("expected key=value, such as --set total_steps=10", None)
    if not value.strip():
        raise YamlProblem("expected a value after =, or null for none", None)
    read, given = parse_value(value), value.strip()
    if isinstance(read, str) and read != given and given[0] not in "'\"|>!&":
        raise YamlProblem(f"as YAML this is {_shown(read)}; put the value in quotes", None)
    return key.strip(), read


def _describe_all(details: Sequence[ErrorDetails], origins: Mapping[str, str]) -> list[str]:
    """Describe the problems, one text per key in the order given; then problems of several keys."""
    grouped: dict[str, list[ErrorDetails]] = {key: [] for key in origins}
    for detail in details:
        grouped.setdefault(str(detail["loc"][0]) if detail["loc"] else "", []).append(detail)
    return [
        (f"{origins[key]}: " if key in origins else "") + _describe(key, group)
        for key, group in grouped.items()
        if group
    ]


def _describe(key: str, group: Sequence[ErrorDetails]) -> str:
    """Describe the problem of one key; a key with several types has an error for each."""
    first = group[0]
    if first["type"] == "extra_forbidden":
        return _unknown_key(key)
    if not key:
        return str(first["ctx"]["error"]) if "ctx" in first else first["msg"]
    value = first["input"]
    name = key + "".join(f"[{part}]" for part in first["loc"][1:] if isinstance(part, int))
    relevant = [detail for detail in group if not detail["type"].endswith("_type")] or group
    example = _LISTS.get(key, "[0, 1]")
    expected = dict.fromkeys(
        _EXPECTED.get(detail["type"], detail["msg"]).format(example=example, **detail.get("ctx", {}))
        for detail in relevant
    )
    hint = "; put it in quotes" if "text" in expected and isinstance(value, int | float) else ""
    return f"{name}: expected {' or '.join(expected)}, got {_shown(value)}{hint}"


def _shown(value: Any) -> str:
    """Return ``value`` in one short line, as YAML writes it; a list that holds itself ends in dots."""
    nested = isinstance(value, list | dict)
    text = reprlib.repr(value) if nested else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _unknown_key(key: str) -> str:
    nearest = difflib.get_close_matches(key.lower(), RunConfig.model_fields, n=1, cutoff=0.0)[0]
    return f"unknown key {_shown(key)}, the nearest known one is '{nearest}'"
