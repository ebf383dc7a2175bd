"""Choose the program of an answer: the last complete one that defines a class."""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from adaexplore.core.replies.sources import Source, sources_in
from adaexplore.core.text.identity import MOST_PARSED_CHARS
from adaexplore.core.text.syntax import bound_names, parsed, statements

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__"}
_AS_BEFORE = r"(?:(?:same )?as (?:before|above)|unchanged|omitted|existing code|rest of the \w+)"
_DOTS = r"(?:\.\.\.|…)"
_LEFT_OUT = re.compile(  # "# ... kernel as before ...", "... existing code ...", "# ... other kernels ..."
    rf"^[ \t]*+(?:#[ \t]*+)?[\[(]?{_DOTS}[^\n]{{0,80}}?\b"
    rf"(?:{_AS_BEFORE}\b|(?:same|previous|remaining|other|code|here)\b[^\n]{{0,40}}?{_DOTS})",
    re.IGNORECASE | re.MULTILINE,
)
_REMARK = re.compile(  # "# the rest is unchanged" with nothing below it
    rf"^[ \t]*+#[^\n#]{{0,80}}?\b(?:{_AS_BEFORE}|(?:stays?|remains?) the same)[^\w\n]{{0,20}}$"
    r"(?=\n[ \t]*(?:\n|@|def |class )|\n?\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_FUTURE = re.compile(r"^from __future__ import [^\n]*\n?", re.MULTILINE)
_REMARKS = 20
_KNOWN_PACKAGES = ("torch", "triton", "numpy")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Program:
    """A source that an answer holds."""

    source: str  # the text to judge
    end: int  # where it ends in the answer


class _Part:
    """One source of an answer, parsed once."""

    def __init__(self, source: Source, name: str) -> None:
        self.text, self.end, self._name = source.text, source.end, name

    @cached_property
    def tree(self) -> ast.Module | None:
        return parsed(self.text) if len(self.text) <= MOST_PARSED_CHARS else None

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it defines at its top level, imports and stubs excluded."""
        return frozenset(_defined(self.tree)) if self.tree else frozenset()

    @cached_property
    def missing(self) -> frozenset[str]:
        """The names that it uses and never binds."""
        return frozenset(_missing(self.tree)) if self.tree else frozenset()

    @cached_property
    def imports(self) -> dict[str, str]:
        """The import statement of each name that it imports at its top level, as text."""
        nodes = self.tree.body if self.tree else ()
        found = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        return {name: ast.unparse(node) for node in found for name in bound_names(node)}

    @property
    def complete(self) -> bool:
        """Whether it parses and defines the class, with no part left out."""
        return self._name in self.names and not self.left_out

    @property
    def left_out(self) -> bool:
        if _LEFT_OUT.search(self.text) or self._has_remark():
            return True
        return self.tree is not None and any(_is_hollow_kernel(node) for node in self.tree.body)

    def _has_remark(self) -> bool:
        """Return whether a comment outside functions says that something is as before."""
        remarks = islice(_REMARK.finditer(self.text), _REMARKS)
        places = [self.text.count("\n", 0, remark.start()) + 1 for remark in remarks]
        nodes = ast.walk(self.tree) if places and self.tree else ()
        inside = [(node.lineno, node.end_lineno or 0) for node in nodes if isinstance(node, _Function)]
        return any(not any(first <= place <= last for first, last in inside) for place in places)

    @property
    def broken(self) -> bool:
        """Whether it seems to define the class, but does not parse."""
        pattern = rf"^[ \t]*class[ \t]+{re.escape(self._name)}\b"
        return self.tree is None and not self.left_out and bool(re.search(pattern, self.text, re.MULTILINE))


def program_in(answer: str, name: str = "ModelNew", base: str = "") -> Program | None:
    """Return the last complete program of ``answer`` that defines the class ``name``; None without one.

    A program is complete if it parses and leaves nothing out. If it lacks definitions that another source of
    the answer has, or ``base``, both are put together. If none is complete, the last one that defines the
    class but does not parse is returned, so that its error can be reported.
    """
    parts = [_Part(source, name) for source in (Source(base, 0), *sources_in(answer, name))]
    for place in range(len(parts) - 1, 0, -1):
        if parts[place].complete:
            return Program(_joined(parts, place, name), parts[place].end)
    broken = next((part for part in reversed(parts[1:]) if part.broken), None)
    return None if broken is None else Program(broken.text, broken.end)


def is_program(text: str, name: str = "ModelNew") -> bool:
    """Return whether ``text`` itself is a complete program."""
    return _Part(Source(text, len(text)), name).complete


def _joined(parts: Sequence[_Part], place: int, name: str) -> str:
    """Return the source at ``place`` after those that define what it lacks."""
    last = _without_sibling_imports(parts, place, name)
    places: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        if number < place or name not in part.names:
            for each in part.names if number != place else ():
                places.setdefault(each, []).append(number)
    taken: set[int] = set()
    waiting = [*last.missing]
    while waiting:
        having = places.get(waiting.pop(), [])
        if not having or taken.intersection(having):
            continue
        nearest = max((number for number in having if number < place), default=having[0])
        taken.add(nearest)
        waiting += parts[nearest].missing
    whole = [parts[number] for number in sorted(taken)] + [last]
    lines = dict.fromkeys(_lacking_imports(parts[:place], whole))
    if len(whole) == 1 and not lines:
        return last.text
    later = frozenset(last.names)
    texts = [_without_definitions(part, later) for part in whole[:-1]] + [last.text]
    futures = dict.fromkeys(line.strip() for text in texts for line in _FUTURE.findall(text))
    head = "\n".join((*futures, *lines))
    texts = [_FUTURE.sub("", text).strip("\n") for text in texts]
    return "\n\n\n".join([head, *texts] if head else texts) + "\n"


def _without_definitions(part: _Part, names: frozenset[str]) -> str:
    """Return the text of a part without its functions and classes of these names."""
    lines = part.text.split("\n")
    for node in reversed(part.tree.body if part.tree else ()):
        if isinstance(node, ast.ClassDef | _Function) and node.name in names:
            first = min(each.lineno for each in (node, *node.decorator_list)) - 1
            del lines[first : node.end_lineno or node.lineno]
    return "\n".join(lines)


def _lacking_imports(earlier: Sequence[_Part], whole: Sequence[_Part]) -> Iterator[str]:
    """Yield the import statements of ``earlier`` sources that the parts of a program lack, in their order."""
    bound = {name for part in whole for name in (*part.names, *part.imports)}
    lacking = {name for part in whole for name in part.missing} - bound
    chosen = {name: part for part in earlier for name in lacking & part.imports.keys()}
    for part in earlier:
        yield from (line for name, line in part.imports.items() if chosen.get(name) is part)


def _without_sibling_imports(parts: Sequence[_Part], place: int, name: str) -> _Part:
    """Return the part without imports of names that other sources of the answer define."""
    part = parts[place]
    others = {each for number, other in enumerate(parts) if number != place for each in other.names}
    lines = part.text.split("\n")
    found = False
    for node in part.tree.body if part.tree and len(parts) > 1 else ():
        if isinstance(node, ast.ImportFrom) and _is_of_sibling(node, others):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [""] * (last - first)
            found = True
    return _Part(Source("\n".join(lines), part.end), name) if found else part


def _is_of_sibling(node: ast.ImportFrom, others: set[str]) -> bool:
    if not node.level and (node.module or "").partition(".")[0] in _KNOWN_PACKAGES:
        return False
    return all(alias.name in others and alias.asname is None for alias in node.names)


def _defined(tree: ast.Module) -> Iterator[str]:
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in statements(tree.body):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Delete):
            continue
        if isinstance(node, ast.ClassDef) and _is_stub(node, classes):
            continue
        if isinstance(node, _Function) and _is_empty(node.body):
            continue
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            origin = classes.get(node.value.id)
            if origin is not None and _is_stub(origin, classes):
                continue
        yield from bound_names(node)


def _is_stub(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Return whether the class leaves out its body, its ``forward`` or another method."""
    inherits = any(isinstance(base, ast.Name) and base.id in classes for base in node.bases)
    if _is_empty(node.body) and not (inherits and not _has_ellipsis(node.body)):
        return True
    methods = [each for each in node.body if isinstance(each, _Function)]
    return any(
        _is_empty(each.body) and (each.name == "forward" or _has_ellipsis(each.body)) for each in methods
    )


def _is_hollow_kernel(node: ast.stmt) -> bool:
    if not isinstance(node, _Function) or not _is_empty(node.body):
        return False
    return _has_ellipsis(node.body) or any("jit" in ast.dump(each) for each in node.decorator_list)


def _is_empty(body: Sequence[ast.stmt]) -> bool:
    """Return whether there are only docstrings, ``...``, ``pass`` and ``raise NotImplementedError``."""
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Raise) and node.exc is not None and "NotImplemented" in ast.dump(node.exc))
        for node in body
    )


def _has_ellipsis(body: Sequence[ast.stmt]) -> bool:
    values = (node.value for node in body if isinstance(node, ast.Expr))
    return any(isinstance(value, ast.Constant) and value.value is ... for value in values)


def _missing(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are read somewhere and bound nowhere."""
    bound = set(_BUILTINS)
    read = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.append(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
    yield from (name for name in dict.fromkeys(read) if name not in bound)
