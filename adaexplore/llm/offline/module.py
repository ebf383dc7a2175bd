"""From a reference module's source to a module whose ``ModelNew`` calls Triton kernels."""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass, field

from adaexplore.core.syntax import parse
from adaexplore.llm.offline.body import Names
from adaexplore.llm.offline.choices import FUSION, GEMM, NUMBERS, ROWS, Choices, header, tunables
from adaexplore.llm.offline.facts import ClassFacts, Kind, ModuleFacts, function, read_module
from adaexplore.llm.offline.graph import (
    Constant,
    Drop,
    Extremum,
    Host,
    Items,
    MatMul,
    Pointwise,
    Reduction,
    Total,
    Value,
    is_scalar,
    is_tensor,
    operands_of,
    scalar_type_of,
)
from adaexplore.llm.offline.kernels import write_kernel
from adaexplore.llm.offline.launch import Kernel
from adaexplore.llm.offline.regions import Partition, Region, cone, partition, reachable
from adaexplore.llm.offline.support import SUPPORT
from adaexplore.llm.offline.trace import Tracer, unrolls

_IMPORTS = (
    "import functools",
    "import math",
    "import torch",
    "import torch.nn as nn",
    "import triton",
    "import triton.language as tl",
)
_DROPPED = ("get_inputs", "get_init_inputs")


@dataclass
class _Kernels:
    """Kernels of a module so far, by what they do."""

    names: Names
    rows: str
    found: dict[str, Kernel] = field(default_factory=dict)

    def add(self, region: Region) -> Kernel:
        """The kernel of ``region``; equal ones are written once."""
        content = write_kernel(region, "@", self.rows).source
        if content not in self.found:
            self.found[content] = write_kernel(region, self.names.new(_title(region)), self.rows)
        known = self.found[content]
        return Kernel(known.name, known.source, write_kernel(region, "@", self.rows).arguments, (), ())


def _title(region: Region) -> str:
    operations: list[str] = []
    for root in region.roots:
        for value in cone(root, set(region.leaves)):
            if isinstance(value, Pointwise | Reduction | Total) and value.name not in operations:
                operations.append(value.name)
    kind = "matmul" if region.product is not None else "rows" if region.axes else "fused"
    return "_".join([kind, *operations[:4]])


