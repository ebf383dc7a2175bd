"""What a version of Triton offers, read from its source text; Triton is never imported."""

from __future__ import annotations

import ast
import importlib.util
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from adaexplore.core.syntax import parse

_IMPLICIT = {"_semantic", "_generator", "_builder"}
_LANGUAGE = "triton.language"
_MODULES = {
    _LANGUAGE: ("language/__init__.py",),
    f"{_LANGUAGE}.math": ("language/math.py",),
    f"{_LANGUAGE}.extra.libdevice": ("language/extra/libdevice.py", "language/extra/cuda/libdevice.py"),
    "triton": ("__init__.py",),
}
_SOURCES = ("core", "standard", "math", "random")


@dataclass(frozen=True)
class Signature:
    """Parameters of a function, without those that Triton's compiler fills in.

    Attributes:
        names: those that may be given by position, in order.
        required: how many of them have no default.
        keywords: those that may be given by name only.
        open_positions: takes any number of positional arguments.
        open_keywords: takes any keyword.
    """

    names: tuple[str, ...]
    required: int
    keywords: tuple[str, ...] = ()
    open_positions: bool = False
    open_keywords: bool = False


@dataclass(frozen=True)
class TritonApi:
    """One version of Triton.

    Attributes:
        version: such as ``3.7.1``.
        names: by module, the names that it has.
        signatures: by function of ``triton.language``, its parameters.
        dtypes: by function, the element types that it accepts, where it checks them.
        tensor: attributes of a tensor inside a kernel.
        nodes: syntax that kernels may use, as names of ``ast`` nodes.
        builtins: Python's own names that kernels may use.
        options: keywords of a launch that are no parameters of the kernel.
        config: attributes of ``triton.Config``.
        callable_types: whether a type such as ``tl.float32`` may be called.
    """

    version: str
    names: Mapping[str, frozenset[str]]
    signatures: Mapping[str, Signature]
    dtypes: Mapping[str, tuple[str, ...]]
    tensor: frozenset[str]
    nodes: frozenset[str]
    builtins: frozenset[str]
    options: frozenset[str]
    config: frozenset[str]
    callable_types: bool

    def lacks(self, path: str) -> bool:
        """Whether ``path``, such as ``triton.language.tanh``, is surely missing."""
        module, _, name = path.rpartition(".")
        module = module.replace(".extra.cuda.libdevice", ".extra.libdevice")
        known = self.names.get(module)
        return known is not None and name not in known and not name.startswith("__")


@cache
def triton_api(version: str | None = None) -> TritonApi | None:
    """The Triton of ``version``; without one, the installed one, else the newest known.

    Returns:
        None for a version that is neither installed nor known: then nothing that depends on it is said.
    """
    folder = _installed()
    if folder is not None and version in (None, _version(folder)):
        return read_api(folder)
    known = {
        path.name.removesuffix(".json"): path for path in files(__package__).joinpath("tables").iterdir()
    }
    if version is None:
        return _from_json(json.loads(known[max(known, key=_numbers)].read_text(encoding="utf-8")))
    table = known.get(".".join(version.split(".")[:2]))
    return None if table is None else _from_json(json.loads(table.read_text(encoding="utf-8")))


def read_api(folder: Path) -> TritonApi:
    """Read the package's source in ``folder``."""
    trees = {name: _parse(folder / "language" / f"{name}.py") for name in _SOURCES}
    functions = {
        node.name: node
        for name in reversed(_SOURCES)
        for node in trees[name].body
        if isinstance(node, ast.FunctionDef)
    }
    offered = _names(_parse(folder / "language/__init__.py"))
    core = trees["core"]
    compiler = _class(_parse(folder / "compiler/code_generator.py"), "CodeGenerator")
    return TritonApi(
        version=_version(folder),
        names={
            module: frozenset().union(*(_names(_parse(folder / path)) for path in paths))
            for module, paths in _MODULES.items()
        },
        signatures={name: _signature(node.args) for name, node in functions.items() if name in offered},
        dtypes={name: found for name, node in functions.items() if (found := _accepted(node))},
        tensor=frozenset(_members(core)) | _joined_members(trees.values()),
        nodes=frozenset(
            name.removeprefix("visit_") for name in _methods(compiler) if name.startswith("visit_")
        ),
        builtins=frozenset(_builtins(compiler)),
        options=frozenset(_fields(_class(_parse(folder / "backends/nvidia/compiler.py"), "CUDAOptions"))),
        config=frozenset(_own(_class(_parse(folder / "runtime/autotuner.py"), "Config"))),
        callable_types="__call__" in _methods(_class(core, "dtype")),
    )


