"""What the parameters of a kernel are at a launch, as far as the launching code shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from adaexplore.preflight.candidate import Candidate, Kernel, Parameter, Tuning
from adaexplore.preflight.constants import UNKNOWN
from adaexplore.preflight.launch_lints import Launch
from adaexplore.preflight.scopes import Scopes, assigned_once
from adaexplore.preflight.values import INTEGER, POINTER, TYPE_NAMES, Block, Const, DType, Value, of_number

_MOST_CONFIGS = 64
_DEPTH = 6
_SIZES = ("numel", "size", "stride", "element_size", "dim", "ndimension", "storage_offset")
_MAKERS = frozenset(
    [
        *("empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like"),
        *("full", "full_like", "rand", "randn", "tensor", "arange"),
    ]
)
_SAME = frozenset(
    [
        *("contiguous", "view", "reshape", "detach", "clone", "flatten", "half", "float", "cuda", "to", "t"),
        *("transpose", "permute", "squeeze", "unsqueeze", "expand", "bfloat16", "double", "int"),
        *("new_empty", "new_zeros", "new_ones", "new_full", "view_as", "reshape_as"),
    ]
)


def variants(candidate: Candidate, scopes: Scopes, launch: Launch) -> Iterator[Mapping[str, Value]]:
    """The parameters' values, once for each set of tuned ones that is compiled for sure."""
    kernel = launch.kernel
    names = scopes.of(launch.where.node, launch.where.owner)
    fixed = {
        parameter.name: _argument(candidate, launch, parameter, names) for parameter in kernel.parameters
    }
    seen: list[Mapping[str, Value]] = []
    for tuning in _tunings(kernel):
        values = dict(fixed)
        for name, value in tuning.values.items() if tuning is not None else ():
            if name in values and name not in launch.bound:
                values[name] = Const(value)
        if values not in seen:
            seen.append(values)
            yield values


def _tunings(kernel: Kernel) -> list[Tuning]:
    nothing = Tuning({}, {}, 0)
    if kernel.configs and not kernel.pruned:
        return list(kernel.configs[:_MOST_CONFIGS])
    return [nothing]


def _argument(
    candidate: Candidate, launch: Launch, parameter: Parameter, names: Mapping[str, object]
) -> Value:
    kernel = launch.kernel
    expression = launch.bound.get(parameter.name)
    if kernel.filled is None or parameter.name in kernel.filled:
        return Const() if parameter.constexpr else Block((), None, given=True)
    if expression is None and launch.complete and not kernel.tuned:
        expression = parameter.default
    value = UNKNOWN if expression is None else candidate.constant(expression, names)
    if parameter.constexpr:
        path = candidate.path(expression) if expression is not None else None
        name = (path or "").rpartition(".")[2]
        return (
            DType(name)
            if (path or "").startswith("triton.language.") and name in TYPE_NAMES
            else Const(value)
        )
    if value is None or (value == 1 and type(value) is int):
        return Const(value)
    if value is not UNKNOWN:
        return of_number(value) or Block((), None, given=True)
    kind = _kind(candidate, expression, launch, 0) if expression is not None else None
    return Block((), kind, given=kind in (None, INTEGER))


def _kind(candidate: Candidate, node: ast.expr, launch: Launch, depth: int) -> str | None:
    """Element type that an argument surely has; ``integer`` may be 1, which becomes a constant."""
    if depth > _DEPTH:
        return None
    match node:
        case ast.Call(func=ast.Attribute(attr="data_ptr"), args=[]):
            return "int64"
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SIZES:
            return INTEGER
        case ast.Call(func=ast.Name(id="float")):
            return "fp32"
        case ast.Call(func=ast.Name(id="int" | "len")):
            return INTEGER
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)) if name in _MAKERS:
            return POINTER
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME:
            inner = _kind(candidate, owner, launch, depth + 1)
            return POINTER if inner == POINTER or name == "contiguous" else None
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return INTEGER
        case ast.Name(id=name):
            where = launch.where.node
            bound = None if isinstance(where, ast.Module) else assigned_once(where, name)
            return None if bound is None else _kind(candidate, bound, launch, depth + 1)
        case _:
            return None
