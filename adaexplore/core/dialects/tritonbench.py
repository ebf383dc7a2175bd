"""TritonBench: files that hold an implementation and, after a line of ``#``, a test that calls it.

A file becomes a problem; its workloads are the calls in its test (see ``templates/``). The judge runs the
test on the file's own implementation to draw inputs, compares results and modified arguments as tensors, and
times each call. A candidate is a file that defines the same functions. Functions raise TaskError if the file
has no test, is not valid Python, or its test calls nothing that it defines.
"""

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.text.syntax import bound_names, parse, statements

_MARK = "#" * 146
_TEMPLATES = Path(__file__).parent / "templates"
_IMPORTS = (ast.Import, ast.ImportFrom)


def problem_source(text: str, path: Path) -> str:
    file = read(text, path)
    added = f"{_template('calls')}\n\n{_template('recording')}"
    test = f"_TB_TEST = {file.test!r}\n_TB_CALLS = _tb_recorded(None)  # before any seed is set\n"
    return _joined(file.gold.strip("\n"), added, file.functions) + test


def candidate_source(code: str, text: str, path: Path) -> str:
    """Return a candidate that defines the functions of a file as a module with ``ModelNew``."""
    functions = read(text, path).functions
    try:
        if "ModelNew" in _bound(parse(code)) and "ModelNew" not in functions:
            return code
    except (SyntaxError, ValueError):
        return code  # the judge reports the syntax error with its line
    calls = _template("calls").replace("class Model(", "class ModelNew(")
    return _joined(code.rstrip("\n"), calls, functions)


@dataclass(frozen=True)
class File:
    """One file: its implementation, its test, and the functions that the test uses."""

    gold: str
    test: str
    functions: tuple[str, ...]


def read(text: str, path: Path) -> File:
    gold, mark, test = text.partition(_MARK)
    if not mark:
        raise TaskError(f"{path}: no line of {len(_MARK)} '#' between implementation and test")
    before = gold.count("\n")
    try:
        defined, body = _bound(parse(gold)), parse("\n" * before + test)  # errors name the file's line
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{path}: not valid Python: {error}") from error
    ast.increment_lineno(body, -before)
    functions = tuple(sorted(_called(body) & defined))
    if not functions:
        raise TaskError(f"{path}: its test calls no function that the file defines")
    return File(gold, _without_repeats(test, body, defined, path.stem), functions)


def _joined(code: str, added: str, functions: Sequence[str]) -> str:
    """Return both with a table of the functions; what both define gets a private name in the first."""
    tree = parse(code)
    imports = (node for node in statements(tree.body) if isinstance(node, _IMPORTS))
    kept = {name for node in imports for name in bound_names(node)}
    taken = {name for node in statements(parse(added).body) for name in bound_names(node)} - kept
    own = {name: f"_tb_own_{name}" for name in taken & _bound(tree).union(functions)}
    table = ", ".join(f"{name!r}: {own.get(name, name)}" for name in functions)
    return "\n\n".join([_renamed(code, own) if own else code, added, f"_TB_NAMES = {{{table}}}\n"])


def _renamed(code: str, names: Mapping[str, str]) -> str:
    """Return the code with new names of globals; attributes, methods and keywords keep theirs."""
    lines = io.StringIO(code).readlines()
    skipped = (tokenize.NL, tokenize.COMMENT)
    tokens = [each for each in tokenize.generate_tokens(iter(lines).__next__) if each.type not in skipped]
    for before, token, after in reversed([*zip([tokens[-1], *tokens], tokens, tokens[1:], strict=False)]):
        (row, column), keyword = token.start, before.string in ("(", ",") and after.string == "="
        method = before.string == "def" and before.start[1] > 0
        if token.string in names and before.string != "." and not keyword and not method:
            line = lines[row - 1]
            lines[row - 1] = line[:column] + names[token.string] + line[token.end[1] :]
    return "".join(lines)


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.py").read_text(encoding="utf-8")


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that the module defines or assigns outside functions, without imports."""
    own = (node for node in statements(tree.body) if not isinstance(node, _IMPORTS))
    return {name for node in own for name in bound_names(node)}


def _called(tree: ast.Module) -> set[str]:
    """Return names that are called directly or through an attribute or item, such as kernels with a grid."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            while isinstance(function, ast.Attribute | ast.Subscript):
                function = function.value
            if isinstance(function, ast.Name):
                names.add(function.id)
    return names


def _without_repeats(test: str, body: ast.Module, defined: set[str], module: str) -> str:
    """Return the test without repeated definitions or imports of the implementation."""
    lines = test.splitlines(keepends=True)
    for node in reversed(body.body):
        first = node.lineno
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if name in defined:
                first = min([first, *(each.lineno for each in node.decorator_list)])
            case ast.ImportFrom(module=source) if source == module:
                pass
            case _:
                continue
        del lines[first - 1 : node.end_lineno]
    return "".join(lines)