def to_json(api: TritonApi) -> str:
    """The table of one version, as it is kept beside this module."""
    return json.dumps(asdict(api), default=sorted, sort_keys=True, separators=(",", ":")) + "\n"


def _from_json(data: dict[str, Any]) -> TritonApi:
    return TritonApi(
        version=data["version"],
        names={module: frozenset(names) for module, names in data["names"].items()},
        signatures={
            name: Signature(**{**told, "names": tuple(told["names"]), "keywords": tuple(told["keywords"])})
            for name, told in data["signatures"].items()
        },
        callable_types=data["callable_types"],
        dtypes={name: tuple(found) for name, found in data["dtypes"].items()},
        **{name: frozenset(data[name]) for name in ("tensor", "nodes", "builtins", "options", "config")},
    )


def _installed() -> Path | None:
    spec = importlib.util.find_spec("triton")  # finds a top-level package without importing it
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return folder if (folder / "compiler/code_generator.py").exists() else None


def _version(folder: Path) -> str:
    for node in _parse(folder / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@cache
def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse(path.read_text(encoding="utf-8"))


def _names(tree: ast.Module) -> set[str]:
    """What a module's own statements bind."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=names):
                found |= {alias.asname or alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(names=names, module=module):
                found |= {alias.asname or alias.name for alias in names}
                if node.level == 1 and module:  # importing from a submodule binds it too
                    found.add(module.partition(".")[0])
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
            case _:
                pass
    return found


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    yield from (each.name for each in node.body if isinstance(each, ast.FunctionDef))


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def _builtins(compiler: ast.ClassDef) -> Iterator[str]:
    """Names in the compiler's table of built-in functions, and those that are added to it."""
    for node in compiler.body:
        text = ast.unparse(node)
        if not text.startswith("builtin_namespace"):
            continue
        for each in ast.walk(node):
            match each:
                case ast.comprehension(iter=ast.Tuple(elts=parts)):
                    yield from (part.id for part in parts if isinstance(part, ast.Name))
                case ast.Tuple(elts=[ast.Constant(value=str(name)), _]):
                    yield name
                case _:
                    pass


def _own(node: ast.ClassDef) -> Iterator[str]:
    """Methods of a class and attributes that they set."""
    yield from _methods(node)
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


def _members(core: ast.Module) -> set[str]:
    return set(_own(_class(core, "tensor"))) | set(_own(_class(core, "base_value")))


def _joined_members(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Functions that are made methods of a tensor."""
    return frozenset(
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(each).endswith("_tensor_member_fn") for each in node.decorator_list)
    )


def _signature(given: ast.arguments) -> Signature:
    names = [arg.arg for arg in (*given.posonlyargs, *given.args) if arg.arg not in _IMPLICIT]
    optional = given.args[len(given.args) - len(given.defaults) :] if given.defaults else []
    return Signature(
        names=tuple(names),
        required=len(names) - sum(arg.arg not in _IMPLICIT for arg in optional),
        keywords=tuple(arg.arg for arg in given.kwonlyargs if arg.arg not in _IMPLICIT),
        open_positions=given.vararg is not None,
        open_keywords=given.kwarg is not None,
    )


def _accepted(node: ast.FunctionDef) -> tuple[str, ...]:
    """The element types that a function's decorator checks for."""
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("_check_dtype"):
            return tuple(ast.literal_eval(each.keywords[0].value))
    return ()