def translate(source: str, choices: Choices) -> str:
    """The optimised module.

    Args:
        source: a module with ``class Model``.
        choices: the structure and numbers of its kernels.

    Raises:
        SyntaxError: ``source`` is not Python.
    """
    facts = read_module(source)
    taken = {node.id for node in ast.walk(facts.tree) if isinstance(node, ast.Name)}
    taken |= {item.name for item in facts.tree.body if isinstance(item, ast.FunctionDef | ast.ClassDef)}
    kernels = _Kernels(Names({*taken, *SUPPORT}), choices.structure[ROWS])
    forwards = {}
    for owner in facts.classes:
        forward = function(owner.node, "forward")
        if forward is not None:
            forwards[owner.node.name] = _Forward(facts, owner, forward, choices, kernels).rewritten()
    tree = parse(source)
    for item in tree.body:
        if isinstance(item, ast.ClassDef) and item.name in forwards:
            item.body = [
                forwards[item.name] if isinstance(part, ast.FunctionDef) and part.name == "forward" else part
                for part in item.body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    _rename(tree, "Model", "ModelNew")
    ast.fix_missing_locations(tree)
    return _assemble(tree, list(kernels.found.values()), choices)


def renamed(source: str) -> str:
    """Return the module itself, as PyTorch runs it, under the name ``ModelNew``.

    Raises:
        SyntaxError: ``source`` is not Python.
    """
    tree = parse(source)
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
    helpers = [name for name in SUPPORT if any(name in kernel.helpers for kernel in kernels)]
    pieces = [SUPPORT[name] for name in helpers] + [kernel.source for kernel in kernels]
    code = "\n\n\n".join(piece.rstrip() for piece in pieces)
    kept_text = [ast.unparse(item) for item in kept]
    body = "\n".join([code, *kept_text])
    imports = [line for line in _IMPORTS if re.search(rf"\b{line.split()[-1]}\.|@{line.split()[-1]}\.", body)]
    imports += [
        ast.unparse(item)
        for item in tree.body
        if isinstance(item, ast.Import | ast.ImportFrom) and ast.unparse(item) not in imports
    ]
    constants = [f"{name} = {choices.numbers[name]}" for name in numbers]
    constants += [tunables(numbers)] if numbers and choices.swept else []
    parts = [header(choices.structure), "\n".join(dict.fromkeys(imports))]
    parts += ["\n".join(constants)] if constants else []
    text = ""
    for item, line in zip(kept, kept_text, strict=True):
        short = isinstance(item, ast.Assign | ast.AnnAssign)
        text += line + ("\n" if short else "\n\n\n")
    return "\n\n".join(parts) + "\n\n\n" + (f"{code}\n\n\n" if code else "") + text.rstrip() + "\n"


def _needed(tree: ast.Module) -> list[ast.stmt]:
    """Module-level statements that the classes use."""
    candidates = [
        item
        for item in tree.body
        if isinstance(item, ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.ClassDef)
        and not (isinstance(item, ast.FunctionDef) and item.name in _DROPPED)
    ]
    kept: list[ast.stmt] = [item for item in candidates if isinstance(item, ast.ClassDef)]
    while True:
        used = {n.id for item in kept for n in ast.walk(item) if isinstance(n, ast.Name)}
        more = [
            item
            for item in candidates
            if item not in kept
            and (
                (isinstance(item, ast.FunctionDef) and item.name in used)
                or any(
                    isinstance(n, ast.Name) and n.id in used
                    for target in _targets(item)
                    for n in ast.walk(target)
                )
            )
        ]
        if not more:
            return [item for item in candidates if item in kept]
        kept += more


def _targets(item: ast.stmt) -> list[ast.expr]:
    if isinstance(item, ast.Assign):
        return item.targets
    return [item.target] if isinstance(item, ast.AnnAssign) else []


class _Forward:
    """Rewrites one ``forward`` stretch by stretch of straight code; loops and branches stay."""

    def __init__(
        self,
        facts: ModuleFacts,
        owner: ClassFacts,
        node: ast.FunctionDef,
        choices: Choices,
        kernels: _Kernels,
    ) -> None:
        self._facts, self._owner, self._node = facts, owner, node
        self._choices, self._kernels = choices, kernels
        self._kinds: dict[str, Kind] = dict(owner.inputs)
        self._changes = any(_changes_in_place(n) or _sets_item(n) for n in ast.walk(node))
        self._aliases = {
            name.id
            for n in ast.walk(node)
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name)
            for name in (*n.targets, n.value)
            if isinstance(name, ast.Name)
        }
        scopes = [n for n in ast.walk(node) if isinstance(n, ast.comprehension)]
        inner = {id(n) for scope in scopes for n in ast.walk(scope.target)}
        self._assigned = set(owner.inputs) | {
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in inner
        }
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self._names = Names(names | set(owner.inputs) | {"self", *facts.aliases, *facts.numbers, *SUPPORT})

    def rewritten(self) -> ast.FunctionDef:
        """The new ``forward``."""
        body = [
            s
            for s in copy.deepcopy(self._node).body
            if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        ]
        return ast.FunctionDef(
            "forward",
            self._node.args,
            self._body(body, looping=False) or [ast.Pass()],
            [],
            self._node.returns,
        )

    def _body(self, statements: list[ast.stmt], looping: bool) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        stretch: list[ast.stmt] = []
        for statement in statements:
            if _straight(statement, self._aliases) and not self._hides(statement):
                stretch.append(statement)
                continue
            done += self._stretch(stretch, looping)
            stretch = []
            done.append(self._compound(statement, looping))
        return done + self._stretch(stretch, looping)

    def _hides(self, statement: ast.stmt) -> bool:
        """Return whether a comprehension or lambda in it gives a name of ``forward`` another meaning."""
        for node in ast.walk(statement):
            targets: list[ast.expr] = []
            if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
                targets = [] if unrolls(node) else [each.target for each in node.generators]
            bound = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            if isinstance(node, ast.Lambda):
                bound = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            if not bound.isdisjoint(self._assigned):
                return True
        return False

    def _compound(self, statement: ast.stmt, looping: bool) -> ast.stmt:
        """A statement left as it is, the straight code within it translated."""
        loop = isinstance(statement, ast.For | ast.While)
        if isinstance(statement, ast.For):
            called = self._facts.dotted(statement.iter.func) if isinstance(statement.iter, ast.Call) else ""
            for name in ast.walk(statement.target):
                if isinstance(name, ast.Name):
                    self._kinds[name.id] = Kind("scalar" if called == "range" else "other")
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._kinds[node.id] = Kind("other")
        if isinstance(statement, ast.If | ast.For | ast.While | ast.With):
            statement.body = self._body(statement.body, looping or loop)
            if isinstance(statement, ast.If | ast.For | ast.While):
                statement.orelse = self._body(statement.orelse, looping or loop)
        return statement

    def _stretch(self, statements: list[ast.stmt], looping: bool) -> list[ast.stmt]:
        if not statements:
            return []
        known: dict[str, Value] = {
            name: Host(name, (), kind.kind, kind.scalar_type) for name, kind in self._kinds.items()
        }
        tracer = Tracer(self._facts, self._owner, dict(known), self._changes)
        returned: list[Value] = []
        assigned: set[str] = set()
        for statement in statements:
            if isinstance(statement, ast.Return):
                if statement.value is not None:
                    returned.append(tracer.expression(statement.value))
                else:
                    returned.append(Host("None"))
                break
            assigned |= _assign(tracer, statement)
        live = sorted(assigned & self._read_elsewhere(statements, looping)) if not returned else []
        changed = {name: tracer.names[name] for name in live}
        for name in assigned:
            self._kinds[name] = _kind(tracer.names[name])
        writer = _Stretch(tracer, [*returned, *changed.values()], self._choices, self._kernels, self._names)
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
        """Names that code outside ``statements`` may read."""

        def count(nodes: list[ast.stmt]) -> dict[str, int]:
            found: dict[str, int] = {}
            for statement in nodes:
                for node in ast.walk(statement):
                    name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
                    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                        name = node.target.id
                    if name is not None:
                        found[name] = found.get(name, 0) + 1
            return found

        everywhere, here = count([self._node]), count(statements)
        return {name for name, total in everywhere.items() if looping or total > here.get(name, 0)}


