"""The JSON files of FlashInfer-Bench and SOL-ExecBench: definitions, workloads and solutions.

Fields of only one of the two are optional. Unknown fields, which both have, are ignored.
"""

import ast
import keyword
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adaexplore.core.text.syntax import parse, parse_expression

Dtype = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
Name = Annotated[str, Field(min_length=1)]
_ARITHMETIC = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.operator, ast.unaryop,
)  # fmt: skip


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Axis(_Read):
    """``const`` has a value, ``expr`` an expression of other axes; a workload binds each ``var``."""

    type: Literal["const", "var", "expr"]
    value: int | None = Field(default=None, ge=0)
    expression: str | None = None

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if (self.value is None) == (self.type == "const"):
            raise ValueError("a const axis, and no other, has a value")
        if (self.expression is None) == (self.type == "expr"):
            raise ValueError("an expr axis, and no other, has an expression")
        if self.expression is not None:
            nodes = list(ast.walk(parse_expression(self.expression)))
            if not all(isinstance(node, _ARITHMETIC) for node in nodes):
                raise ValueError(f"{self.expression!r} is not arithmetic of axes")
        return self

    @property
    def used(self) -> list[str]:
        """The axes in the expression."""
        if self.expression is None:
            return []
        return [node.id for node in ast.walk(parse_expression(self.expression)) if isinstance(node, ast.Name)]


class Tensor(_Read):
    """An input or output: its shape in axes or numbers; without a shape it is a Python number."""

    shape: tuple[str, ...] | None
    dtype: Dtype


class Definition(_Read):
    """One operator: axes, inputs and outputs in the order of its arguments, and a reference ``run``."""

    name: Name
    op_type: str | None = None
    axes: dict[str, Axis]
    inputs: dict[str, Tensor] = Field(min_length=1)
    outputs: dict[str, Tensor] = Field(min_length=1)
    reference: Name
    custom_inputs_entrypoint: str | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = [*self.inputs, *self.outputs]
        odd = [name for name in (*names, *self.axes) if not name.isidentifier() or keyword.iskeyword(name)]
        unknown = [
            axis
            for tensor in (*self.inputs.values(), *self.outputs.values())
            for axis in tensor.shape or ()
            if axis not in self.axes and not axis.isdecimal()
        ]
        if odd:
            raise ValueError(f"{odd[0]!r} cannot be the name of an argument or an axis")
        if len(set(names)) < len(names):
            raise ValueError("an input and an output have one name")
        if unknown:
            raise ValueError(f"a shape names the axis {unknown[0]!r}, which is not defined")
        for name, axis in self.axes.items():
            for used in axis.used:
                if used not in self.axes:
                    raise ValueError(f"the axis {name!r} uses {used!r}, which is not an axis")
        try:
            self.axes_in_order()
        except CycleError as error:
            raise ValueError(f"the axis {error.args[1][0]!r} depends on itself") from error
        wanted = {"run", self.custom_inputs_entrypoint or "run"}
        tree = parse(self.reference)
        missing = wanted - {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if missing:
            raise ValueError(f"the reference defines no function {', '.join(sorted(missing))}")
        return self

    def axes_in_order(self) -> list[tuple[str, Axis]]:
        """Return the axes, each after those that its expression uses."""
        graph = {name: axis.used for name, axis in self.axes.items()}
        return [(name, self.axes[name]) for name in TopologicalSorter(graph).static_order()]


class Generator(_Read):
    """How SOL-ExecBench draws an input of type ``generated``."""

    type: Literal["normal", "uniform", "constant", "integer", "simplex"]
    mean: float = 0.0
    std: float = 1.0
    low: float | str = 0
    high: float | str = 1
    value: float = 0.0
    axis: int = -1
    temperature: float = 1.0


class Input(_Read):
    """The origin of an input's content."""

    type: Literal["random", "scalar", "safetensors", "custom", "generated"]
    value: bool | int | float | None = None
    path: str | None = None
    tensor_key: str | None = None
    generator: Generator | None = None

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        needed: dict[str, tuple[object, ...]] = {
            "scalar": (self.value,),
            "safetensors": (self.path, self.tensor_key),
            "generated": (self.generator,),
        }
        if None in needed.get(self.type, ()):
            raise ValueError(f"an input of type {self.type} lacks a field")
        return self


class Tolerance(_Read):
    """The benchmark's tolerance, which replaces the judge's tiers.

    An element is correct if its error is at most ``max_atol`` plus ``max_rtol`` times its size; if not
    ``added``, at most the larger of the two. An output is correct if ``required_matched_ratio`` of its
    elements are correct and no error exceeds ``max_error_cap``.
    """

    max_atol: float = Field(default=1e-2, ge=0, allow_inf_nan=False)
    max_rtol: float = Field(default=1e-2, ge=0, allow_inf_nan=False)
    required_matched_ratio: float = Field(default=0.99, ge=0, le=1)
    max_error_cap: float | None = Field(default=None, ge=0)
    added: bool = True


class Check(Tolerance):
    """How SOL-ExecBench for ROCm compares one output."""

    type: str
    mode: str = "elementwise"
    required_matched_ratio: float = Field(default=1.0, ge=0, le=1)


class Workload(_Read):
    """Values of the variable axes, and origins of the inputs."""

    uuid: Name
    axes: dict[str, int]
    inputs: dict[str, Input]
    tolerance: Tolerance | None = None
    checks: tuple[Check, ...] | None = None


class Source(_Read):
    """One file of a solution."""

    path: Name
    content: str


class Build(_Read):
    """Build and call settings of a solution; FlashInfer-Bench names one language, SOL-ExecBench several."""

    language: str | None = None
    languages: tuple[str, ...] | None = None
    target_hardware: tuple[str, ...]
    entry_point: str = Field(pattern=r"^[^:]+::[^:]+$")
    destination_passing_style: bool = True


class Solution(_Read):
    """A candidate for a definition."""

    name: Name
    definition: Name
    author: Name
    spec: Build
    sources: tuple[Source, ...] = Field(min_length=1)
