"""Lints on the Python that runs outside kernels: names, attributes, calls."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence

from adaexplore.preflight.candidate import Candidate, Function
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.reach import Where
from adaexplore.preflight.scopes import MODEL, init_inputs
from adaexplore.preflight.triton_api import TritonApi

_MODULE_NAMES = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__builtins__", "__spec__"}
_MODULE_NAMES |= {"__loader__", "__package__", "__cached__", "__annotations__", "__path__"}
_OF_MODULES = frozenset(
    [
        *("T_destination", "_apply", "_backward_hooks", "_backward_pre_hooks", "_buffers", "_call_impl"),
        *("_compiled_call_impl", "_forward_hooks", "_forward_hooks_always_called"),
        *("_forward_hooks_with_kwargs", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
        *("_get_backward_hooks", "_get_backward_pre_hooks", "_get_name", "_is_full_backward_hook"),
        *("_load_from_state_dict", "_load_state_dict_post_hooks", "_load_state_dict_pre_hooks"),
        *("_maybe_warn_non_full_backward_hook", "_modules", "_named_members"),
        *("_non_persistent_buffers_set", "_parameters", "_register_load_state_dict_pre_hook"),
        *("_register_state_dict_hook", "_replicate_for_data_parallel", "_save_to_state_dict"),
        *("_slow_forward", "_state_dict_hooks", "_state_dict_pre_hooks", "_version", "_wrapped_call_impl"),
        *("add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile", "cpu"),
        *("cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer"),
        *("get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules"),
        *("mtia", "named_buffers", "named_children", "named_modules", "named_parameters", "parameters"),
        *("register_backward_hook", "register_buffer", "register_forward_hook"),
        *("register_forward_pre_hook", "register_full_backward_hook", "register_full_backward_pre_hook"),
        *("register_load_state_dict_post_hook", "register_load_state_dict_pre_hook", "register_module"),
        *("register_parameter", "register_state_dict_post_hook", "register_state_dict_pre_hook"),
        *("requires_grad_", "set_extra_state", "set_submodule", "share_memory", "state_dict", "to"),
        *("to_empty", "train", "training", "type", "xpu", "zero_grad"),
    ]
)
"""Attributes of ``torch.nn.Module``."""
_OPEN_ENDED = (
    "setattr",
    "__setattr__",
    "__getattr__",
    "__getattribute__",
    "__dict__",
    "vars",
    "exec",
    "globals",
)
_MODULE_BASES = ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module")


def model_findings(candidate: Candidate, reference: Candidate | None) -> Iterator[Finding]:
    """Whether there is a ModelNew that can be constructed and called."""
    if MODEL not in candidate.bindings:
        if not candidate.star_import:
            yield finding("no-model", 1)
        return
    model = candidate.classes.get(MODEL)
    if model is None:
        return
    methods = _methods(model)
    plain = all(candidate.path(base) in _MODULE_BASES for base in model.bases)
    if plain and "forward" not in methods and "__call__" not in methods:
        names = set(_stored(model)) | {"forward"} & {n.id for n in ast.walk(model) if isinstance(n, ast.Name)}
        if "forward" not in names:
            yield finding("no-forward", model.lineno)
    inputs = None if reference is None else init_inputs(reference)
    count = None if inputs is None else len(inputs)
    if count is not None and plain:
        own = methods.get("__init__")
        what = _unfit(own.args, count + 1, ()) if own is not None else None
        if own is None and count:
            what = f"takes 0 arguments, and the reference's inputs give {count}"
        if what is not None:
            yield finding("init-arity", (own or model).lineno, what=what)


class HostLints:
    """What fails in code outside kernels; asked about one node at a time."""

    def __init__(self, candidate: Candidate, api: TritonApi | None) -> None:
        """Look at the whole module once."""
        self._candidate = candidate
        self._api = api
        self._undefined = _undefined(candidate)
        self._attributes: dict[ast.ClassDef, frozenset[str] | None] = {}

    def check(self, node: ast.AST, where: Where) -> Iterator[Finding]:
        """Findings on one node of ``where``."""
        match node:
            case ast.Name(id=str(name), ctx=ast.Load()) if name in self._undefined.get(
                _scope(where.node), ()
            ):
                yield finding("undefined-name", node.lineno, name=name)
            case ast.Lambda() | ast.FunctionDef() if not isinstance(where.node, ast.Module):
                for wrong in sorted(self._undefined.get(_scope(node), ())):
                    yield finding("undefined-name", _line_of(node, wrong), name=wrong)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if (
                where.owner is not None
            ):
                if not name.startswith("__") and not self._may_have(where.owner, name):
                    yield finding("undefined-attribute", node.lineno, name=name, owner=where.owner.name)
            case ast.Attribute(value=ast.Subscript(value=ast.Name(id=name)), attr=attribute, ctx=ast.Load()):
                known = None if self._api is None else self._api.config
                if known is not None and attribute not in known and self._candidate.configs_in(name):
                    yield finding("config-attribute", node.lineno, name=attribute)
            case ast.Call(func=ast.Name(id=name)) if name in self._candidate.kernels:
                if not _shadowed(where, node.func):
                    yield finding("kernel-called", node.lineno, kernel=name)
            case ast.Call():
                yield from _call(self._candidate, where, node)
            case _:
                pass
        if self._api is not None:
            yield from _triton_names(self._candidate, node, self._api)

    def _may_have(self, owner: ast.ClassDef, name: str) -> bool:
        if owner not in self._attributes:
            self._attributes[owner] = _attributes(self._candidate, owner)
        known = self._attributes[owner]
        return known is None or name in known


def missing_name(path: str, line: int, api: TritonApi) -> Finding:
    """A finding on a name that Triton lacks."""
    name = path.replace("triton.language", "tl", 1)
    short = path.rpartition(".")[2]
    return finding("missing-triton-name", line, name=name, version=api.version, instead=_instead(short, api))


_REPLACEMENTS = {
    "constant": "use the plain number, or tl.full(shape, value, dtype)",
    "ones": "use tl.full(shape, 1, dtype)",
    "full_like": "use tl.full(x.shape, value, x.dtype)",
    "make_constant": "use tl.full(shape, value, dtype)",
    "matmul": "use tl.dot",
    "mod": "use the operator %",
    "eq": "use the operator ==",
    "astype": "use x.to(dtype)",
    "pow": "use tl.exp2 and tl.log2, or libdevice.pow",
    "mean": "use tl.sum and divide",
    "relu": "use tl.maximum(x, 0.0)",
    "Tensor": "use tl.tensor, or no annotation",
    "any": "use tl.max on the condition converted with .to(tl.int32)",
    "all": "use tl.min on the condition converted with .to(tl.int32)",
    "libdevice": "write: from triton.language.extra import libdevice",
    "float": "use tl.float32",
    "int": "use tl.int32",
    "bool": "use tl.int1",
}


def _instead(name: str, api: TritonApi) -> str:
    if name in _REPLACEMENTS:
        return f"; {_REPLACEMENTS[name]}"
    if name in api.names.get("triton.language.extra.libdevice", ()):
        return f"; use libdevice.{name} after: from triton.language.extra import libdevice"
    return "; use one that exists"


def _triton_names(candidate: Candidate, node: ast.AST, api: TritonApi) -> Iterator[Finding]:
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            if alias.name != "*" and api.lacks(path) and not _is_submodule(path):
                yield missing_name(path, node.lineno, api)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        named = candidate.path(node)
        if named is not None and api.lacks(named) and not _is_submodule(named):
            yield missing_name(named, node.lineno, api)


def _is_submodule(path: str) -> bool:
    return path in ("triton.ops", "triton.tools", "triton.backends", "triton.profiler", "triton.experimental")


def _line_of(node: ast.AST, name: str) -> int:
    lines = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return min(lines) if lines else getattr(node, "lineno", 1)


def _scope(node: ast.AST) -> tuple[str, int]:
    """Name and line under which a scope's symbols are kept."""
    if isinstance(node, ast.Module):
        return "top", 0
    return getattr(node, "name", "lambda"), getattr(node, "lineno", 0)


