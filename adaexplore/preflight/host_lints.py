"""Lints on Python code outside kernels: names, attributes, calls."""

import ast
import builtins
from collections.abc import Iterator

from adaexplore.core.text.syntax import bound_names, statements
from adaexplore.preflight.bindings import argument, is_open, methods, unfit
from adaexplore.preflight.candidate import Candidate, Function
from adaexplore.preflight.findings import Finding, finding, lint_table
from adaexplore.preflight.launch_lints import ALWAYS_TUNED
from adaexplore.preflight.scopes import MODEL, Where, init_inputs

_MODULE_NAMES = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__builtins__", "__spec__"}
_MODULE_NAMES |= {"__loader__", "__package__", "__cached__", "__annotations__", "__path__"}
_OPEN_ENDED = (
    *("setattr", "__getattr__", "__getattribute__", "__dict__", "vars", "exec", "globals"),
    *("._buffers", "._modules", "._parameters"),
)
_REGISTER = ("add_module", "register_buffer", "register_module", "register_parameter")
_MODULE_BASES = ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module")


def model_findings(candidate: Candidate, reference: Candidate | None) -> Iterator[Finding]:
    """Yield faults that keep ModelNew from being constructed or called."""
    if MODEL not in candidate.bindings:
        if not candidate.open_names:
            yield finding("no-model", 1)
        return
    model = candidate.classes.get(MODEL)
    if model is None:
        return
    own_methods = methods(model)
    plain = all(candidate.path(base) in _MODULE_BASES for base in model.bases)
    if plain and not {"forward", "__call__"} & set(own_methods):
        names = set(_stored(candidate.tree))
        names |= {"forward"} & {n.id for n in ast.walk(model) if isinstance(n, ast.Name)}
        if "forward" not in names:
            yield finding("no-forward", model.lineno)
    inputs = None if reference is None else init_inputs(reference)
    if inputs is not None and plain:
        own = own_methods.get("__init__")
        count = len(inputs.values) + len(inputs.words)
        what = None
        if own is not None:
            what = unfit(own.args, len(inputs.values) + 1, tuple(inputs.words))
        elif count:
            what = f"takes 0 arguments, and the reference's inputs give {count}"
        if what is not None:
            yield finding("init-arity", (own or model).lineno, what=what)


