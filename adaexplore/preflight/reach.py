"""Walk the code that surely runs when ModelNew is constructed and called, including kernels."""

import ast
from collections.abc import Callable, Iterable, Sequence

from adaexplore.preflight.bindings import methods
from adaexplore.preflight.candidate import Candidate
from adaexplore.preflight.findings import Finding
from adaexplore.preflight.launch_lints import Launch, launch_of
from adaexplore.preflight.scopes import MODEL, Scopes, Where

_PLAIN = 3
_NO_WORK = ("dim", "empty", "full", "len", "new_", "numel", "ones", "size", "zeros")
"""Prefixes of functions that only make a new tensor, or ask for a shape."""
_UNROLLED = ("triton.language.static_range", "triton.language.core.static_range")

Check = Callable[[ast.AST, Where], Iterable[Finding]]


class Walk:
    """Collect the findings of ``check`` in code that surely runs.

    If a condition is unknown, findings count if both branches have some: one of them runs. A branch
    that leaves the function early without computing (an empty input, a missing GPU) is assumed not to
    run. Errors that an exception handler would catch do not count.
    """

    def __init__(self, candidate: Candidate, scopes: Scopes, check: Check) -> None:
        self._candidate = candidate
        self._scopes = scopes
        self._check = check
        self._known: dict[ast.AST, list[Finding]] = {}
        self._trains = not any(
            isinstance(node, ast.Attribute) and node.attr in ("eval", "train")
            for node in ast.walk(candidate.tree)
        )

    def findings(self) -> list[Finding]:
        """Return the findings in the module's own statements, and in ModelNew's constructor and forward."""
        found = self._body(self._candidate.tree.body, Where(self._candidate.tree))
        model = self._candidate.classes.get(MODEL)
        if model is not None:
            found += self._of_class(model)
        elif MODEL in self._candidate.functions:
            found += self._function(self._candidate.functions[MODEL], None)
        return found

    def _of_class(self, node: ast.ClassDef) -> list[Finding]:
        return self._method(node, "__init__") + self._method(node, "forward")

    def _method(self, owner: ast.ClassDef, name: str) -> list[Finding]:
        method = methods(owner).get(name)
        if method is not None:
            return self._function(method, owner)
        for base in owner.bases:
            if isinstance(base, ast.Name) and base.id in self._candidate.classes:
                inherited = self._candidate.classes[base.id]
                if inherited is not owner:
                    return self._method(inherited, name)
        return []

    def _function(
        self, node: ast.FunctionDef, owner: ast.ClassDef | None, *, in_kernel: bool = False
    ) -> list[Finding]:
        if node not in self._known:
            self._known[node] = []  # set during the walk: a recursive call adds nothing
            where = self._scopes.of_kernel(node, {}) if in_kernel else self._scopes.of(node, owner)
            self._known[node] = self._body(node.body, where)
        return self._known[node]

    def _launched(self, launch: Launch) -> list[Finding]:
        given = {
            each.name: self._candidate.constant(launch.bound.get(each.name), launch.where.constants)
            for each in launch.kernel.parameters
            if each.constexpr
        }
        return self._body(launch.kernel.node.body, self._scopes.of_kernel(launch.kernel.node, given))

    def _body(self, body: Sequence[ast.stmt], where: Where) -> list[Finding]:
        found: list[Finding] = []
        for number, statement in enumerate(body):
            if isinstance(statement, ast.If):
                rest = body[number + 1 :]
                found += self._expression(statement.test, where)
                return found + self._branches(statement, rest, where)
            found += self._statement(statement, where)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return found

    def _branches(self, node: ast.If, rest: Sequence[ast.stmt], where: Where) -> list[Finding]:
        """Return the findings in an ``if`` and the statements after it."""
        known = self.decided(node.test, where)
        if known is not None:
            taken = node.body if known else node.orelse
            found = self._body(taken, where)
            return found if _ends(taken) else found + self._body(rest, where)
        after = self._body(rest, where)
        then, otherwise = self._body(node.body, where), self._body(node.orelse, where)
        if _ends(node.body) and not _ends(node.orelse):
            otherwise = otherwise + after
            return otherwise if self._is_guard(node.body) else _either(then, otherwise)
        if _ends(node.orelse) and not _ends(node.body):
            then = then + after
            return then if self._is_guard(node.orelse) else _either(then, otherwise)
        if _ends(node.body):
            return _either(then, otherwise)
        return _either(then, otherwise) + after

    def _is_guard(self, body: Sequence[ast.stmt]) -> bool:
        """Return whether a branch leaves at once, without other work."""
        return isinstance(body[-1], ast.Raise) or (len(body) <= _PLAIN and not self._works(body))

    def _works(self, body: Sequence[ast.stmt]) -> bool:
        """Return whether a branch uses the candidate's own code, or computes something."""
        own = {*self._candidate.functions, *self._candidate.classes}
        for node in (inner for each in body for inner in ast.walk(each)):
            match node:
                case ast.BinOp():
                    return True
                case ast.Name(id=name) if name in own:
                    return True
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    if not name.startswith(_NO_WORK):
                        return True
        return False

    def _statement(self, node: ast.stmt, where: Where) -> list[Finding]:
        found: list[Finding] = list(self._check(node, where))
        if found and where.in_kernel:  # its content is not compiled
            return found
        match node:
            case ast.Try(body=tried, handlers=handlers, orelse=otherwise, finalbody=final):
                if not handlers:
                    found += self._body([*tried, *otherwise], where)
                found += self._body(final, where)
            case ast.For(iter=iterated, body=inner):
                found += self._expression(iterated, where)
                found += self._body(inner, where) if self._runs(iterated, where) else []
            case ast.While(test=test, body=inner):
                found += self._expression(test, where) + self._body(inner, where)
            case ast.With(items=items, body=inner):
                if not any("suppress" in ast.unparse(item.context_expr) for item in items):
                    for item in items:
                        found += self._expression(item.context_expr, where)
                    found += self._body(inner, where)
            case ast.FunctionDef(decorator_list=decorators):
                for decorator in decorators:
                    found += self._expression(decorator, where)
            case ast.AnnAssign(value=value):  # annotations of variables are not evaluated
                found += [] if value is None else self._expression(value, where)
            case ast.ClassDef() | ast.AsyncFunctionDef() | ast.Match():
                pass
            case _:
                for child in ast.iter_child_nodes(node):
                    found += self._expression(child, where)
        return found

    def _expression(self, node: ast.AST, where: Where) -> list[Finding]:
        found = list(self._check(node, where))
        if found and where.in_kernel:
            return found
        match node:
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                found += self._expression(test, where)
                known = self.decided(test, where)
                one, other = self._expression(then, where), self._expression(otherwise, where)
                return found + (_either(one, other) if known is None else one if known else other)
            case ast.BoolOp(values=values):
                return found + self._expression(values[0], where)
            case ast.Lambda():
                return found
            case ast.Call():
                found += self._called(node, where)
        for child in ast.iter_child_nodes(node):
            found += self._expression(child, where)
        return found

    def _runs(self, iterated: ast.expr, where: Where) -> bool:
        """Return whether a loop runs; a loop that the compiler unrolls must surely have passes."""
        if not (isinstance(iterated, ast.Call) and self._candidate.path(iterated.func) in _UNROLLED):
            return True
        bounds = [self._candidate.constant(each, where.constants) for each in iterated.args]
        numbers = [each for each in bounds if isinstance(each, int)]
        return 0 < len(numbers) == len(bounds) and 0 not in numbers[2:] and bool(range(*numbers[:3]))

    def _called(self, node: ast.Call, where: Where) -> list[Finding]:
        candidate = self._candidate
        if where.in_kernel:
            kernel = candidate.kernels.get(node.func.id) if isinstance(node.func, ast.Name) else None
            return [] if kernel is None else self._function(kernel.node, None, in_kernel=True)
        launch = launch_of(candidate, node, where)
        if launch is not None:
            return self._launched(launch)
        match node.func:
            case ast.Name(id=name) if name in candidate.functions and name not in candidate.kernels:
                return self._function(candidate.functions[name], None)
            case ast.Name(id=name) if name in candidate.classes and name != MODEL:
                return self._of_class(candidate.classes[name])
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if where.owner is not None:
                return self._method(where.owner, name)
            case ast.Attribute(value=ast.Name(id=name), attr="apply") if name in candidate.classes:
                return self._method(candidate.classes[name], "forward")
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in candidate.classes:
                return self._method(candidate.classes[name], attr)
            case _:
                return []

    def decided(self, test: ast.expr, where: Where) -> bool | None:
        """Decide a condition as on a judge: tensors are on a CUDA device, the model is as constructed.

        Returns:
            None if that does not decide it.
        """
        match test:
            case ast.Constant(value=value):
                return bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                known = self.decided(inner, where)
                return None if known is None else not known
            case ast.BoolOp(op=operator, values=values):
                settles = isinstance(operator, ast.Or)
                told = [self.decided(each, where) for each in values]
                return settles if settles in told else None if None in told else not settles
            case ast.Attribute(attr="is_cuda"):
                return True
            case ast.Attribute(attr="training") if self._trains:
                return True
            case ast.Call(func=ast.Attribute(attr="is_available"), args=[]) if "cuda" in ast.unparse(test):
                return True
            case ast.Compare(left=ast.Attribute(attr="type"), ops=[ast.Eq() | ast.NotEq() as way]):
                compared = test.comparators[0]
                if isinstance(compared, ast.Constant) and compared.value in ("cuda", "cpu"):
                    return (compared.value == "cuda") == isinstance(way, ast.Eq)
        constant = self._candidate.constant(test, where.constants)
        return None if constant is None else bool(constant)


def _either(one: list[Finding], other: list[Finding]) -> list[Finding]:
    return one + other if one and other else []


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Return whether a branch leaves its enclosing block."""
    return bool(body) and (
        isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        or (isinstance(body[-1], ast.If) and _ends(body[-1].body) and _ends(body[-1].orelse))
    )