def _undefined(candidate: Candidate) -> dict[tuple[str, int], set[str]]:
    """By name and line of a scope: the names that it reads and nothing defines."""
    found: dict[tuple[str, int], set[str]] = {}
    known = set(candidate.bindings) | _MODULE_NAMES
    known |= {
        name for node in ast.walk(candidate.tree) if isinstance(node, ast.Global) for name in node.names
    }

    def look(table: symtable.SymbolTable, *, is_top: bool) -> None:
        wrong = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced()
            and (symbol.is_global() or is_top)
            and not (is_top and symbol.is_assigned())
            and symbol.get_name() not in known
        }
        line = 0 if is_top else table.get_lineno()
        found.setdefault((table.get_name(), line), set()).update(wrong)
        for child in table.get_children():
            look(child, is_top=False)

    look(symtable.symtable(candidate.source, "candidate.py", "exec"), is_top=True)
    return found


def _attributes(candidate: Candidate, owner: ast.ClassDef) -> frozenset[str] | None:
    """Attributes that ``self`` may have; None if any is possible."""
    if owner.decorator_list or not all(candidate.path(base) in _MODULE_BASES for base in owner.bases):
        return None
    if any(word in ast.unparse(owner) for word in _OPEN_ENDED):
        return None
    known = _OF_MODULES | set(_stored(owner)) | set(_methods(owner))
    return known | {name for node in owner.body for name in _class_names(node)}


