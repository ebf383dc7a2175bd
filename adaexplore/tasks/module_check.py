"""Check whether a source text is a problem module, without running it."""

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping

from adaexplore.core.text.syntax import bound_names, parse, statements

REQUIRED_NAMES = ("Model", "get_inputs", "get_init_inputs")
WORKLOADS = "get_workloads"
_WORKLOAD_KEYS = ("name", "get_inputs", "weight")


def module_problem(source: str) -> str | None:
    """Return why ``source`` is not a problem module: a line number, the fault, and what to do.

    None if it is one. With ``get_workloads``, ``get_inputs`` may be missing; with a ``Model`` that is a plain
    function, ``get_init_inputs``.
    """
    defined = _defined(source)
    if isinstance(defined, str):
        return defined
    optional = {"get_inputs"} if WORKLOADS in defined else set()
    if not _is_class(defined, defined.get("Model")):
        optional.add("get_init_inputs")
    missing = [name for name in REQUIRED_NAMES if name not in defined and name not in optional]
    if missing:
        others = [name for name in defined if name not in REQUIRED_NAMES]
        near = [close for name in missing for close in difflib.get_close_matches(name, others, 1)]
        if missing == ["Model"] and not near and (name := _only_model(defined)) is not None:
            return f"line {defined[name].lineno}: does not define Model; add the line 'Model = {name}'"
        line, hint = (
            (defined[near[0]].lineno, f" (did you mean {near[0]} of this line?)") if near else (1, "")
        )
        return f"line {line}: does not define {', '.join(missing)}{hint}; {_ADVICE}"
    for name in (*REQUIRED_NAMES[1:], WORKLOADS):
        match defined.get(name):
            case ast.FunctionDef(args=arguments) as function if _required(arguments):
                return f"line {function.lineno}: {name} is called without arguments; give each a default"
            case ast.FunctionDef() as function if name == WORKLOADS:
                return _workloads_problem(function)
    return None


def _is_class(defined: Mapping[str, ast.stmt], model: ast.stmt | None) -> bool:
    """Return False for a function, or a value that may be one."""
    if isinstance(model, ast.Assign) and isinstance(model.value, ast.Name):
        model = defined.get(model.value.id)
    return model is None or isinstance(model, ast.ClassDef)


def _only_model(defined: Mapping[str, ast.stmt]) -> str | None:
    """Return the only class or, without classes, the only public function that may be the ``Model``."""
    for kind in (ast.ClassDef, ast.FunctionDef):
        names = [
            name
            for name, node in defined.items()
            if isinstance(node, kind) and not name.startswith(("_", "get_"))
        ]
        if names:
            return names[0] if len(names) == 1 else None
    return None


def may_be_problem(source: str) -> bool:
    """Return False for a module that is meant for something else, such as a kernel."""
    defined = _defined(source)
    if isinstance(defined, str) or "Model" in defined:
        return True
    return "ModelNew" not in defined and not {"get_inputs", WORKLOADS}.isdisjoint(defined)


def hidden_problem(source: str) -> str | None:
    """Return why ``source`` is not a file of hidden workloads, in one line; None if it is one."""
    defined = _defined(source)
    if isinstance(defined, str):
        return defined
    return None if WORKLOADS in defined else f"line 1: does not define {WORKLOADS}; {_WORKLOADS_ADVICE}"


_ADVICE = f"a problem defines {', '.join(REQUIRED_NAMES)}"


def _defined(source: str) -> dict[str, ast.stmt] | str:
    """Return the names that a module defines with their statements, or why it is not a module."""
    if not source.strip():
        return f"line 1: the file is empty; {_ADVICE}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(source)
    except SyntaxError as error:
        return f"line {error.lineno or _null_line(source)}: not valid Python: {error.msg}; correct this line"
    except (ValueError, RecursionError, MemoryError) as error:
        what = error or "nested too deeply"
        return f"line {_null_line(source)}: not valid Python: {what}; correct this line"
    return {name: node for node in statements(tree.body) for name in bound_names(node)}


def _null_line(source: str) -> int:
    """Return the line of the first null byte, which the parser does not report; else 1."""
    return source.partition("\0")[0].count("\n") + 1 if "\0" in source else 1


def _required(arguments: ast.arguments) -> bool:
    """Return whether a call without arguments is an error."""
    positional = len(arguments.posonlyargs) + len(arguments.args) > len(arguments.defaults)
    return positional or None in arguments.kw_defaults


def _workloads_problem(function: ast.FunctionDef) -> str | None:
    """Return the fault of a ``get_workloads``, as far as its literals show one."""
    nodes = list(_own_nodes(function))
    returned = [node for node in nodes if isinstance(node, ast.Return)]
    if not any(isinstance(node, ast.Return | ast.Yield | ast.Raise) or _is_stub(node) for node in nodes):
        return f"line {function.lineno}: {WORKLOADS} returns nothing; {_WORKLOADS_ADVICE}"
    for node in returned:
        match node.value:
            case None | ast.Constant() | ast.Dict():
                return f"line {node.lineno}: {WORKLOADS} does not return a list; {_WORKLOADS_ADVICE}"
            case ast.List(elts=[]) | ast.Tuple(elts=[]):
                return f"line {node.lineno}: {WORKLOADS} returns no workload; {_WORKLOADS_ADVICE}"
            case ast.List(elts=entries) | ast.Tuple(elts=entries):
                names: list[object] = []
                for entry in entries:
                    problem = _entry_problem(entry, names)
                    if problem is not None:
                        return f"line {entry.lineno}: {problem}; {_WORKLOADS_ADVICE}"
    return None


_WORKLOADS_ADVICE = 'return a list such as [{"name": "small", "get_inputs": small_inputs, "weight": 1.0}]'


def _entry_problem(entry: ast.expr, names: list[object]) -> str | None:
    """Return the fault of one workload; add its name to ``names``."""
    if isinstance(entry, ast.Constant | ast.List | ast.Tuple):
        return "a workload is not a dict"
    if not isinstance(entry, ast.Dict):
        return None
    keys = [key.value if isinstance(key, ast.Constant) else None for key in entry.keys]
    if None in keys:  # computed: known only when it runs
        return None
    values = dict(zip(keys, entry.values, strict=True))
    wrong = [f"has an unknown key {key!r}" for key in keys if key not in _WORKLOAD_KEYS]
    wrong += [f"has no {key!r}" for key in _WORKLOAD_KEYS[:2] if key not in values]
    match values.get("name"):
        case ast.Constant(value=name):
            if not isinstance(name, str) or not name:
                wrong.append("has a name that is not text of 1 to 80 characters in one line")
            elif name in names:
                wrong.append(f"has the name {name!r} of another one")
            names.append(name)
    if isinstance(values.get("get_inputs"), ast.Constant | ast.List | ast.Tuple | ast.Dict):
        wrong.append("has a get_inputs that is not a function")
    match values.get("weight"):
        case ast.Constant(value=bool() | str() | bytes() | None) | ast.UnaryOp(op=ast.USub()):
            wrong.append("has a weight that is not a positive number")
        case ast.Constant(value=int() | float() as weight) if weight <= 0:
            wrong.append("has a weight that is not a positive number")
    return f"a workload {wrong[0]}" if wrong else None


def _is_stub(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a function except those of nested functions."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own_nodes(node)
