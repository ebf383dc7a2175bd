"""Lints on launches: arguments compared with the kernel's parameters and autotune configurations."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.environment import TritonFacts
from adaexplore.preflight.bindings import is_open
from adaexplore.preflight.candidate import Candidate, Kernel
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.scopes import Where, assigned_once

_RUN_OPTIONS = {"grid", "warmup"}
ALWAYS_TUNED = ("num_warps", "num_stages", "num_ctas")


@dataclass(frozen=True)
class Launch:
    """A place where a kernel is launched."""

    kernel: Kernel
    call: ast.Call
    bound: Mapping[str, ast.expr]  # the arguments by parameter
    complete: bool  # whether ``bound`` has all arguments: no ``*`` and no ``**``
    where: Where


def launch_of(candidate: Candidate, node: ast.AST, where: Where) -> Launch | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
        return None
    target = node.func.value
    if not (isinstance(target, ast.Name) and target.id in candidate.kernels):
        return None
    kernel = candidate.kernels[target.id]
    names = [parameter.name for parameter in kernel.parameters]
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    bound = {} if starred else dict(zip(names, node.args, strict=False))
    bound |= {word.arg: word.value for word in node.keywords if word.arg is not None}
    return Launch(kernel, node, bound, not is_open(node), where)


def launch_findings(candidate: Candidate, launch: Launch, triton: TritonFacts | None) -> Iterator[Finding]:
    """Yield faults of a launch that occur before the kernel is compiled."""
    kernel, call = launch.kernel, launch.call
    names = [parameter.name for parameter in kernel.parameters]
    words = [word for word in call.keywords if word.arg is not None]
    by_position = [] if any(isinstance(arg, ast.Starred) for arg in call.args) else names[: len(call.args)]
    for word in words:
        if word.arg in by_position:
            yield finding("launch-duplicate-argument", word.value.lineno, kernel=kernel.name, name=word.arg)
    yield from _tuned(launch, by_position)
    if triton is not None and triton.launch_options:
        allowed = {*names, *triton.launch_options, *_RUN_OPTIONS}
        hints = {"meta": "; name the parameters themselves: BLOCK=..."}
        given = [(call.lineno, word.arg, hints.get(word.arg or "", "")) for word in words]
        given += [(config.line, name, "") for config in kernel.configs or () for name in config.names]
        for line, name, hint in given:
            if name not in allowed:
                yield finding("launch-unknown-argument", line, kernel=kernel.name, name=name, hint=hint)
    yield from _missing(launch, names)
    yield from _grid(launch)
    yield from _warps(candidate, launch)


def _tuned(launch: Launch, by_position: Sequence[str]) -> Iterator[Finding]:
    """Yield findings on parameters that both the launch and the configurations set."""
    kernel = launch.kernel
    if not kernel.tuned or not kernel.configs:
        return
    keys = [config.names for config in kernel.configs]
    tuned = frozenset.intersection(*keys) if kernel.pruned else frozenset.union(*keys)
    given = {word.arg for word in launch.call.keywords if word.arg}
    for name in sorted(tuned & (given | set(by_position))) + [
        name for name in ALWAYS_TUNED if name in given and name not in tuned
    ]:
        yield finding("launch-tuned-argument", launch.call.lineno, kernel=kernel.name, name=name)


def _missing(launch: Launch, names: Sequence[str]) -> Iterator[Finding]:
    kernel = launch.kernel
    if not launch.complete or kernel.filled is None or (kernel.tuned and kernel.configs is None):
        return
    if len(launch.call.args) > len(names):
        what = f"takes {len(names)} arguments and gets {len(launch.call.args)}"
        yield finding("call-arguments", launch.call.lineno, name=f"{kernel.name}[grid]", what=what)
    filled = {name for config in kernel.configs or () for name in config.names} | kernel.filled
    for parameter in kernel.parameters:
        name = parameter.name
        if parameter.default is None and name not in launch.bound and name not in filled:
            yield finding("launch-missing-argument", launch.call.lineno, kernel=kernel.name, name=name)


def _warps(candidate: Candidate, launch: Launch) -> Iterator[Finding]:
    given = [(launch.call.lineno, candidate.constant(launch.bound.get("num_warps")))]
    if not launch.kernel.pruned:
        given += [(config.line, config.num_warps) for config in launch.kernel.configs or ()]
    for line, value in given:
        if isinstance(value, int) and not isinstance(value, bool) and (value < 1 or value & (value - 1)):
            yield finding("num-warps", line, value=value)


def _grid(launch: Launch) -> Iterator[Finding]:
    """Yield findings on literal grids with values other than integers."""
    assert isinstance(launch.call.func, ast.Subscript)
    grid: ast.expr | None = launch.call.func.slice
    where = launch.where.node
    if isinstance(grid, ast.Name) and not isinstance(where, ast.Module):
        grid = assigned_once(where, grid.id)
    if isinstance(grid, ast.Lambda):
        grid = grid.body
    for item in grid.elts if isinstance(grid, ast.Tuple | ast.List) else ():
        match item:
            case ast.Tuple() | ast.List():
                yield finding("grid-type", item.lineno, kernel=launch.kernel.name, what="tuple")
            case ast.Constant(value=float()) | ast.BinOp(op=ast.Div()):
                yield finding("grid-type", item.lineno, kernel=launch.kernel.name, what="float")
