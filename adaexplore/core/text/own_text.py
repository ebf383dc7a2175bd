"""Detect programs that can read their own text: comments or line numbers may change their behaviour.

The check is conservative: unknown code counts as reading its own text. It is no
defence against an author who hides the access on purpose.
"""

import ast
import re
from collections.abc import Iterator

_PLAIN_MODULES = frozenset(
    {"__future__", "abc", "collections", "copy", "dataclasses", "einops", "enum", "functools", "itertools"}
    | {"math", "numpy", "operator", "random", "time", "torch", "triton", "typing", "typing_extensions"}
)
_PLAIN_DUNDERS = frozenset(
    {"__all__", "__call__", "__class__", "__getitem__", "__init__", "__iter__", "__len__", "__main__"}
    | {"__name__", "__new__", "__post_init__", "__repr__", "__setitem__", "__version__"}
)
_BUILTINS = frozenset(
    {"breakpoint", "compile", "dir", "eval", "exec", "globals", "help", "locals", "open", "vars"}
)
_NAMES = frozenset(
    {"ast", "builtins", "codecs", "ctypes", "dis", "importlib", "io", "os", "pathlib", "subprocess", "sys"}
    | {"_os", "_sys", "attrgetter", "methodcaller", "tokenize", "types", "warnings"}
    | {"cache_key", "parse", "raw_src", "script", "src", "_src", "_snapshot", "open_memmap", "with_stack"}
    | {"DataSource", "from_file", "fromfile", "fromregex", "genfromtxt", "load_library", "loadtxt", "memmap"}
)
_SEEN_IN_USE = frozenset({"os", "sys"})
"""Modules that are often imported but unused: their use counts, not their import."""
_PATTERN = re.compile(
    r"traceback|inspect|linecache|lineno|line_number|get_?source|stack_?trace|docstring"
    r"|^(?:ag|co|cr|f|gi|tb)_(?:await|back|builtins|code|consts|filename|frame|globals|lines|linetable|locals)"
)
_IN_STRINGS = re.compile(
    r"__(?:builtins|cached|code|dict|doc|file|globals|import|loader|spec|traceback|wrapped)__"
    r"|inspect|linecache|traceback|_getframe|co_firstlineno"
)
_COOKIE = re.compile(r"coding[:=][ \t]*([-\w.]+)")
_LANGUAGE = "triton.language"


def reads_own_text(source: str, tree: ast.Module) -> bool:
    """Return whether the program may depend on its comments, docstrings, layout or encoding.

    ``tree`` is ``source``, parsed, with or without docstrings.
    """
    if _is_recoded(source):
        return True
    languages = set(_names_of_language(tree))
    return any(_is_doubtful(node, languages) for node in ast.walk(tree))


def _is_recoded(source: str) -> bool:
    head = "\n".join(source.split("\n", 2)[:2])
    return any(name.lower().replace("_", "-") not in ("utf-8", "utf8") for name in _COOKIE.findall(head))


def _names_of_language(tree: ast.Module) -> Iterator[str]:
    """Return the module's names for Triton's language, whose ``load`` reads memory, not files."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.asname for each in node.names if each.name == _LANGUAGE and each.asname)
        elif isinstance(node, ast.ImportFrom) and node.module == "triton":
            yield from (each.asname or each.name for each in node.names if each.name == "language")


def _is_doubtful(node: ast.AST, languages: set[str]) -> bool:
    match node:
        case ast.Import(names=names):
            used = [each for each in names if each.asname or each.name not in _SEEN_IN_USE]
            return any(_is_doubtful_import(each.name) for each in used)
        case ast.ImportFrom(module=module, names=names, level=level):
            inner = [each.name for each in names]
            own_load = "load" in inner and module != _LANGUAGE
            return level > 0 or own_load or any(_is_doubtful_import(f"{module}.{name}") for name in inner)
        case ast.ExceptHandler(name=str()):
            return True  # Triton's errors quote the kernel with its comments
        case ast.Call(func=ast.Name("getattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return _is_doubtful_name(name)
        case ast.Call(func=ast.Name("getattr")):
            return True
        case ast.Name(id=name):
            return name in _BUILTINS or _is_doubtful_name(name)
        case ast.Attribute(value=ast.Name(base), attr="load"):
            return base not in languages
        case ast.Attribute(value=value, attr="load"):
            return not (isinstance(value, ast.Attribute) and value.attr == "language")
        case ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return _is_doubtful_name(name)
        case ast.Constant(value=str(text)):
            return _IN_STRINGS.search(text) is not None
    return False


def _is_doubtful_import(name: str) -> bool:
    first, *rest = name.split(".")
    return first not in _PLAIN_MODULES or "*" in rest or any(map(_is_doubtful_name, rest))


def _is_doubtful_name(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return (dunder and name not in _PLAIN_DUNDERS) or name in _NAMES or _PATTERN.search(name) is not None