def _class_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.ClassDef):
        yield node.name


def _stored(owner: ast.ClassDef) -> Iterator[str]:
    """Attributes that any code of the class sets on anything, or names in a string."""
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}


def _call(candidate: Candidate, where: Where, node: ast.Call) -> Iterator[Finding]:
    """A call of the candidate's own functions with arguments that do not fit."""
    function: Function | None = None
    extra = 0
    match node.func:
        case ast.Name(id=name) if name in candidate.functions and name not in candidate.kernels:
            function = candidate.functions[name]
        case ast.Name(id=name) if name in candidate.classes:
            function, extra = _methods(candidate.classes[name]).get("__init__"), 1
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if where.owner is not None:
            if name not in _stored(where.owner):
                function, extra = _methods(where.owner).get(name), 1
        case ast.Attribute(value=ast.Name(id=name), attr="apply") if name in candidate.classes:
            owner = candidate.classes[name]
            plain = any((candidate.path(base) or "").endswith("autograd.Function") for base in owner.bases)
            if plain and "setup_context" not in _methods(owner):
                function, extra = _methods(owner).get("forward"), 1
        case _:
            pass
    if function is None or any(not _is_static(each) for each in function.decorator_list):
        return
    if any(_is_name(each, "staticmethod") for each in function.decorator_list) and extra:
        extra = 1 if isinstance(node.func, ast.Attribute) and node.func.attr == "apply" else 0
    if any(isinstance(arg, ast.Starred) for arg in node.args) or any(
        word.arg is None for word in node.keywords
    ):
        return
    if _shadowed(where, node.func):
        return
    what = _unfit(function.args, len(node.args) + extra, [word.arg or "" for word in node.keywords])
    if what is not None:
        yield finding("call-arguments", node.lineno, name=ast.unparse(node.func), what=what)


def _shadowed(where: Where, called: ast.expr) -> bool:
    """Whether the function has a local variable of the called name."""
    if not isinstance(called, ast.Name) or isinstance(where.node, ast.Module):
        return False
    inside = ast.walk(where.node)
    return any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == called.id)
        or (isinstance(node, ast.arg) and node.arg == called.id)
        or (isinstance(node, ast.FunctionDef) and node.name == called.id and node is not where.node)
        for node in inside
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_static(node: ast.expr) -> bool:
    """Whether a decorator leaves the parameters as they are."""
    text = ast.unparse(node)
    return text == "staticmethod" or text.startswith(("torch.no_grad", "torch.inference_mode"))


def _unfit(given: ast.arguments, positions: int, words: Sequence[str]) -> str | None:
    """Why a call with that many positional arguments and those names fails."""
    names = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    open_words = {arg.arg for arg in (*given.args, *given.kwonlyargs)}
    if given.vararg is None and positions > len(names):
        return f"takes {len(names)} positional arguments and gets {positions}"
    for word in words:
        if word in names[:positions] and word in open_words:
            return f"gets {word} twice"
        if word not in open_words and given.kwarg is None:
            return f"has no parameter {word}"
    required = names[: len(names) - len(given.defaults)]
    missing = [name for name in required[positions:] if name not in words]
    missing += [
        arg.arg
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None and arg.arg not in words
    ]
    return f"is called without {', '.join(missing)}" if missing else None
