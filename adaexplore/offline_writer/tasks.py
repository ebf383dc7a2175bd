"""Compose problems without a model: random graphs of the given operators with fitting shapes."""

import ast
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from adaexplore.core.text.syntax import parse
from adaexplore.llm.protocol import TaskData
from adaexplore.tasks.operators import Bindings, Operator, Shape, written

_TRIES = 60
_MAX_INPUTS = 4
_LARGEST_PARAMETER = 2**15
_SMALLEST_SHARE = 1 / 256  # times the smallest input: sizes of values within a graph
_GROWTH = 4  # times the largest input
# drawn sizes of a first operand's dimensions, by their names in rules
_SIZES: dict[str, tuple[int, ...]] = {
    "N": (4, 8, 16, 32, 64, 128, 256, 512),
    "C": (4, 8, 16, 24, 32, 48, 64),
    "L": (16, 24, 32, 48, 64, 100, 128, 256),
    "D": (32, 48, 64, 80, 96, 128, 192, 256, 384, 512),
    "E": (16, 32, 64),
    "H": (8, 12, 14, 16, 20, 24, 28, 32, 48),
    "Z": (4, 8),
}
_SIZES |= {"W": _SIZES["H"]}
_LEADING = (("N",), ("N", "L"), ("N", "C", "H"))
# conversions that make a value meet a need: operators, their text, the resulting trait
_BRIDGES = {
    "positive": ("softplus, add", "F.softplus({}) + 0.1", "positive"),
    "unit": ("sigmoid", "torch.sigmoid({})", "unit bounded"),
    "open": ("tanh", "torch.tanh({})", "open bounded"),
    "bounded": ("tanh", "torch.tanh({})", "open bounded"),
}