def _sets_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _straight(statement: ast.stmt, aliases: set[str]) -> bool:
    """Whether the statement only gives names to expressions, without changing a tensor in place.

    ``aliases`` are names of tensors that have another name too.
    """
    match statement:
        case ast.Assign(targets=targets):
            plain = all(
                isinstance(target, ast.Name)
                or (
                    isinstance(target, ast.Tuple | ast.List)
                    and all(isinstance(e, ast.Name) for e in target.elts)
                )
                for target in targets
            )
        case ast.AugAssign(target=target):
            plain = isinstance(target, ast.Name) and target.id not in aliases
        case ast.AnnAssign(target=target, value=value):
            plain = isinstance(target, ast.Name) and value is not None
        case ast.Return() | ast.Pass():
            plain = True
        case _:
            plain = False
    return plain and not any(_changes_in_place(node) for node in ast.walk(statement))


def _changes_in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.JoinedStr):
        return True  # an f-string changes nothing, but its names could not be replaced
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return name.endswith("_") and not name.endswith("__")
    return isinstance(node, ast.Call) and any(keyword.arg == "out" for keyword in node.keywords)


def _assign(tracer: Tracer, statement: ast.stmt) -> set[str]:
    """Perform a straight assignment; returns the names it set."""
    names: set[str] = set()
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        target = ast.Name(statement.target.id, ast.Load())
        value = tracer.expression(ast.BinOp(target, statement.op, statement.value))
        tracer.names[target.id] = value
        return {target.id}
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return names
    value = tracer.expression(statement.value)
    for goal in _targets(statement):
        if isinstance(goal, ast.Name):
            tracer.names[goal.id] = value
            names.add(goal.id)
        elif isinstance(goal, ast.Tuple | ast.List):
            parts = [tracer.item(value, position) for position in range(len(goal.elts))]
            for part, inner in zip(parts, goal.elts, strict=True):
                assert isinstance(inner, ast.Name)
                tracer.names[inner.id] = part
                names.add(inner.id)
    return names


def _kind(value: Value) -> Kind:
    if is_tensor(value):
        return Kind("tensor", scalar_type_of(value))
    return Kind("scalar") if is_scalar(value) else Kind("other")


class _Stretch:
    """Writes the statements of one stretch of straight code."""

    def __init__(
        self, tracer: Tracer, results: list[Value], choices: Choices, kernels: _Kernels, names: Names
    ) -> None:
        self.lines: list[str] = []
        self._done: dict[Value, str] = {}
        self._wishes = {value: name for name, value in tracer.names.items()}
        self._kernels, self._names = kernels, names
        flat = [part for result in results for part in _parts(result)]
        self._partition: Partition = partition(flat, choices.structure[FUSION], choices.structure[GEMM])
        needed = set(reachable(flat))
        for host in tracer.order:
            if host in needed and not host.inline:
                self._emit(host)
        for value in flat:
            self._emit(value)

    def text(self, value: Value) -> str:
        """The expression that stands for ``value`` in the generated code."""
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
            case Extremum(host=host):
                return self.text(host)
            case Host(inline=True, text=text, operands=operands):
                return text.format(*(self.text(operand) for operand in operands))
        self._emit(value)
        return self._done[value]

    def _emit(self, value: Value) -> None:
        """Make sure that ``value`` has a name or can be written in place."""
        if value in self._done or isinstance(value, Constant):
            return
        region = self._partition.regions.get(value)
        if region is not None:
            self._call(region)
        elif isinstance(value, MatMul):
            self._name(value, self._host(value.host))
        elif isinstance(value, Drop):
            self._name(value, f"{self.text(value.operand)}.squeeze({value.axes.text})")
        elif isinstance(value, Host) and not value.inline:
            self._name(value, self._host(value))
        else:
            for operand in operands_of(value):
                self._emit(operand)

    def _host(self, host: Host) -> str:
        return host.text.format(*(self.text(operand) for operand in host.operands))

    def _name(self, value: Value, expression: str) -> None:
        name = self._names.new(self._wishes.get(value, "x"))
        self.lines.append(f"{name} = {expression}")
        self._done[value] = name

    def _call(self, region: Region) -> None:
        kernel = self._kernels.add(region)
        arguments = [self.text(value) for value in kernel.arguments]
        if region.axes is not None:
            arguments.append(region.axes.text)
        targets = [self._names.new(self._wishes.get(root, "x")) for root in region.roots]
        self.lines.append(f"{', '.join(targets)} = {kernel.name}({', '.join(arguments)})")
        self._done.update(zip(region.roots, targets, strict=True))


def _parts(value: Value) -> list[Value]:
    return [part for inner in value.values for part in _parts(inner)] if isinstance(value, Items) else [value]
