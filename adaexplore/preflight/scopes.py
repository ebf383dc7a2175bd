"""Variables of functions and attributes of ModelNew with one known constant value."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from adaexplore.preflight.bindings import methods, unfit
from adaexplore.preflight.candidate import Candidate, Function

MODEL = "ModelNew"
_PASSES = 3


@dataclass(frozen=True)
class Where:
    """The scope of a node."""

    node: Function | ast.Module  # the function, or the module for its own statements
    owner: ast.ClassDef | None = None  # the function's class
    in_kernel: bool = False  # whether it is a kernel, or a function that a kernel calls
    # values of its variables; None for those that vary
    constants: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class InitInputs:
    """Arguments of the constructor, by position and by keyword; None for a value that is not constant."""

    values: tuple[object, ...] = ()
    words: Mapping[str, object] = field(default_factory=dict)


class Scopes:
    """Constants by function; those of ModelNew follow from the arguments of its constructor."""

    def __init__(self, candidate: Candidate, reference: Candidate | None) -> None:
        """Take the constructor's arguments from the reference, or from the candidate's own copy."""
        self._candidate = candidate
        self._attributes: Mapping[str, object] = MappingProxyType({})
        model = candidate.classes.get(MODEL)
        inputs = init_inputs(candidate if reference is None else reference)
        if model is not None and inputs is not None:
            self._attributes = self._of_model(model, inputs)

    def of(self, node: Function, owner: ast.ClassDef | None) -> Where:
        """Return the scope of a Python function; attributes of ModelNew are stored as ``self.name``."""
        given = self._attributes if owner is not None and owner.name == MODEL else {}
        return Where(node, owner, constants=self._locals(node, given))

    def of_kernel(self, node: Function, given: Mapping[str, object]) -> Where:
        """Return the scope of a kernel, or a function that one calls, with these compile-time arguments."""
        return Where(node, in_kernel=True, constants=self._locals(node, given))

    def _locals(self, node: Function, given: Mapping[str, object]) -> dict[str, object]:
        names = {name for each in ast.walk(node) for name in _stored(each)} | set(parameters(node))
        found: dict[str, object] = dict.fromkeys(names) | dict(given)
        once = {name: bound for name in names if (bound := assigned_once(node, name)) is not None}
        for _ in range(_PASSES):  # one may depend on another
            for name, bound in once.items():
                found[name] = self._candidate.constant(bound, found)
        return found

    def _of_model(self, model: ast.ClassDef, inputs: InitInputs) -> dict[str, object]:
        init = methods(model).get("__init__")
        if init is None:
            return {}
        own = parameters(init)[1:]
        changed = {name for node in ast.walk(init) if not isinstance(node, ast.arg) for name in _stored(node)}
        scope: dict[str, object] = dict.fromkeys([*own, *changed])
        given = {**dict(zip(own, inputs.values, strict=False)), **inputs.words}
        scope |= {name: value for name, value in given.items() if name in own and name not in changed}
        sets: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(model):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                sets.setdefault(node.attr, []).append(None)
        for statement in init.body:
            match statement:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    if len(sets[name]) == 1:
                        scope[f"self.{name}"] = self._candidate.constant(value, scope)
        return {name: value for name, value in scope.items() if name.startswith("self.")}


def assigned_once(node: Function, name: str) -> ast.expr | None:
    """Return the only expression that a function assigns to a variable; None if there are others."""
    found = assigned_values(node, name)
    return found[0] if len(found) == 1 else None


def assigned_values(node: Function, name: str) -> list[ast.expr]:
    """Return all values assigned to a variable by ``=`` and ``+=``; empty if it is bound otherwise."""
    if name in parameters(node):
        return []
    stores = 0
    found: list[ast.expr] = []
    for each in ast.walk(node):
        match each:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found.append(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                found.append(value)
            case ast.AugAssign(target=ast.Name(id=target), op=way, value=value) if target == name:
                found.append(ast.BinOp(ast.Name(name, ast.Load()), way, value))
        stores += sum(stored == name for stored in _stored(each))
    return found if stores == len(found) else []


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


def parameters(node: Function) -> list[str]:
    given = node.args
    more = [arg.arg for arg in (given.vararg, given.kwarg) if arg is not None]
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + more


def init_inputs(module: Candidate) -> InitInputs | None:
    """Return the result of ``get_init_inputs``; None if its form is unknown or its signature decides it."""
    function = module.functions.get("get_init_inputs")
    last = function.body[-1] if function is not None else None
    if not isinstance(last, ast.Return):
        return None
    match last.value:
        case None | ast.Constant(value=None):
            return InitInputs()
        case ast.Dict() as words:
            return _by_keyword(module, words)
        case ast.List(elts=[first, words]) | ast.Tuple(elts=[first, words]) if isinstance(words, ast.Dict):
            if isinstance(first, ast.List | ast.Tuple):
                return None if first.elts else _by_keyword(module, words)
    match last.value:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            if not any(isinstance(item, ast.Starred) for item in items):
                return InitInputs(tuple(module.constant(item) for item in items))
    return None


def _by_keyword(module: Candidate, words: ast.Dict) -> InitInputs | None:
    """Return keyword arguments that the module's own ``Model`` takes."""
    keys = [key.value if isinstance(key, ast.Constant) else None for key in words.keys]
    names = [key for key in keys if isinstance(key, str)]
    model = module.classes.get("Model")
    init = methods(model).get("__init__") if model is not None else None
    if len(names) < len(keys) or (names and (init is None or unfit(init.args, 1, names) is not None)):
        return None
    return InitInputs((), dict(zip(names, map(module.constant, words.values), strict=True)))
