"""Variables of functions and attributes of ModelNew that surely hold one constant."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from adaexplore.preflight.candidate import Candidate, Function
from adaexplore.preflight.constants import UNKNOWN

MODEL = "ModelNew"
_PASSES = 3


class Scopes:
    """Constants by function; those of ModelNew follow from the values that its constructor gets."""

    def __init__(self, candidate: Candidate, reference: Candidate | None) -> None:
        """Take the constructor's inputs from the reference, or from the candidate's own copy of them."""
        self._candidate = candidate
        self._known: dict[ast.AST, Mapping[str, object]] = {}
        self._attributes: Mapping[str, object] = MappingProxyType({})
        model = candidate.classes.get(MODEL)
        inputs = init_inputs(candidate if reference is None else reference)
        if model is not None and inputs is not None:
            self._attributes = self._of_model(model, inputs)

    def of(self, node: Function | ast.Module, owner: ast.ClassDef | None) -> Mapping[str, object]:
        """Values of the function's variables, UNKNOWN for those that vary; attributes as ``self.name``."""
        if isinstance(node, ast.Module):
            return {}
        if node not in self._known:
            given = self._attributes if owner is not None and owner.name == MODEL else {}
            self._known[node] = self._locals(node, given)
        return self._known[node]

    def _locals(self, node: Function, given: Mapping[str, object]) -> dict[str, object]:
        names = {name for each in ast.walk(node) for name in _stored(each)} | set(_parameters(node))
        found: dict[str, object] = dict.fromkeys(names, UNKNOWN) | dict(given)
        once = {name: bound for name in names if (bound := assigned_once(node, name)) is not None}
        for _ in range(_PASSES):  # one may be made of another
            for name, bound in once.items():
                found[name] = self._candidate.constant(bound, found)
        return found

    def _of_model(self, model: ast.ClassDef, inputs: list[object]) -> dict[str, object]:
        methods = [node for node in model.body if isinstance(node, ast.FunctionDef)]
        init = next((node for node in methods if node.name == "__init__"), None)
        if init is None:
            return {}
        own = _parameters(init)[1:]
        changed = {name for node in ast.walk(init) if not isinstance(node, ast.arg) for name in _stored(node)}
        scope: dict[str, object] = dict.fromkeys([*own, *changed], UNKNOWN)
        scope |= {name: value for name, value in zip(own, inputs, strict=False) if name not in changed}
        sets: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(model):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                sets.setdefault(node.attr, []).append(None)
        for statement in init.body:
            match statement:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    if len(sets[name]) == 1:
                        scope[f"self.{name}"] = self._candidate.constant(value, scope)
                case _:
                    pass
        return {name: value for name, value in scope.items() if name.startswith("self.")}


def assigned_once(node: Function, name: str) -> ast.expr | None:
    """The expression that is all that a function ever gives to a variable; None if there is more to it."""
    if name in _parameters(node):
        return None
    stores = 0
    found = None
    for each in ast.walk(node):
        if isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                found = each.value
        stores += sum(stored == name for stored in _stored(each))
    return found if stores == 1 else None


def _stored(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del(), id=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case _:
            pass


def _parameters(node: Function) -> list[str]:
    given = node.args
    more = [arg.arg for arg in (given.vararg, given.kwarg) if arg is not None]
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + more


def init_inputs(module: Candidate) -> list[object] | None:
    """What ``get_init_inputs`` returns, as far as it is constant."""
    function = module.functions.get("get_init_inputs")
    last = function.body[-1] if function is not None else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.List | ast.Tuple):
        return None
    if any(isinstance(item, ast.Starred) for item in last.value.elts):
        return None
    return [module.constant(item) for item in last.value.elts]
