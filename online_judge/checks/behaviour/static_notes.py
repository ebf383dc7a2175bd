"""Does a candidate's text use constructs that cheating needs and honest code rarely uses?"""

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator

from adaexplore.core.text import syntax
from online_judge.checks.check import Check, CheckFact, FlagKind, Found, Severity

_SHOWN = 4
_IMPORTED = {
    "static_clock": (
        r"(time|timeit|datetime)(\..*)?",
        r"torch\.cuda\.Event|triton\.testing\.(do_bench|perf_report).*|torch\.utils\.benchmark.*",
    ),
    "static_streams": (
        r"torch\.cuda\.(Stream|ExternalStream|stream|set_stream|StreamContext|CUDAGraph|graphs?(\..*)?)",
        r"torch\.cuda\.make_graphed_callables|torch\.Stream|torch\.accelerator\.set_stream",
    ),
    "static_introspection": (
        r"(gc|inspect|ctypes|traceback|importlib|builtins|cffi)(\..*)?",
        r"sys\.(_getframe|_current_frames|modules|settrace|setprofile|meta_path|path|path_hooks)(\..*)?",
        r"torch\.(library|overrides|utils\._python_dispatch|utils\._pytree)(\..*)?",
    ),
    "static_process": (
        r"(subprocess|multiprocessing|threading|concurrent|asyncio|socket|requests|urllib|http)(\..*)?",
        r"(shutil|tempfile|pathlib|signal|atexit|pickle|mmap)(\..*)?|os\.(?!path\b).*|io\.open",
        r"torch\.(save|load|multiprocessing.*|utils\.cpp_extension.*|cuda\._compile_kernel)",
    ),
}
_COMPILED = {id_: re.compile("|".join(f"(?:{part})" for part in parts)) for id_, parts in _IMPORTED.items()}
_BUILTINS = {
    **dict.fromkeys(("id", "globals", "locals", "eval", "exec", "compile"), "static_introspection"),
    **dict.fromkeys(("__import__", "__builtins__", "__loader__"), "static_introspection"),
    "open": "static_process",
}
_ATTRIBUTES = {
    "elapsed_time": "static_clock",
    **dict.fromkeys(("wait_stream", "record_stream", "capture_begin", "replay"), "static_streams"),
    **dict.fromkeys(("data_ptr", "_version", "untyped_storage", "_cdata"), "static_introspection"),
    **dict.fromkeys(("f_locals", "f_globals", "f_back", "tb_frame"), "static_introspection"),
    **dict.fromkeys(("__subclasses__", "__globals__", "__code__", "__closure__"), "static_introspection"),
}
_PATCHABLE = re.compile(r"(torch|triton|time|builtins|sys|os|numpy|math|gc)(\..*)?")
_SETTINGS = re.compile(r"torch\.(backends|_dynamo\.config|_inductor\.config)\..*|triton\.knobs\..*")
_COMPUTING = re.compile(r"torch\..*|super\(\)\..*|self\..*")
_BENIGN = re.compile(
    r"torch\.(cuda|backends|version|device|is_tensor|empty.*|zeros.*|finfo|iinfo|Size|get_.*|set_.*)(\..*)?"
)


class SourceText(CheckFact):
    text: str


_FLAGS = {
    id_: FlagKind(
        id_,
        Severity.NOTE,
        "lines of the source and what they name; a pattern alone is never more than a note",
        "read these lines",
    )
    for id_ in (*_IMPORTED, "static_fallback")
}


def _find(source: SourceText) -> Iterator[Found]:
    """Yield one note for each id, with lines and constructs; none for a source that does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes and the like are the candidate's
        tree = syntax.parsed(source.text)
    if tree is None:
        return
    names = dict(syntax.imports(ast.walk(tree)))  # such as ``F`` for ``torch.nn.functional``
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for id_, what, line in _uses(tree, names):
        found[id_].setdefault(what, line)
    for id_, kind in _FLAGS.items():
        if id_ in found:
            yield kind.found(_evidence(found[id_]))


def _uses(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield flag id, construct and line of everything worth a note."""
    bound = _bound_names(tree)
    parts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()) if id(node) not in parts:
                dotted, root = _dotted(node, names)
                if root in names:
                    for id_, pattern in _COMPILED.items():
                        if pattern.fullmatch(dotted):
                            yield id_, dotted, node.lineno
                elif dotted in _BUILTINS and root not in bound:
                    yield _BUILTINS[dotted], f"{dotted}()", node.lineno
                if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
                    yield _ATTRIBUTES[node.attr], f".{node.attr}", node.lineno
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                dotted, root = _dotted(node, names)
                if root in names and _PATCHABLE.fullmatch(dotted) and not _SETTINGS.fullmatch(dotted):
                    yield "static_introspection", f"assigns {dotted}", node.lineno
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]):
                dotted, root = _dotted(owner, names)
                if root in names and not _SETTINGS.fullmatch(f"{dotted}."):
                    yield "static_introspection", f"setattr on {dotted}", node.lineno
            case ast.Try():
                for handler in node.handlers:
                    if what := _computes(handler, names):
                        yield "static_fallback", f"except branch calls {what}", handler.lineno


def _bound_names(tree: ast.Module) -> set[str]:
    """Return the names that the module binds anywhere."""
    bound = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
    return bound


def _dotted(node: ast.expr, names: dict[str, str]) -> tuple[str, str]:
    """Return ``a.b.c`` with imported names replaced, and ``a`` as written; else ``?`` and an empty root."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    first, root = "?", ""
    if isinstance(node, ast.Name):
        first, root = names.get(node.id, node.id), node.id
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        first = "super()"
    return ".".join([first, *reversed(parts)]), root


def _computes(handler: ast.ExceptHandler, names: dict[str, str]) -> str:
    """Return the construct with which an except branch computes, if it does."""
    for statement in handler.body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call):
                continue
            dotted, _ = _dotted(node.func, names)
            if _COMPUTING.fullmatch(dotted) and not _BENIGN.fullmatch(dotted):
                return dotted
    return ""


def _evidence(found: dict[str, int]) -> str:
    places = [f"line {line}: {what}" for what, line in sorted(found.items(), key=lambda item: item[1])]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{'; '.join(places[:_SHOWN])}{more}"


CHECK = Check(tuple(_FLAGS.values()), (SourceText,), _find)