class HostLints:
    """Lints on code outside kernels; they check one node at a time."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._defined = set(candidate.bindings) | _MODULE_NAMES
        self._defined |= {
            name for node in ast.walk(candidate.tree) if isinstance(node, ast.Global) for name in node.names
        }
        self._attributes: dict[ast.ClassDef, frozenset[str] | None] = {}

    def check(self, node: ast.AST, where: Where) -> Iterator[Finding]:
        match node:
            case ast.Name(id=str(name), ctx=ast.Load()) if name in self._undefined(where.node):
                yield finding("undefined-name", node.lineno, name=name)
            case ast.Lambda() | ast.FunctionDef() if not isinstance(where.node, ast.Module):
                for wrong in sorted(self._undefined(node)):
                    yield finding("undefined-name", _line_of(node, wrong), name=wrong)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if (
                where.owner is not None
            ):
                if not name.startswith("__") and not self._may_have(where.owner, name):
                    yield finding("undefined-attribute", node.lineno, name=name, owner=where.owner.name)
            case ast.Attribute(value=ast.Subscript(value=ast.Name(id=name)), attr=attribute, ctx=ast.Load()):
                configs = self._candidate.configs(name)
                keys = {key for each in configs for key in each.names}.difference(ALWAYS_TUNED)
                if configs and attribute in {"meta", *keys}:
                    yield finding("config-attribute", node.lineno, name=attribute)
            case ast.Call(func=ast.Name(id=name)) if name in self._candidate.kernels:
                if not _shadowed(self._candidate, where, node.func):
                    yield finding("kernel-called", node.lineno, kernel=name)
            case ast.Call():
                yield from _call(self._candidate, where, node)

    def _undefined(self, scope: ast.AST) -> frozenset[str]:
        if self._candidate.open_names:
            return frozenset()
        return self._candidate.global_reads(scope) - self._defined

    def _may_have(self, owner: ast.ClassDef, name: str) -> bool:
        if owner not in self._attributes:
            self._attributes[owner] = _attributes(self._candidate, owner)
        known = self._attributes[owner]
        return known is None or name in known


def _line_of(node: ast.AST, name: str) -> int:
    lines = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return min(lines) if lines else getattr(node, "lineno", 1)


def _attributes(candidate: Candidate, owner: ast.ClassDef) -> frozenset[str] | None:
    """Return the attributes that ``self`` may have; None if any is possible."""
    if owner.decorator_list or not all(candidate.path(base) in _MODULE_BASES for base in owner.bases):
        return None
    if any(word in ast.unparse(owner) for word in _OPEN_ENDED):
        return None
    if any(_may_set_any(node) for node in ast.walk(owner)):
        return None
    known = frozenset(lint_table().module_attributes.split()) | set(_stored(candidate.tree))
    bodies = [owner.body, *(each.body for each in _derived(candidate, owner))]
    return known | {name for body in bodies for node in statements(body) for name in bound_names(node)}


def _derived(candidate: Candidate, owner: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """Yield the classes that derive from ``owner``; its methods may read what they define."""
    names = {owner.name}
    for each in candidate.classes.values():  # a base comes before the classes that derive from it
        if any(isinstance(base, ast.Name) and base.id in names for base in each.bases):
            names.add(each.name)
            yield each


def _may_set_any(node: ast.AST) -> bool:
    """Return whether a call registers a computed name, or gives ``self`` to another function."""
    match node:
        case ast.Call(func=ast.Attribute(attr=called)) if called in _REGISTER:
            return not isinstance(argument(node, 0, "name"), ast.Constant)
        case ast.Call(func=func, args=args, keywords=words):
            given = [*args, *(word.value for word in words)]
            passed = any(isinstance(each, ast.Name) and each.id == "self" for each in given)
            return passed and not (isinstance(func, ast.Name) and func.id in _MODULE_NAMES)
        case _:
            return False


def _stored(part: ast.AST) -> Iterator[str]:
    """Return the attributes that code sets on any object, or names in a string."""
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _call(candidate: Candidate, where: Where, node: ast.Call) -> Iterator[Finding]:
    """Yield findings on calls of the candidate's own functions with wrong arguments."""
    function: Function | None = None
    extra = 0
    match node.func:
        case ast.Name(id=name) if name in candidate.functions and name not in candidate.kernels:
            function = candidate.functions[name]
        case ast.Name(id=name) if name in candidate.classes:
            function, extra = methods(candidate.classes[name]).get("__init__"), 1
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if where.owner is not None:
            if name not in _stored(where.owner):
                function, extra = methods(where.owner).get(name), 1
        case ast.Attribute(value=ast.Name(id=name), attr="apply") if name in candidate.classes:
            owner = candidate.classes[name]
            plain = any((candidate.path(base) or "").endswith("autograd.Function") for base in owner.bases)
            if plain and "setup_context" not in methods(owner):
                function, extra = methods(owner).get("forward"), 1
    if function is None or any(not _is_static(each) for each in function.decorator_list):
        return
    if any(ast.unparse(each) == "staticmethod" for each in function.decorator_list) and extra:
        extra = 1 if isinstance(node.func, ast.Attribute) and node.func.attr == "apply" else 0
    if is_open(node) or _shadowed(candidate, where, node.func):
        return
    what = unfit(function.args, len(node.args) + extra, [word.arg or "" for word in node.keywords])
    if what is not None:
        yield finding("call-arguments", node.lineno, name=ast.unparse(node.func), what=what)


def _shadowed(candidate: Candidate, where: Where, called: ast.expr) -> bool:
    """Return whether the function has a local variable with the called name."""
    if not isinstance(called, ast.Name) or isinstance(where.node, ast.Module):
        return False
    return called.id not in candidate.global_reads(where.node)


def _is_static(node: ast.expr) -> bool:
    """Return whether a decorator keeps the parameters unchanged."""
    text = ast.unparse(node)
    return text == "staticmethod" or text.startswith(("torch.no_grad", "torch.inference_mode"))
