"""Translate a reference module's source into a module whose ``ModelNew`` calls Triton kernels.

Functions raise SyntaxError if the source is not Python.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from adaexplore.core.text.syntax import parse
from adaexplore.offline_writer.choices import FUSION, GEMM, NUMBERS, ROWS, Choices, header, tunables
from adaexplore.offline_writer.codegen.kernels import write_kernel
from adaexplore.offline_writer.codegen.launch import Kernel, Names
from adaexplore.offline_writer.codegen.regions import Region, cone, partition, reachable
from adaexplore.offline_writer.codegen.support import SUPPORT
from adaexplore.offline_writer.tracing.facts import (
    OTHER,
    SCALAR,
    ClassFacts,
    Kind,
    ModuleFacts,
    function,
    parsed,
    read_module,
)
from adaexplore.offline_writer.tracing.graph import (
    Constant,
    Drop,
    Host,
    Items,
    MatMul,
    Pointwise,
    Reduction,
    Value,
    is_scalar,
    is_tensor,
    scalar_type_of,
)
from adaexplore.offline_writer.tracing.trace import Tracer, readable

_IMPORTS = (
    "import functools",
    "import math",
    "import torch",
    "import torch.nn as nn",
    "import triton",
    "import triton.language as tl",
)
_DROPPED = {"get_inputs", "get_init_inputs", "get_workloads"}


@dataclass
class _Kernels:
    """The kernels of a module so far, by their content."""

    names: Names
    structure: dict[str, str]
    found: dict[str, Kernel] = field(default_factory=dict)

    def add(self, region: Region) -> tuple[str, tuple[Value, ...]]:
        """Return the name of the kernel of ``region`` and its arguments; equal kernels are written once."""
        nameless = write_kernel(region, "@", self.structure[ROWS])
        if nameless.source not in self.found:
            name = self.names.new(_title(region))
            self.found[nameless.source] = write_kernel(region, name, self.structure[ROWS])
        return self.found[nameless.source].name, nameless.arguments


def _title(region: Region) -> str:
    operations: list[str] = []
    for value in cone(region.root, set(region.leaves)):
        if isinstance(value, Pointwise | Reduction) and value.name not in operations:
            operations.append(value.name)
    kind = "matmul" if region.product is not None else "rows" if region.axes else "fused"
    return "_".join([kind, *operations[:4]])


def translate(source: str, choices: Choices) -> str:
    """Return the optimised module."""
    facts = read_module(source)
    taken = {node.id for node in ast.walk(facts.tree) if isinstance(node, ast.Name)}
    taken |= {item.name for item in facts.tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)}
    kernels = _Kernels(Names({*taken, *SUPPORT}), choices.structure)
    forwards = {}
    for owner in facts.classes:
        forward = function(owner.node, "forward")
        if forward is not None and not any(map(_changes_in_place, ast.walk(forward))):
            forwards[owner.node.name] = _Forward(facts, owner, forward, kernels).rewritten()
    tree = parsed(source)
    for item in tree.body:
        if isinstance(item, ast.ClassDef) and item.name in forwards:
            item.body = [
                forwards[item.name] if isinstance(part, ast.FunctionDef) and part.name == "forward" else part
                for part in _undocumented(item.body)
            ]
    _rename(tree, "Model", "ModelNew")
    ast.fix_missing_locations(tree)
    return _assemble(tree, list(kernels.found.values()), choices)


def _undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    return [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def renamed(source: str) -> str:
    """Return the module itself under the name ``ModelNew``; PyTorch runs it."""
    tree = parsed(source)
    _rename(tree, "Model", "ModelNew")
    return ast.unparse(tree) + "\n"


def _rename(tree: ast.Module, old: str, new: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == old:
            node.name = new
        elif isinstance(node, ast.Name) and node.id == old:
            node.id = new


def _assemble(tree: ast.Module, kernels: list[Kernel], choices: Choices) -> str:
    kept = _needed(tree)
    numbers = [name for name in NUMBERS if any(name in kernel.numbers for kernel in kernels)]
    written = "".join(kernel.source for kernel in kernels)
    helpers = [helper for name, helper in SUPPORT.items() if f"{name}(" in written]
    code = "\n\n\n".join(piece.rstrip() for piece in [*helpers, *(kernel.source for kernel in kernels)])
    text = "".join(
        ast.unparse(item) + ("\n" if isinstance(item, ast.Assign | ast.AnnAssign) else "\n\n\n")
        for item in kept
    )
    imports = [line for line in _IMPORTS if re.search(rf"\b{line.split()[-1]}\.", f"{code}\n{text}")]
    imports += [ast.unparse(item) for item in tree.body if isinstance(item, ast.Import | ast.ImportFrom)]
    constants = [f"{name} = {choices.numbers[name]}" for name in numbers]
    constants += [tunables(numbers)] if numbers and choices.swept else []
    parts = [header(choices.structure), "\n".join(dict.fromkeys(imports))]
    parts += ["\n".join(constants)] if constants else []
    return "\n\n".join(parts) + "\n\n\n" + (f"{code}\n\n\n" if code else "") + text.rstrip() + "\n"


def _needed(tree: ast.Module) -> list[ast.stmt]:
    """Return the module-level statements that the classes use."""
    kinds = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef)
    named: dict[ast.stmt, set[str]] = {
        item: {item.name} - _DROPPED if isinstance(item, ast.FunctionDef) else _names(item, ast.Store)
        for item in tree.body
        if isinstance(item, kinds)
    }
    kept: set[ast.stmt] = {item for item in tree.body if isinstance(item, ast.ClassDef)}
    while True:
        used = set[str]().union(*(_names(item, ast.Load) for item in kept))
        more = {item for item, names in named.items() if names & used} - kept
        if not more:
            return [item for item in named if item in kept]
        kept |= more


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


class _Forward:
    """Rewrites one ``forward``, each stretch of straight code by itself; loops and branches stay."""

    def __init__(
        self, facts: ModuleFacts, owner: ClassFacts, node: ast.FunctionDef, kernels: _Kernels
    ) -> None:
        self._facts, self._owner, self._node, self._kernels = facts, owner, node, kernels
        self._kinds: dict[str, Kind] = dict(owner.inputs)
        self._aliases = {
            name.id
            for n in ast.walk(node)
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name)
            for name in (*n.targets, n.value)
            if isinstance(name, ast.Name)
        }
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self._names = Names(names | set(owner.inputs) | {"self", *facts.aliases, *facts.numbers, *SUPPORT})

    def rewritten(self) -> ast.FunctionDef:
        body = self._body(_undocumented(copy.deepcopy(self._node).body), looping=False)
        return ast.FunctionDef("forward", self._node.args, body or [ast.Pass()], [], self._node.returns)

    def _body(self, statements: list[ast.stmt], looping: bool) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        stretch: list[ast.stmt] = []
        for statement in statements:
            if _straight(statement, self._aliases):
                stretch.append(statement)
                continue
            done += self._stretch(stretch, looping)
            stretch = []
            done.append(self._compound(statement, looping))
        return done + self._stretch(stretch, looping)

    def _compound(self, statement: ast.stmt, looping: bool) -> ast.stmt:
        """Return a compound statement with the straight code in it translated."""
        if isinstance(statement, ast.For):
            called = self._facts.dotted(statement.iter.func) if isinstance(statement.iter, ast.Call) else ""
            for name in ast.walk(statement.target):
                if isinstance(name, ast.Name):
                    self._kinds[name.id] = SCALAR if called == "range" else OTHER
        if isinstance(statement, ast.If | ast.For | ast.While):
            looping = looping or not isinstance(statement, ast.If)
            statement.body = self._body(statement.body, looping)
            statement.orelse = self._body(statement.orelse, looping)
            return statement
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._kinds[node.id] = OTHER
        return statement

    def _stretch(self, statements: list[ast.stmt], looping: bool) -> list[ast.stmt]:
        if not statements:
            return []
        known = {name: Host(name, (), kind.kind, kind.scalar_type) for name, kind in self._kinds.items()}
        tracer = Tracer(self._facts, self._owner, dict[str, Value](known))
        returned: list[Value] = []
        assigned: set[str] = set()
        for statement in statements:
            if isinstance(statement, ast.Return):
                returned.append(tracer.expression(statement.value or ast.Constant(None)))
                break
            assigned |= _assign(tracer, statement)
        live = sorted(assigned & self._read_elsewhere(statements, looping)) if not returned else []
        changed = {name: tracer.names[name] for name in live}
        for name in assigned:
            self._kinds[name] = _kind(tracer.names[name])
        writer = _Stretch(tracer, [*returned, *changed.values()], self._kernels, self._names)
        lines = writer.lines
        if returned:
            lines.append(f"return {writer.text(returned[0])}")
        elif changed:
            pairs = {name: writer.text(value) for name, value in changed.items()}
            pairs = {name: text for name, text in pairs.items() if name != text}
            if pairs:
                lines.append(f"{', '.join(pairs)} = {', '.join(pairs.values())}")
        return parse("\n".join(lines)).body

    def _read_elsewhere(self, statements: list[ast.stmt], looping: bool) -> set[str]:
        """Return names that code outside of ``statements`` may read."""
        everywhere, here = _reads([self._node]), _reads(statements)
        return set(everywhere if looping else everywhere - here)


def _reads(statements: Sequence[ast.stmt]) -> Counter[str]:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    changed = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Load) or node in changed)


def _straight(statement: ast.stmt, aliases: set[str]) -> bool:
    """Return True if the statement only assigns known expressions to names, or returns one.

    ``aliases`` are names of tensors with several names.
    """
    match statement:
        case ast.Assign(targets=targets):
            goals = [goal.elts if isinstance(goal, ast.Tuple) else [goal] for goal in targets]
            parts = [part for goal in goals for part in goal]
            return all(isinstance(part, ast.Name) for part in parts) and readable(statement)
        case ast.AugAssign(target=ast.Name(id=name)):
            return name not in aliases and readable(statement)
    return isinstance(statement, ast.Return) and readable(statement)


def _changes_in_place(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name.endswith("_") and not name.endswith("__"):
            return True
        case ast.keyword(arg="out") | ast.Subscript(ctx=ast.Store()):
            return True
    return False


def _assign(tracer: Tracer, statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        target = ast.Name(statement.target.id, ast.Load())
        value = tracer.expression(ast.BinOp(target, statement.op, statement.value))
        tracer.names[target.id] = value
        return {target.id}
    assert isinstance(statement, ast.Assign)
    value, names = tracer.expression(statement.value), dict[str, Value]()
    for goal in statement.targets:
        if isinstance(goal, ast.Name):
            names[goal.id] = value
        elif isinstance(goal, ast.Tuple):
            for position, part in enumerate(goal.elts):
                assert isinstance(part, ast.Name)
                names[part.id] = tracer.item(value, position)
    tracer.names.update(names)
    return set(names)


def _kind(value: Value) -> Kind:
    if is_tensor(value):
        return Kind("tensor", scalar_type_of(value))
    return SCALAR if is_scalar(value) else OTHER


class _Stretch:
    def __init__(self, tracer: Tracer, results: list[Value], kernels: _Kernels, names: Names) -> None:
        self.lines: list[str] = []
        self._done: dict[Value, str] = {}
        self._wishes = {value: name for name, value in tracer.names.items()}
        self._kernels, self._names = kernels, names
        flat = [part for result in results for part in _parts(result)]
        self._regions = partition(flat, kernels.structure[FUSION], kernels.structure[GEMM])
        needed = set(reachable(flat))
        for host in tracer.order:
            if host in needed and not host.inline:
                self.text(host)
        for value in flat:
            self.text(value)

    def text(self, value: Value) -> str:
        """Write the statements that ``value`` needs; return its expression."""
        if value in self._done:
            return self._done[value]
        match value:
            case Constant(number=number):
                special = isinstance(number, float) and (number != number or abs(number) == float("inf"))
                return f"float('{number}')" if special else repr(number)
            case Items(values=values, brackets=brackets):
                inner = ", ".join(self.text(part) for part in values)
                comma = "," if len(values) == 1 and brackets == "()" else ""
                return f"{brackets[0]}{inner}{comma}{brackets[1]}"
            case Host(inline=True):
                return self._host(value)
        expression = self._expression(value)
        name = self._names.new(self._wishes.get(value, "x"))
        self.lines.append(f"{name} = {expression}")
        self._done[value] = name
        return name

    def _expression(self, value: Value) -> str:
        region = self._regions.get(value)
        if region is not None:
            kernel, values = self._kernels.add(region)
            axes = [] if region.axes is None else [region.axes.text]
            return f"{kernel}({', '.join([*map(self.text, values), *axes])})"
        if isinstance(value, Drop):
            return f"{self.text(value.operand)}.squeeze({value.axes.text})"
        host = value.host if isinstance(value, MatMul) else value
        assert isinstance(host, Host), f"nothing computes {value}"
        return self._host(host)

    def _host(self, host: Host) -> str:
        return host.text.format(*map(self.text, host.operands))


def _parts(value: Value) -> list[Value]:
    return [part for inner in value.values for part in _parts(inner)] if isinstance(value, Items) else [value]
