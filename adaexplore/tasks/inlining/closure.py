"""The definitions that a problem needs from packages, and the module that holds them all."""

import ast
import builtins
import copy
import inspect
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType

from adaexplore.core.text.syntax import bound_names, statements
from adaexplore.tasks.inlining.modules import (
    Definition,
    Modules,
    PlainImport,
    Refused,
    SourceModule,
    Target,
    top_level,
)
from adaexplore.tasks.inlining.rewriting import Rewriter

_LITERALS = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Inlined:
    """A module without imports of packages; ``parts`` are the bytes of each inlined definition."""

    text: str
    parts: Mapping[str, int]

    @property
    def size(self) -> int:
        return sum(self.parts.values())

    def largest(self) -> list[tuple[str, int]]:
        return sorted(self.parts.items(), key=lambda part: -part[1])

    def packages(self) -> list[str]:
        """Return the inlined packages, largest first."""
        sizes: dict[str, int] = defaultdict(int)
        for part, size in self.parts.items():
            sizes[top_level(part)] += size
        return sorted(sizes, key=lambda package: -sizes[package])


def inline(modules: Modules, wanted: Collection[str]) -> Inlined:
    """Return the root module with the definitions that it uses; all names ``wanted`` are kept in it.

    Raises:
        Refused: a definition has no source, or is used in a way that no inlined name can replace.
    """
    closure = _Closure(modules, wanted)
    return closure.written()


@dataclass(frozen=True)
class _Unit:
    """A statement to write: that at ``position`` of its module, or one inside it."""

    module: str
    position: int
    node: ast.stmt


