"""Statements of a kernel's body for the operations of one region."""

from collections.abc import Mapping
from functools import cache

from adaexplore.offline_writer.codegen.launch import Names, Parameters
from adaexplore.offline_writer.tracing.graph import (
    Constant,
    Drop,
    Pointwise,
    Reduction,
    Value,
    is_tensor,
    scalar_type_of,
)
from adaexplore.settings.yaml_text import read_bundled


class Body:
    """Writes statements; each value is computed once, under its own name."""

    def __init__(
        self,
        parameters: Parameters,
        indent: str = "    ",
        names: Names | None = None,
        known: Mapping[Value, str] | None = None,
    ) -> None:
        self._parameters = parameters
        self._names = names or parameters.names.copy()
        self.known: dict[Value, str] = {**parameters.scalars, **(known or {})}
        self.lines: list[str] = []
        self.indent = indent

    def add(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def load(self, leaf: Value) -> None:
        """Read a leaf at ``index``."""
        name = self._parameters.leaves[leaf]
        step = f"_at(index, {name.upper()}_STEP, {name.upper()}_SIZE)"
        index = step if self._parameters.broadcast else "index"
        cast = ".to(tl.float32)" if scalar_type_of(leaf) == "f" else ""
        target = self._names.new(name)
        self.add(f"{target} = tl.load({name}_ptr + {index}, mask=mask){cast}")
        self.known[leaf] = target

    def compute(self, value: Value) -> str:
        """Write the statements that compute ``value``; return its name."""
        if isinstance(value, Constant):
            return _number(value)
        if value in self.known:
            return self.known[value]
        if value in self._parameters.leaves:
            self.load(value)
            return self.known[value]
        if isinstance(value, Drop):
            return self.compute(value.operand)
        if isinstance(value, Reduction):
            return self._reduce(value)
        assert isinstance(value, Pointwise), f"no kernel computes {value}"
        texts = [self.compute(operand) for operand in value.operands]
        casts = [
            value.scalar_type == "f" and is_tensor(operand) and scalar_type_of(operand) != "f"
            for operand in value.operands
        ]
        casts[0] = casts[0] and value.name != "where"
        read = (f"{text}.to(tl.float32)" if cast else text for text, cast in zip(texts, casts, strict=True))
        expression = _templates()[value.name].format(*read)
        name = self._names.new(value.name if value.name not in ("and", "or", "not") else f"both_{value.name}")
        self.add(f"{name} = {expression}")
        self.known[value] = name
        return name

    def _reduce(self, value: Reduction) -> str:
        inner = self.compute(value.operand)
        neutral = NEUTRAL[value.name]
        function = "sum" if value.name in ("sum", "mean") else value.name
        name = self._names.new(f"row_{value.name}")
        masked = f"tl.where(mask, {inner}, {neutral})"
        self.add(f"{name} = tl.{function}({masked}, axis=1)[:, None]{DIVISOR[value.name]}")
        self.known[value] = name
        return name


NEUTRAL = {"sum": "0.0", "mean": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
DIVISOR = {"sum": "", "mean": " / N", "max": "", "min": ""}


def _number(value: Constant) -> str:
    number = value.number
    if isinstance(number, float) and (number != number or number in (float("inf"), float("-inf"))):
        return f'float("{number}")'
    return repr(number)


@cache
def _templates() -> dict[str, str]:
    """Return the Triton expression of each operation."""
    return read_bundled("adaexplore.offline_writer.codegen", "expressions.yaml")
