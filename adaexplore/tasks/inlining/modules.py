"""Imported modules as source: which statement defines a name, and in which order statements ran."""

import ast
import builtins
import importlib
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from adaexplore.core.text.syntax import bound_names, parse, parsed, statements

PLAIN = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy", "typing_extensions"})
"""Packages that every judge has; torch requires the last one."""


class Refused(Exception):
    """The source cannot be inlined; the text says why, ``package`` is at fault."""

    def __init__(self, message: str, package: str = "") -> None:
        super().__init__(message)
        self.package = package


@dataclass(frozen=True)
class Definition:
    """A name that the source of a module defines."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class PlainImport:
    """A name that is imported from a package that stays an import; ``attribute`` is None for the module."""

    module: str
    attribute: str | None
    alias: str | None

    @property
    def name(self) -> str:
        return self.alias or self.attribute or self.module.partition(".")[0]

    def statement(self, name: str) -> str:
        """Return the import that binds ``name``."""
        if self.attribute is not None:
            return f"from {self.module} import {self.attribute}" + (
                f" as {name}" if name != self.attribute else ""
            )
        if self.alias is None and name != self.name:
            return f"import {top_level(self.module)} as {name}"
        return f"import {self.module}" + (f" as {name}" if self.alias else "")

    @property
    def is_dotted(self) -> bool:
        """Return True for ``import a.b``, which binds ``a`` and loads ``a.b``."""
        return self.attribute is None and self.alias is None and "." in self.module

    def value(self) -> object:
        return _import_value((self.module, self.attribute, self.alias))


@dataclass(frozen=True)
class PackageModule:
    """A module whose source is inlined."""

    module: str


Target = Definition | PlainImport | PackageModule
Import = tuple[str, str | None, str | None]
"""Absolute module, attribute or None, alias or None."""


def top_level(module: str) -> str:
    return module.partition(".")[0]


class SourceModule:
    """An imported module and the statements of its source."""

    def __init__(self, module: ModuleType, source: str) -> None:
        self.name = module.__name__
        self.namespace = vars(module)
        self.body = parse(source).body
        self._lines = source.split("\n")
        self.package = str(self.namespace.get("__package__") or "")

    @cached_property
    def binding(self) -> dict[str, list[tuple[int, ast.stmt]]]:
        """By name: the statements that bind it, each with the position of its top-level statement."""
        found: dict[str, list[tuple[int, ast.stmt]]] = defaultdict(list)
        for position, top in enumerate(self.body):
            for node in statements([top]):
                for name in dict.fromkeys(bound_names(node)):
                    found[name].append((position, node))
        return dict(found)

    @property
    def postpones_annotations(self) -> bool:
        """Return True if the module imports ``annotations`` from the future."""
        ways = (way for node in self.body for way in self.imports(node))
        return any(way[:2] == ("__future__", "annotations") for way in ways)

    def text(self, node: ast.stmt) -> str:
        """Return the source of a statement, with its comments if it has lines of its own."""
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        lines = self._lines[first - 1 : node.end_lineno]
        alone = parsed("\n".join(lines))
        same = alone is not None and [ast.dump(each) for each in alone.body] == [ast.dump(node)]
        return "\n".join(lines) if same else ast.unparse(node)

    def imports(self, node: ast.stmt, name: str | None = None) -> Iterator[Import]:
        """Yield what an import statement imports, with absolute names; only what it binds to ``name``."""
        if isinstance(node, ast.Import):
            for each in node.names:
                if name in (None, each.asname or top_level(each.name)):
                    yield each.name, None, each.asname
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if node.level:
                try:
                    module = importlib.util.resolve_name(module, self.package)
                except ImportError:
                    return
            for each in node.names:
                if name in (None, each.asname or each.name):
                    yield module, each.name, each.asname


class Modules:
    """The modules of a process whose source is inlined, found by name.

    ``root`` is the name of the problem's module; packages in ``stay`` stay imports; ``called`` are file and
    first line of the functions that the problem called; ``lean`` modules leave out all others.
    """

    def __init__(
        self,
        root: str,
        stay: Set[str] = frozenset(),
        called: Set[tuple[str, int]] = frozenset(),
        *,
        lean: bool = False,
    ) -> None:
        self.lean = lean
        self.root = root
        self._called = called
        self._plain = PLAIN | stay
        self._known: dict[str, SourceModule | None] = {}

    def is_plain(self, module: str) -> bool:
        return module != self.root and top_level(module) in self._plain

    def packages(self) -> list[str]:
        """Return the packages whose modules were read."""
        read = (name for name, source in self._known.items() if source is not None and name != self.root)
        return [*dict.fromkeys(map(top_level, read))]

    def ran(self, source: SourceModule, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Return whether the problem called a function."""
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        return (str(source.namespace.get("__file__")), first) in self._called

    def source(self, name: str) -> SourceModule | None:
        """Return a module that is imported; None if it is not, or has no Python source."""
        if name not in self._known:
            self._known[name] = _read(name)
        return self._known[name]

    def resolve(self, module: str, name: str) -> Target | None:
        """Return what ``name`` means at the end of ``module``; None for a builtin or an unknown name.

        Raises:
            Refused: its source is not known.
        """
        source = self.source(module)
        if source is None:
            raise Refused(f"{module}.{name} is compiled code or has no Python source", top_level(module))
        if name not in source.namespace:
            return None
        value, bound = source.namespace[name], source.binding.get(name, [])
        ways = [way for _, node in bound for way in source.imports(node, name)]
        for way in reversed(ways):
            if len(bound) == 1 or _import_value(way) is value:
                return self.imported(way)
        if any(not isinstance(node, ast.Import | ast.ImportFrom) for _, node in bound):
            return Definition(module, name)
        for node in reversed(source.body):
            for origin, attribute, _ in source.imports(node) if not bound else ():
                held = sys.modules.get(origin)
                if attribute == "*" and getattr(held, name, self) is value:
                    return self.imported((origin, name, None))
        if isinstance(value, ModuleType):
            return self._module(value.__name__, None)
        if name.startswith("__") or value is getattr(builtins, name, self):
            return None
        return self._by_value(module, name, value)

    def imported(self, way: Import) -> Target | None:
        """Return what an import means."""
        module, attribute, alias = way
        value = _import_value(way)
        if value is None and self.is_plain(module):
            return None  # an optional package that is not installed
        if attribute is None:
            return self._module(module if alias else top_level(module), alias, module)
        if self.is_plain(module):
            return PlainImport(module, attribute, alias)
        if isinstance(value, ModuleType):
            return self._module(value.__name__, alias or attribute)
        return self._exported(module, attribute, value)

    def attribute(self, module: str, name: str) -> Target | None:
        """Return what ``module.name`` means."""
        value = getattr(sys.modules.get(module), name, None)
        if isinstance(value, ModuleType):
            return self._module(value.__name__, name)
        return self._exported(module, name, value)

    def _exported(self, module: str, name: str, value: object) -> Target | None:
        source = self.source(module)
        if source is None or name in source.namespace or value is None:
            return self.resolve(module, name)
        return self._by_value(module, name, value)  # a lazy re-export

    def _module(self, name: str, alias: str | None, whole: str | None = None) -> Target:
        if self.is_plain(name):
            return PlainImport(whole or name, None, alias)
        return PackageModule(name)

    def _by_value(self, module: str, name: str, value: object) -> Target:
        """Find a name that no statement binds by its value's own module."""
        origin, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if isinstance(origin, str) and own.isidentifier() and (origin, own) != (module, name):
            if self.is_plain(origin):
                return PlainImport(origin, own, None)
            held = self.source(origin)
            if held is not None and held.namespace.get(own) is value:
                found = self.resolve(origin, own)
                if found is not None:
                    return found
        raise Refused(f"no statement of {module} defines {name}", top_level(module))

    def execution_order(self) -> list[tuple[str, int]]:
        """Return the top-level statements of all modules in the order in which imports ran them.

        Modules that only functions import come before the problem's own statements.
        """
        started: set[str] = set()
        order: list[tuple[str, int]] = []

        def execute(name: str) -> None:
            source = None if name in started or self.is_plain(name) else self.source(name)
            started.add(name)
            for position, top in enumerate(source.body if source is not None else ()):
                for node in statements([top]):
                    for module, attribute, _ in source.imports(node) if source is not None else ():
                        for parent in _with_parents(module):
                            execute(parent)
                        execute(f"{module}.{attribute}")
                order.append((name, position))

        execute(self.root)
        regular, order = order, []
        for name in [*sys.modules]:
            if self._known.get(name) is not None:
                execute(name)
        return order + regular


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[: count + 1]) for count in range(len(parts)))


def _import_value(way: Import) -> object:
    """Return the value that an import binds; None if it fails."""
    module, attribute, alias = way
    try:
        held = importlib.import_module(module)
        if attribute is None:
            return held if alias else sys.modules[top_level(module)]
        if not hasattr(held, attribute):
            return importlib.import_module(f"{module}.{attribute}")
        return getattr(held, attribute)
    except Exception:  # noqa: BLE001 - an optional package, or the user's code
        return None


def _read(name: str) -> SourceModule | None:
    module = sys.modules.get(name)
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    try:
        source = loader.get_source(name)  # type: ignore[union-attr]
        return None if module is None or source is None else SourceModule(module, source)
    except Exception:  # noqa: BLE001 - loaders may raise anything; then there is no source
        return None
