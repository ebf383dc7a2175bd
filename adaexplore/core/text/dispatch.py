"""Tunables by shape: a block at the end of a source sets its tunables before each call of ``forward``.

A *shape class* is the bit length of each size of the input tensors: sizes from 64 to 127 are in one class.
Classes that the block does not list use the values written in the source.
"""

import re
from collections.abc import Iterable, Mapping

from adaexplore.core.text.tunables import Tunable, Values, declared_values, read_tunables

ShapeClass = tuple[int, ...]

_BEGIN = "# Numbers by shape class, written by the judge's sweep."
_END = "# End of the numbers by shape class."


def shape_class(sizes: Iterable[int]) -> ShapeClass:
    """Return the class of inputs whose tensors have these ``sizes``, one tensor after the other."""
    return tuple(size.bit_length() for size in sizes)


def can_dispatch(source: str, tunables: tuple[Tunable, ...]) -> bool:
    """Return whether values may change after the module is loaded.

    For this no kernel reads one as a global, and ``ModelNew`` is no plain function.
    """
    names = "|".join(tunable.name for tunable in tunables)
    if re.search(r"^def ModelNew\b", source, re.M):
        return False
    return re.search(rf"^(?:{names})\b.*constexpr", source, re.M) is None


def without_dispatch(source: str) -> str:
    """Return ``source`` without its block, if it has one."""
    before, begin, rest = source.partition(f"\n{_BEGIN}\n")
    head = before.rstrip("\n")
    _, end, after = rest.partition(f"\n{_END}\n")
    return f"{head}\n{after}" if begin and end else source


def with_dispatch(source: str, table: Mapping[ShapeClass, Values]) -> str:
    """Return ``source``, which has no block, with one for ``table`` if that changes any value.

    Raises:
        TunablesError: its tunables cannot be used.
        KeyError: a value is missing.
    """
    declared = declared_values(read_tunables(source))
    if all(values == declared for values in table.values()):
        return source
    names = ", ".join(declared)

    def row(values: Values) -> str:
        return repr(tuple(values[name] for name in declared))

    lines = [
        _BEGIN,
        "_NUMBERS_BY_SHAPE = {",
        *(f"    {key!r}: {row(values)}," for key, values in table.items()),
        "}",
        "",
        "",
        "def _by_shape(forward):",
        "    def call(self, *inputs, **named):",
        f"        global {names}",
        "        given = (*inputs, *named.values())",
        '        sizes = (size for each in given for size in getattr(each, "shape", ()))',
        "        key = tuple(size.bit_length() for size in sizes)",
        f"        {names}{',' * (len(declared) == 1)} = _NUMBERS_BY_SHAPE.get(key, {row(declared)})",
        "        return forward(self, *inputs, **named)",
        "",
        "    return call",
        "",
        "",
        "ModelNew.forward = _by_shape(ModelNew.forward)",
        _END,
    ]
    return source.rstrip("\n") + "\n\n\n" + "\n".join(lines) + "\n"
