"""Constants whose values a config sweep may choose: ``TUNABLES`` and the constants that it names.

A candidate declares them at its top level, all as literals:

    BLOCK_M = 64
    NUM_WARPS = 4
    TUNABLES = {"BLOCK_M": [32, 64, 128], "NUM_WARPS": [4, 8]}

A constant that a kernel reads as a global may be wrapped, as Triton requires: ``BLOCK_M = tl.constexpr(64)``.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.text.syntax import bound_names, parsed, statements

TUNABLES = "TUNABLES"
MAX_NAMES = 6
MAX_CHOICES = 12
_MAX_TEXT = 40
_MAX_NUMBER = 2**31

Value = bool | int | float | str
Values = dict[str, Value]


@dataclass(frozen=True)
class Tunable:
    name: str
    declared: Value  # its value in the source
    choices: tuple[Value, ...]  # the values to try, without duplicates; ``declared`` need not be one of them


class TunablesError(ValueError):
    """``TUNABLES`` cannot be used; the message is one line and names the line of the source."""


def read_tunables(source: str) -> tuple[Tunable, ...]:
    """Return the tunables of ``source``, in the order of ``TUNABLES``; empty without any.

    A source that does not parse has none.

    Raises:
        TunablesError: a declaration cannot be used.
    """
    return tuple(tunable for tunable, _ in _declarations(source))


def with_values(source: str, values: Mapping[str, Value]) -> str:
    """Return ``source`` with other values for some tunables; the rest, including ``TUNABLES``, is unchanged.

    Raises:
        TunablesError: as :func:`read_tunables`.
        KeyError: a name is not one of the tunables.
    """
    literals = {tunable.name: literal for tunable, literal in _declarations(source)}
    lines = source.encode("utf-8", "surrogatepass").splitlines(keepends=True)
    for name in sorted(values, key=lambda name: literals[name].start, reverse=True):
        place = literals[name]
        if place.value == values[name] and type(place.value) is type(values[name]):
            continue
        number, begin, end = place.start[0], place.start[1], place.end
        line = lines[number]
        lines[number] = line[:begin] + repr(values[name]).encode() + line[end:]
    return b"".join(lines).decode("utf-8", "surrogatepass")


def declared_values(tunables: Sequence[Tunable]) -> Values:
    return {tunable.name: tunable.declared for tunable in tunables}


def count(tunables: Sequence[Tunable]) -> int:
    """Return the number of combinations of choices."""
    return math.prod(len(tunable.choices) for tunable in tunables)


def combination(tunables: Sequence[Tunable], number: int) -> Values:
    """Return the declared values for 0, and combinations of the choices for 1 to :func:`count`."""
    if not number:
        return declared_values(tunables)
    values: Values = {}
    rest = number - 1
    for tunable in tunables:
        rest, choice = divmod(rest, len(tunable.choices))
        values[tunable.name] = tunable.choices[choice]
    return values


@dataclass(frozen=True)
class _Literal:
    """Position of a constant's value: line, from 0, and bytes within it."""

    value: Value
    start: tuple[int, int]
    end: int


def _declarations(source: str) -> list[tuple[Tunable, _Literal]]:
    module = parsed(source) if TUNABLES in source else None
    if module is None:
        return []
    bindings = _bindings(module)
    table = bindings.get(TUNABLES, [])
    if not table:
        return []
    if len(table) > 1:
        raise _wrong(table[1], f"{TUNABLES} is assigned more than once; write it once")
    found = []
    for name, choices in _choices(table[0]):
        places = bindings.get(name, [])
        if len(places) != 1:
            often = "more than once" if places else "nowhere at the top level"
            raise _wrong(table[0], f"{name} is assigned {often}; write {name} = <literal> once")
        literal = _literal(places[0])
        if literal is None:
            raise _wrong(places[0], f"{name} must be a literal number, boolean or short string")
        odd = [choice for choice in choices if _kind(choice) != _kind(literal.value)]
        if odd:
            raise _wrong(table[0], f"{name} is {literal.value!r}, its choice {odd[0]!r} is of another kind")
        found.append((Tunable(name, literal.value, choices), literal))
    return found


def _choices(table: ast.stmt) -> list[tuple[str, tuple[Value, ...]]]:
    value = table.value if isinstance(table, ast.Assign | ast.AnnAssign) else None
    example = f'{TUNABLES} must be a literal like {{"BLOCK_M": [32, 64], "NUM_WARPS": [4, 8]}}'
    if not isinstance(value, ast.Dict):
        raise _wrong(table, example)
    pairs = zip(value.keys, value.values, strict=True)
    try:
        listed = [(ast.literal_eval(key or value), ast.literal_eval(part)) for key, part in pairs]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _wrong(table, example) from None
    names = [name for name, _ in listed]
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise _wrong(table, example)
    if len(names) > MAX_NAMES:
        raise _wrong(table, f"{TUNABLES} names {len(names)} constants; name at most {MAX_NAMES}")
    found = []
    for name, part in listed:
        if not isinstance(part, list | tuple) or not part or not all(map(_is_value, part)):
            raise _wrong(table, f"{name} needs a list of literal numbers, booleans or short strings")
        if len(part) > MAX_CHOICES:
            raise _wrong(table, f"{name} has {len(part)} choices; give at most {MAX_CHOICES}")
        distinct = {(type(choice), choice): choice for choice in part}
        found.append((name, tuple(distinct.values())))
    return found


def _bindings(module: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return for each name the statements that bind it at the top level, or through ``global``."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in statements(module.body):
        names = [*bound_names(statement)]
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            shared = (part.names for part in ast.walk(statement) if isinstance(part, ast.Global))
            names += [name for each in shared for name in each]
        for name in names:
            found.setdefault(name, []).append(statement)
    return found


def _literal(statement: ast.stmt) -> _Literal | None:
    """Return the value of ``NAME = <literal>`` or ``NAME = tl.constexpr(<literal>)``; None otherwise."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
            pass
        case _:
            return None
    match value:
        case ast.Call(
            func=ast.Attribute(attr="constexpr") | ast.Name(id="constexpr"), args=[inner], keywords=[]
        ):
            value = inner
    try:
        constant = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if not _is_value(constant) or value.end_lineno != value.lineno or value.end_col_offset is None:
        return None
    return _Literal(constant, (value.lineno - 1, value.col_offset), value.end_col_offset)


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_TEXT and value.isascii() and value.isprintable()
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= _MAX_NUMBER


def _kind(value: Value) -> str:
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


def _wrong(statement: ast.stmt, what: str) -> TunablesError:
    return TunablesError(f"line {statement.lineno}: {what}")
