"""Find the module-level names that a statement uses, and write the statement with other names."""

import ast
import builtins
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from adaexplore.tasks.inlining.modules import (
    Definition,
    Modules,
    PackageModule,
    PlainImport,
    Refused,
    SourceModule,
    Target,
    top_level,
)

Name = Callable[[Definition | PlainImport], str]
"""Returns the name of a target in the inlined module."""

_Node = TypeVar("_Node", bound=ast.AST)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Scope(dict[str, Target | None]):
    """The names of a function, class or comprehension; None for a local value."""

    def __init__(self, *, of_class: bool = False) -> None:
        super().__init__()
        self.of_class = of_class


class Rewriter(ast.NodeTransformer):
    """Replace what a statement of ``source`` uses; imports of inlined packages and docstrings go.

    A function that the problem did not call is left out if it cannot be inlined, or if modules are lean.
    ``postponed`` says whether an annotation of a field needs that annotations are not evaluated.
    Annotations of arguments and locals that name inlined definitions go too: they only describe.
    """

    def __init__(self, modules: Modules, source: SourceModule, name: Name) -> None:
        self._modules = modules
        self._source = source
        self._name = name
        self._scopes: list[_Scope] = []
        self._is_trial = False
        self.postponed = False

    def rewrite(self, node: ast.stmt) -> ast.stmt | None:
        """Return the rewritten statement; the given one is changed. None if nothing is left."""
        found = self.visit(node)
        return cast(ast.stmt | None, found)

    # names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        target = self._target(node.id)
        if isinstance(target, PackageModule):
            raise Refused(
                f"line {node.lineno} of {self._source.name} uses the module {target.module} as a value",
                top_level(target.module),
            )
        return node if target is None else ast.copy_location(ast.Name(self._name(target), node.ctx), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        chain, inner = [node], node.value
        while isinstance(inner, ast.Attribute):
            chain.append(inner)
            inner = inner.value
        target = self._target(inner.id) if isinstance(inner, ast.Name) else None
        if not isinstance(target, PackageModule):
            self.generic_visit(node)
            return node
        for link in reversed(chain):
            found = self._modules.attribute(target.module, link.attr)
            if isinstance(found, PackageModule):
                target = found
                continue
            if found is None:
                break
            short = ast.copy_location(ast.Name(self._name(found), link.ctx), link)
            if link is node:
                return short
            chain[chain.index(link) - 1].value = short
            return node
        what = ast.unparse(node)
        raise Refused(f"line {node.lineno} of {self._source.name}: {what} cannot be inlined", target.module)

    def visit_Global(self, node: ast.Global) -> ast.Global:
        targets = [(name, self._modules.resolve(self._source.name, name)) for name in node.names]
        node.names = [self._name(held) if isinstance(held, Definition) else name for name, held in targets]
        return node

    def _target(self, name: str) -> Target | None:
        for number, scope in enumerate(reversed(self._scopes)):
            if name in scope and not (scope.of_class and number):
                return scope[name]
        return self._modules.resolve(self._source.name, name)

    # scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: _Function) -> ast.stmt:
        if not self._is_trial and self._is_left_out(node):
            node.body = [*ast.parse("raise NotImplementedError").body]
            node.decorator_list = []
            node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
            node.args.kw_defaults = [each and ast.Constant(None) for each in node.args.kw_defaults]
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self._own_name(node)
        node.returns = self._described(node.returns)
        scope = self._arguments(node.args)
        self._bind(scope, node.body)
        node.body = self._body(node.body, scope)
        return node

    def _is_left_out(self, node: _Function) -> bool:
        if not self._inlined or self._modules.ran(self._source, node):
            return False
        return self._modules.lean or self._is_refused(node)

    def _is_refused(self, node: _Function) -> bool:
        trial = Rewriter(self._modules, self._source, lambda target: target.name)
        trial._scopes = [*self._scopes]
        trial._is_trial = True
        try:
            trial.visit(copy.deepcopy(node))
        except Refused:
            return True
        return False

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        scope = self._arguments(node.args)
        self._bind(scope, [node.body])
        self._scopes.append(scope)
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        for part in (node.decorator_list, node.bases, node.keywords):
            part[:] = [self.visit(each) for each in part]
        self._own_name(node)
        scope = _Scope(of_class=True)
        node.body = self._body(node.body, scope)
        return node

    def _own_name(self, node: _Function | ast.ClassDef) -> None:
        if not self._scopes:
            target = self._modules.resolve(self._source.name, node.name)
            if isinstance(target, Definition):
                node.name = self._name(target)

    def _arguments(self, arguments: ast.arguments) -> _Scope:
        arguments.defaults = [self.visit(each) for each in arguments.defaults]
        arguments.kw_defaults = [each and self.visit(each) for each in arguments.kw_defaults]
        scope = _Scope()
        for each in ast.walk(arguments):
            if isinstance(each, ast.arg):
                each.annotation = self._described(each.annotation)
                scope[each.arg] = None
        return scope

    def _body(self, body: list[ast.stmt], scope: _Scope) -> list[ast.stmt]:
        self._scopes.append(scope)
        kept: list[ast.stmt] = []
        for node in body:
            found = None if _is_docstring(node) and self._inlined else self.visit(node)
            kept += [found] if isinstance(found, ast.stmt) else []
            if scope.of_class:
                self._bind(scope, [node])
        self._scopes.pop()
        return kept or [ast.Pass()]

    @property
    def _inlined(self) -> bool:
        return self._source.name != self._modules.root

    def _bind(self, scope: _Scope, body: Sequence[ast.AST]) -> None:
        """Add the names that statements bind in their own scope."""
        declared = {
            name
            for node in _own_nodes(body)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        for node in _own_nodes(body):
            for name in _bound(node):
                if name not in declared:
                    scope.setdefault(name, None)
        for node in _own_nodes(body):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for way in self._source.imports(node):
                    target = self._package_target(way)
                    if target is not None:
                        scope[way[2] or way[1] or top_level(way[0])] = target

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._comprehension(node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]  # noqa: N815

    def _comprehension(self, node: ast.expr) -> ast.expr:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        generators[0].iter = self.visit(generators[0].iter)
        first, generators[0].iter = generators[0].iter, ast.Constant(None)
        scope = _Scope()
        for each in generators:
            scope |= dict.fromkeys(name for part in ast.walk(each.target) for name in _bound(part))
        self._scopes.append(scope)
        self.generic_visit(node)
        self._scopes.pop()
        generators[0].iter = first
        return node

    # annotations

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not self._scopes or self._scopes[-1].of_class:
            node.target = self.visit(node.target)
            node.value = node.value and self.visit(node.value)
            kept = self._described(node.annotation, follow=True)
            node.annotation = kept or node.annotation
            return node
        kept = self._described(node.annotation)
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        if kept is None and node.value is not None:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        node.annotation = kept or ast.Name("object", ast.Load())
        return node

    def _described(self, annotation: ast.expr | None, *, follow: bool = False) -> ast.expr | None:
        """Rewrite an annotation; None if it names what is not defined, or is inlined without ``follow``."""
        if annotation is None or not self._evaluates(annotation):
            self.postponed |= follow
            return None
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                try:
                    target = self._target(node.id)
                except Refused:
                    return None
                known = target is not None or hasattr(builtins, node.id) or self._is_local(node.id)
                own = isinstance(target, Definition) and target.module == self._modules.root
                plain = target is None or isinstance(target, PlainImport) or own
                self.postponed |= follow and not plain
                if not known or not (plain or follow):
                    return None
        return cast(ast.expr, self.visit(annotation))

    def _evaluates(self, annotation: ast.expr) -> bool:
        """Return True if an annotation can be evaluated; only a future import permits others."""
        if not self._source.postpones_annotations:
            return True
        try:
            eval(ast.unparse(annotation), dict(self._source.namespace))
        except Exception:  # noqa: BLE001 - the user's code
            return False
        return True

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    # imports

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        return self._without_packages(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        return self._without_packages(node)

    def _without_packages(self, node: ast.Import | ast.ImportFrom) -> ast.stmt | None:
        """Drop what is resolved: at module level everything, in functions what is inlined."""
        ways = [*self._source.imports(node)]
        if node.names[0].name == "*":
            return None
        found = [self._package_target(way) if self._scopes else self._resolved(way) for way in ways]
        if len(found) != len(node.names):
            return node
        node.names = [each for each, target in zip(node.names, found, strict=True) if target is None]
        return node if node.names else None

    def _resolved(self, way: tuple[str, str | None, str | None]) -> Target | None:
        try:
            return self._modules.imported(way)
        except Refused:
            return None

    def _package_target(self, way: tuple[str, str | None, str | None]) -> Target | None:
        """Return what an import of an inlined package means; None for other imports and failing ones."""
        return None if self._modules.is_plain(way[0]) else self._resolved(way)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit all parts; a block that becomes empty gets ``pass``."""
        super().generic_visit(node)
        if isinstance(
            node,
            ast.If
            | ast.For
            | ast.AsyncFor
            | ast.While
            | ast.With
            | ast.AsyncWith
            | ast.Try
            | ast.ExceptHandler,
        ):
            node.body = node.body or [ast.Pass()]
        return node


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of one scope; of nested ones only the node itself."""
    waiting = [*body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, _COMPREHENSIONS):
            walrus = (each for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
            waiting += [each.target for each in walrus]
        elif not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that one node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from (each.asname or top_level(each.name) for each in names)
        case ast.ImportFrom(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
