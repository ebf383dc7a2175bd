"""Find the construct that an error is about in the syntax tree of the offending line, without own names."""

import ast
import re
import textwrap
from collections.abc import Iterator

from adaexplore.core.text.syntax import parsed

_CARETS = re.compile(r"([ \t]*)[\^~]+[\^~\s]*")
_MODULES = frozenset({"tl", "triton", "torch", "F", "nn", "libdevice", "math"})
_DTYPES = re.compile(
    r"^((?:tl|torch)\.)(?:float|bfloat|int|uint)(?:8|16|32|64)\w*$|^(tl\.|torch\.)(?:int1|bool|half)$"
)
_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_OWN = "_"
_PREFERRED: dict[str, tuple[type[ast.AST], ...]] = {
    "tensor index": (ast.Subscript,),
    "outside of JIT": (ast.Call, ast.Subscript, ast.Assign, ast.AugAssign),
    "Shape element": (ast.Call,),
    "operands": (ast.Compare, ast.BinOp, ast.AugAssign),
}
"""The kind of node for errors with these words, if several nodes start at one position."""


def construct_of(source: str, text: str, line: int | None = None) -> str:
    """Describe the code at an error's position in a few words; "" if unknown.

    Two programs with the same mistake have the same construct: their own names, numbers and dtypes
    are left out.

    Args:
        source: the candidate.
        text: the error: a compiler's message with a caret under the offending line, or the line with the
            reason below.
        line: the line in ``source`` that led to the error, used if ``text`` has no caret.
    """
    found = _at_caret(source, text) or _at_line(source, text, line)
    if found is None:
        return ""
    return _describe(found, text)


def offending_line(text: str) -> str:
    """Return the source line at the last caret of a compiler message; "" without a caret."""
    place = _caret(text)
    return "" if place is None else place[0].strip()


def _caret(text: str) -> tuple[str, int] | None:
    """Return the line above the last caret, and the caret's column."""
    lines = text.splitlines()
    for index in range(len(lines) - 1, 0, -1):
        match = _CARETS.fullmatch(lines[index])
        if match is not None:
            return (lines[index - 1], len(match[1])) if lines[index - 1].strip() else None
    return None


def _at_caret(source: str, text: str) -> list[ast.AST] | None:
    """Return the nodes that start at the caret, outermost first."""
    place = _caret(text)
    if place is None:
        return None
    shown, column = place
    tree = parsed(textwrap.dedent(source))
    lines = source.splitlines()
    for number, candidate in enumerate(lines, start=1):
        if tree is not None and candidate.strip() == shown.strip():
            # a kernel within a class is shown without its indentation
            shift = _indent(candidate) - _indent(shown)
            nodes = [node for node in _placed(tree) if _starts(node, number, column + shift)]
            statements = [
                node for node in _placed(tree) if node.lineno == number and isinstance(node, ast.stmt)
            ]
            if nodes or statements:
                return [*nodes] or [*statements]
    alone = parsed(shown.strip())
    if alone is None:
        return None
    column -= _indent(shown)
    return [node for node in _placed(alone) if _starts(node, 1, column)] or None


def _at_line(source: str, text: str, line: int | None) -> list[ast.AST] | None:
    """Return the calls on the offending line, a kernel's launch first."""
    tree = parsed(textwrap.dedent(source))
    if line is None:
        first = text.strip().splitlines()[0].strip() if text.strip() else ""
        numbers = [n for n, code in enumerate(source.splitlines(), 1) if first and code.strip() == first]
        line = numbers[0] if numbers else None
    if tree is None or line is None:
        return None
    calls = [node for node in _placed(tree) if isinstance(node, ast.Call) and node.lineno == line]
    launches = [call for call in calls if isinstance(call.func, ast.Subscript)]
    known = [call for call in calls if _name(call.func).partition(".")[0] in _MODULES]
    missing = re.search(r"has no attribute '(\w+)'", text)
    if missing is not None:
        attributes = [node for node in _placed(tree) if isinstance(node, ast.Attribute)]
        named = [node for node in attributes if node.lineno == line and node.attr == missing[1]]
        return list(named[:1]) or None
    return list(launches[:1] or known[:1]) or None


def _describe(nodes: list[ast.AST], text: str) -> str:
    """Describe the one of ``nodes``, which start at one position, that the error's last line is about."""
    reason = text.rstrip().rpartition("\n")[2]
    node = _meant(nodes, reason)
    keyword = _KEYWORD.search(reason)
    said = _words(node)
    return f"{said} {keyword[1]}=" if keyword is not None and isinstance(node, ast.Call) else said


def _meant(nodes: list[ast.AST], reason: str) -> ast.AST:
    missing = re.search(r"has no attribute '(\w+)'", reason)
    for node in nodes:
        if missing is not None and isinstance(node, ast.Attribute) and node.attr == missing[1]:
            return node
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _name(node.func).rpartition(".")[2]
            if name != _OWN and re.search(rf"\b{re.escape(name)}\b", reason):
                return node
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if calls and re.search(r"unexpected keyword|not callable|missing \d+ required", reason):
        return calls[-1]  # the innermost of a chain of calls
    for words, kinds in _PREFERRED.items():
        if words in reason:
            preferred = [node for node in nodes if isinstance(node, kinds)]
            if preferred:
                return preferred[0]
    expressions = [node for node in nodes if not isinstance(node, ast.Expr)]
    return (expressions or nodes)[0]


def _words(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Subscript()):
            return "launch"
        case ast.Call():
            return f"call {_name(node.func)}"
        case ast.Attribute():
            return f"attribute {_name(node)}"
        case ast.Subscript():
            return f"index {_index(node.slice)}"
        case (
            ast.Assign(targets=[ast.Subscript(slice=index), *_])
            | ast.AugAssign(target=ast.Subscript(slice=index))
        ):
            return f"assign to index {_index(index)}"
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return "assign"
        case ast.Compare(ops=[operator, *_]):
            return f"compare {type(operator).__name__}"
        case ast.BinOp(op=operator):
            return f"operator {type(operator).__name__}"
        case ast.Name():
            return "name"
        case ast.Constant():
            return "constant"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return "nested function"
        case _:
            return type(node).__name__


def _index(index: ast.expr) -> str:
    """Return the kinds of an index's parts."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    kinds = set()
    for part in parts:
        match part:
            case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=None):
                continue
            case ast.Slice():
                kinds.add("slice")
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                kinds.add("number")
            case _:
                kinds.add("value")
    return "+".join(sorted(kinds)) or "whole"


def _name(node: ast.expr) -> str:
    """Return ``tl.load`` for a library's names, ``_`` for the candidate's own."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and (node.id in _MODULES or (not names and node.id in _BUILTINS)):
        names.append(node.id)
    elif names:
        names = [names[0], _OWN]
    else:
        return _OWN
    name = ".".join(reversed(names))
    return _DTYPES.sub(lambda match: f"{match[1] or match[2]}<dtype>", name)


_BUILTINS = frozenset({"float", "int", "bool", "len", "max", "min", "abs", "range", "print", "sum", "round"})


def _placed(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            yield node


def _starts(node: ast.expr | ast.stmt, line: int, column: int) -> bool:
    return node.lineno == line and node.col_offset == column


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