@dataclass(frozen=True)
class _Value:
    """A tensor of the graph; ``traits`` are the needs of :class:`Operator` that it meets."""

    name: str
    shape: Shape
    traits: frozenset[str]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class _Program:
    """A growing module."""

    rng: random.Random
    inputs: list[tuple[str, str]] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    made: int = 0

    def add_input(self, text: str, shape: Shape, traits: str) -> _Value:
        name = f"x{len(self.inputs)}" if self.inputs else "x"
        self.inputs.append((name, text))
        value = _Value(name, shape, frozenset(traits.split()))
        self.values.append(value)
        return value

    def add_layer(self, title: str, text: str) -> str:
        name = f"{title}_{len(self.layers) + 1}"
        self.layers.append(f"self.{name} = {text}")
        return f"self.{name}"

    def compute(self, title: str, text: str, shape: Shape, traits: set[str]) -> _Value:
        self.made += 1
        value = _Value(f"h{self.made}", shape, frozenset(traits))
        self.lines.append(f"{value.name} = {text}")
        self.titles += title.split(", ")
        self.values.append(value)
        return value

    def calls(self) -> int:
        """Return the number of called operators; those within one entry's expression count separately."""
        nodes = [node for line in self.lines for node in ast.walk(parse(line))]
        return sum(isinstance(node, ast.Call | ast.BinOp) for node in nodes)

    def source(self) -> str:
        names = ", ".join(f"{name}: torch.Tensor" for name, _ in self.inputs)
        given = ",\n        ".join(text for _, text in self.inputs)
        constructor = "".join(f"        {line}\n" for line in ["super().__init__()", *self.layers])
        constructor = f"    def __init__(self):\n{constructor}\n" if self.layers else ""
        *before, last = self.lines
        body = "".join(f"        {line}\n" for line in [*before, f"return {last.partition(' = ')[2]}"])
        text = (
            f'class Model(nn.Module):\n    """{_sentence(self.titles)}"""\n\n{constructor}'
            f"    def forward(self, {names}) -> torch.Tensor:\n{body}\n\n"
            f"def get_inputs():\n    return [\n        {given},\n    ]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        ).replace("'", '"')
        functional = "import torch.nn.functional as F\n" if re.search(r"\bF\.", text) else ""
        return f"import torch\nimport torch.nn as nn\n{functional}\n\n{text}"


def _sentence(titles: list[str]) -> str:
    text = ", ".join(titles).replace("_", " ")
    return f"{text[0].upper()}{text[1:]}."


def compose(data: TaskData, rng: random.Random) -> str | None:
    """Return a problem module; None if no operators fit together."""
    for _ in range(_TRIES if data.operators else 0):
        wanted = rng.randint(data.fewest, data.most)
        program = _grown(data.operators, wanted, (data.low, data.high), rng)
        if program is not None and program.calls() <= data.most:
            return program.source()
    return None


def _grown(
    operators: Sequence[Operator], wanted: int, limits: tuple[int, int], rng: random.Random
) -> _Program | None:
    first = rng.choice(operators)
    shape = _first_shape(first, limits, rng)
    if shape is None:
        return None
    program = _Program(rng)
    value = program.add_input(f"torch.randn({_dims(shape)})", shape, "bounded exact")
    used: set[str] = set()
    choice = [first]
    while len(program.titles) < wanted:
        last = len(program.titles) == wanted - 1
        rest = [each for each in operators if each.source not in used]
        rng.shuffle(rest)
        grown = None
        for entry in choice or rest:
            grown = _applied(program, entry, value, limits, last)
            if grown is not None:
                used.add(entry.source)
                break
        if grown is None:
            return None
        value, choice = grown, []
    return program


def _first_shape(entry: Operator, limits: tuple[int, int], rng: random.Random) -> Shape | None:
    """Return a shape within the limits that the operator accepts."""
    pattern = next(iter(entry.operands.values())).partition(":")[0].split()
    if pattern[0] == "*":
        rest = pattern[1:]
        leading = rng.choice(_LEADING)
        pattern = [*leading, *rest] if rest else [*leading, "D"]
    for _ in range(_TRIES):
        sizes: dict[str, int] = {}
        for token in pattern:
            sizes.setdefault(token, int(token) if token.isdecimal() else rng.choice(_SIZES[token]))
        shape = tuple(sizes[token] for token in pattern)
        if limits[0] <= math.prod(shape) <= limits[1] and entry.bind(shape, rng) is not None:
            return shape
    return None


def _applied(
    program: _Program, entry: Operator, value: _Value, limits: tuple[int, int], last: bool
) -> _Value | None:
    """Add the operator on ``value`` to the program and return its result; None if it does not fit."""
    rng = program.rng
    if entry.needs == "exact" and "exact" not in value.traits:
        return None
    bound = entry.bind(value.shape, rng)
    if bound is None:
        return None
    shape = entry.result(bound)
    size = math.prod(shape)
    if size > _GROWTH * limits[1] or (not last and size < limits[0] * _SMALLEST_SHARE):
        return None
    if not last and entry.holds != "float":
        return None
    others = list(entry.operands)[1:]
    if sum(_new_input(entry, name, bound) for name in others) + len(program.inputs) > _MAX_INPUTS:
        return None
    if entry.needs in _BRIDGES and entry.needs not in value.traits:
        title, text, traits = _BRIDGES[entry.needs]
        value = program.compute(title, text.format(value.name), value.shape, set(traits.split()))
    numbers = {name: repr(given) for name, given in bound.items()}
    first = next(iter(entry.operands))
    names = {first: value.name} | {name: _operand(program, entry, name, bound, value) for name in others}
    as_layer = bool(entry.module) and ("layer" in entry.call or rng.random() < 0.5)
    if as_layer:
        path = program.add_layer(entry.name, written(entry.module, numbers))
        text = entry.call if "layer" in entry.call else f"layer({first})"
        text = written(text, {**numbers, **names, "layer": path})
    else:
        text = written(entry.call, {**numbers, **names})
    traits_after = set(entry.gives) - {"keeps"}
    if "keeps" in entry.gives:
        traits_after |= value.traits & {"bounded"}
    return program.compute(entry.name, text, shape, traits_after)


def _new_input(entry: Operator, name: str, bound: Bindings) -> bool:
    """Return True if an operand may have to be a separate input."""
    kind, _ = entry.content(name, bound)
    return kind != "float" or math.prod(entry.shape_of(name, bound)) > _LARGEST_PARAMETER


def _operand(program: _Program, entry: Operator, name: str, bound: Bindings, value: _Value) -> str:
    """Return the name of another operand: an existing value, a parameter, or a new input."""
    rng = program.rng
    shape = entry.shape_of(name, bound)
    kind, limit = entry.content(name, bound)
    dims = _dims(shape)
    if kind == "float":
        known = [other for other in program.values if other.shape == shape and other.name != value.name]
        if known and rng.random() < 0.7:
            return rng.choice(known).name
        small = math.prod(shape) <= _LARGEST_PARAMETER
        if small and (rng.random() < 0.6 or len(program.inputs) >= _MAX_INPUTS):
            scale = f"{round(shape[0] ** -0.5, 4)} * " if entry.family == "matrix" and len(shape) > 1 else ""
            return program.add_layer("weight", f"nn.Parameter({scale}torch.randn({dims}))")
    texts: dict[str, str] = {
        "positive": f"torch.rand({dims}) + 0.5",
        "unit": f"0.98 * torch.rand({dims}) + 0.01",
        "bool": f"torch.rand({dims}) < 0.5",
        "sign": f"2.0 * torch.randint(0, 2, {shape}) - 1.0",
        "int": f"torch.randint(0, {limit}, {shape})",
    }
    traits = {"positive": "positive bounded", "unit": "unit bounded"}.get(kind, "bounded exact")
    made = program.add_input(texts.get(kind, f"torch.randn({dims})"), shape, traits)
    if kind in ("int", "bool"):  # no operator uses it
        program.values.remove(made)
    return made.name


def _dims(shape: Shape) -> str:
    return ", ".join(map(str, shape))


def answer(data: TaskData, rng: random.Random) -> str:
    source = compose(data, rng)
    return f"```python\n{source}```" if source is not None else "No operators that fit together were shown."