class _Closure:
    def __init__(self, modules: Modules, wanted: Collection[str]) -> None:
        self._modules = modules
        root = modules.source(modules.root)
        assert root is not None
        self._root = root
        self._units: dict[ast.stmt, _Unit] = {}
        self._imports: dict[PlainImport, None] = {}
        self._needed: dict[Definition, None] = {}
        self._uses: dict[ast.stmt, dict[Definition | PlainImport, None]] = {}
        self._aliases: dict[str, Definition] = {}
        for name in root.binding:
            target = self._optional(root.name, name)
            if isinstance(target, PlainImport):
                self._imports[target] = None
        for position, top in enumerate(root.body):
            if not isinstance(top, ast.Import | ast.ImportFrom) and not _is_script(top):
                self._add(_Unit(root.name, position, top))
        for name in wanted:
            target = modules.resolve(root.name, name)
            if isinstance(target, Definition) and target.module != root.name:
                self._aliases[name] = target
                self._need(target)
        while self._add_changes():
            pass

    def _optional(self, module: str, name: str) -> Target | None:
        """Return what a name means; None if its source is not known."""
        try:
            return self._modules.resolve(module, name)
        except Refused:
            return None

    # which statements

    def _add(self, unit: _Unit) -> None:
        waiting = [unit]
        while waiting:
            unit = waiting.pop()
            if unit.node in self._units:
                continue
            self._units[unit.node] = unit
            for target in self._used(unit.module, unit.node):
                if isinstance(target, PlainImport):
                    self._imports[target] = None
                elif target not in self._needed:
                    self._needed[target] = None
                    waiting += self._definitions(target)

    def _need(self, target: Definition) -> None:
        if target not in self._needed:
            self._needed[target] = None
            for unit in self._definitions(target):
                self._add(unit)

    def _used(self, module: str, node: ast.stmt) -> dict[Definition | PlainImport, None]:
        """Return what a statement uses, besides what it defines itself."""
        if node not in self._uses:
            used: dict[Definition | PlainImport, None] = {}

            def note(target: Definition | PlainImport) -> str:
                used[target] = None
                return target.name

            source = self._modules.source(module)
            assert source is not None
            Rewriter(self._modules, source, note).rewrite(copy.deepcopy(node))
            self._uses[node] = used
        return self._uses[node]

    def _definitions(self, target: Definition) -> list[_Unit]:
        """Return the statements that define a name; of alternatives the one that ran, if that is known."""
        source = self._modules.source(target.module)
        assert source is not None
        if target.module == self._root.name:
            return []  # all of the root is written
        value = source.namespace[target.name]
        units = []
        for position, node in source.binding.get(target.name, []):
            if isinstance(node, ast.Import | ast.ImportFrom):
                continue
            top = source.body[position]
            if node is top:
                units.append(_Unit(target.module, position, node))
            elif isinstance(value, _LITERALS):
                line = f"{target.name} = {value!r}"
                units = [_Unit(target.module, position, ast.parse(line).body[0])]
            elif _is_definition_of(node, value):
                return [_Unit(target.module, position, node)]
            else:
                units.append(_Unit(target.module, position, top))
        return units

    def _add_changes(self) -> bool:
        """Add the statements that change a needed value when a module is imported, such as registrations."""
        added = False
        for name in dict.fromkeys(target.module for target in self._needed):
            source = self._modules.source(name)
            for position, top in enumerate(source.body if source is not None else ()):
                if source is None or top in self._units or name == self._root.name or _is_script(top):
                    continue
                if any(each in self._needed for each in self._changed(source, top)):
                    self._add(_Unit(name, position, top))
                    added = True
        return added

    def _changed(self, source: SourceModule, top: ast.stmt) -> Iterator[Target | None]:
        """Yield what a top-level statement may change without binding it."""
        if isinstance(top, ast.FunctionDef | ast.ClassDef):
            for each in top.decorator_list:
                yield from self._registered(source, each)
        elif not isinstance(top, ast.Import | ast.ImportFrom):
            for node in statements([top]):
                roots: list[ast.expr] = []
                match node:
                    case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                        roots = targets
                    case ast.AugAssign(target=target):
                        roots = [target]
                    case ast.Expr(value=ast.Call(func=function, args=arguments)):
                        yield from self._registered(source, function)
                        roots = [function, *arguments]
                for each in roots:
                    if isinstance(node, ast.Expr) or not isinstance(each, ast.Name):
                        yield self._root_of(source, each)

    def _registered(self, source: SourceModule, function: ast.expr) -> Iterator[Target | None]:
        """Yield the registries that a function uses which is called at import, such as a decorator."""
        while isinstance(function, ast.Call):
            function = function.func
        target = self._root_of(source, function)
        held = self._modules.source(target.module) if isinstance(target, Definition) else None
        if held is None or not isinstance(target, Definition):
            return
        for _, node in held.binding.get(target.name, []):
            if not isinstance(node, ast.FunctionDef):
                yield None if isinstance(node, ast.ClassDef) else target
                continue
            for inner in ast.walk(node):
                value = held.namespace.get(inner.id) if isinstance(inner, ast.Name) else None
                if isinstance(inner, ast.Name) and isinstance(value, dict | list | set):
                    yield self._root_of(held, inner)

    def _root_of(self, source: SourceModule, node: ast.expr) -> Target | None:
        """Return the definition at the start of ``NAME.attribute[index]``."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        return self._optional(source.name, node.id) if isinstance(node, ast.Name) else None

    # the text

    def written(self) -> Inlined:
        """Write the module: future import, imports, definitions in the order in which they ran."""
        names = self._names()
        parts: dict[str, int] = {}
        blocks: list[str] = []
        by_place: dict[tuple[str, int], list[_Unit]] = defaultdict(list)
        for unit in self._units.values():
            by_place[unit.module, unit.position].append(unit)
        future = self._root.postpones_annotations
        for place in self._modules.execution_order():
            for unit in sorted(by_place.pop(place, ()), key=lambda unit: unit.node.lineno):
                source = self._modules.source(unit.module)
                assert source is not None
                rewriter = Rewriter(self._modules, source, names.__getitem__)
                node = rewriter.rewrite(copy.deepcopy(unit.node))
                future |= rewriter.postponed and source.postpones_annotations
                if node is None:
                    continue
                same = ast.dump(node) == ast.dump(unit.node)
                text = source.text(unit.node) if same else ast.unparse(ast.fix_missing_locations(node))
                blocks.append("\n\n" * isinstance(node, ast.FunctionDef | ast.ClassDef) + text)
                if unit.module != self._root.name:
                    part = f"{unit.module}.{_title(unit.node)}"
                    parts[part] = parts.get(part, 0) + len(text.encode())
        blocks += [
            f"{name} = {names[target]}" for name, target in self._aliases.items() if names[target] != name
        ]
        lines = {
            (names[each], each.module if each.is_dotted else ""): each.statement(names[each])
            for each in reversed(self._imports)
            if each.module != "__future__"
        }
        header = ["from __future__ import annotations"] * future
        return Inlined("\n".join([*header, *sorted(lines.values()), *blocks]) + "\n", parts)

    def _names(self) -> dict[Target, str]:
        """Return a name for each target; those of the problem itself stay, others change if they collide."""
        root = self._root.name
        inner, outer = self._identifiers(of_root=False), self._identifiers(of_root=True)
        names: dict[Target, str] = {}
        owners: dict[str, object] = {}
        for name in self._root.binding:
            if self._modules.resolve(root, name) == Definition(root, name):
                owners[name] = names[Definition(root, name)] = name
        for name, target in self._aliases.items():
            if target not in names and name not in owners and (name == target.name or name not in inner):
                owners[name], names[target] = target, name
        wanted: list[PlainImport | Definition] = [*self._imports, *self._needed]
        for each in wanted:
            if each in names:
                continue
            owner = each.value() if isinstance(each, PlainImport) else each
            name, tail, number = each.name, each.module.rpartition(".")[2], 1
            taken = isinstance(each, Definition) and hasattr(builtins, name)
            while taken or (name in owners and owners[name] is not owner and owners[name] != owner):
                name = f"{tail}_{each.name}" + (f"_{number}" if number > 1 else "")
                number, taken = number + 1, name in inner | outer
            owners.setdefault(name, owner)
            names[each] = name
        return names

    def _identifiers(self, *, of_root: bool) -> set[str]:
        """Return all names that statements of the problem, or of packages, use or bind."""
        nodes = [
            node
            for unit in self._units.values()
            if (unit.module == self._root.name) is of_root
            for node in ast.walk(unit.node)
        ]
        given = {getattr(node, key, None) for node in nodes for key in ("id", "arg", "name", "asname")}
        return {name for name in given if isinstance(name, str)}


def _is_script(top: ast.stmt) -> bool:
    """Return True for ``if __name__ == "__main__":``."""
    return (
        isinstance(top, ast.If)
        and "__name__" in ast.unparse(top.test)
        and "__main__" in ast.unparse(top.test)
    )


def _is_definition_of(node: ast.stmt, value: object) -> bool:
    """Return True if ``node`` defined the function or class ``value``, by the lines of its code."""
    held = (
        [inspect.unwrap(value), *vars(value).values()]
        if isinstance(value, type)
        else [inspect.unwrap(value) if callable(value) else value]
    )
    lines = [each.__code__.co_firstlineno for each in held if isinstance(each, FunctionType)]
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    return any(node.lineno - len(node.decorator_list) <= line <= (node.end_lineno or 0) for line in lines)


def _title(node: ast.stmt) -> str:
    """Return the name of a part in messages."""
    names = [name for each in statements([node]) for name in bound_names(each)]
    return names[0] if names else f"line {node.lineno}"
