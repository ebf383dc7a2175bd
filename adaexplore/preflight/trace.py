"""What a walk over a kernel has found so far, and whether it is in code that is surely compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.triton_api import TritonApi
from adaexplore.preflight.values import MAX_ELEMENTS, Block, Shape, broadcast, shape_text

SYNTAX: Mapping[str, tuple[str, str]] = {
    "Break": ("break", "compute the number of passes first, or mask what must not happen"),
    "Continue": ("continue", "put the rest of the loop under an if, or mask it"),
    "Try": ("try", "check before the launch"),
    "Raise": ("raise", "use tl.device_assert, or check before the launch"),
    "With": ("with", "write the statements without it"),
    "Lambda": ("a lambda", "write the expression out, or a module-level function with @triton.jit"),
    "ListComp": ("a comprehension", "use separate variables, or one block with one more dimension"),
    "SetComp": ("a comprehension", "use separate variables, or one block with one more dimension"),
    "DictComp": ("a comprehension", "use separate variables, or one block with one more dimension"),
    "GeneratorExp": ("a generator", "use separate variables, or one block with one more dimension"),
    "Dict": ("a dict", "use separate variables"),
    "Set": ("a set", "use separate variables"),
    "Yield": ("yield", "store the values"),
    "Starred": ("*", "write the values out"),
    "NamedExpr": ("':='", "assign in a statement of its own"),
    "Global": ("global", "pass the value as a parameter"),
    "Import": ("an import", "import at module level"),
    "ImportFrom": ("an import", "import at module level"),
    "Delete": ("del", "leave it out"),
    "Match": ("match", "use if"),
    "Await": ("await", "leave it out"),
}
"""What kernels cannot have, by the name of its ``ast`` node, and what to do instead."""


class Trace:
    """Findings of one walk; :attr:`found` holds them."""

    def __init__(self, api: TritonApi) -> None:
        """Nothing is found yet; ``api`` is the judge's Triton."""
        self.api = api
        self.found: list[Finding] = []
        self._open = 0

    def report(self, rule: str, node: ast.AST, **facts: object) -> None:
        """Note a mistake, if the compiler surely comes here."""
        if not self._open:
            self.found.append(finding(rule, getattr(node, "lineno", 1), **facts))

    def block(self, node: ast.AST, shape: Shape, dtype: str | None) -> Block:
        """A block of that shape, which may be too large."""
        count = 1
        for length in shape or ():
            count *= length or 1
        if shape is not None and count > MAX_ELEMENTS:
            self.report("block-size", node, count=count)
        return Block(shape, dtype)

    def fitted(self, node: ast.AST, one: Block, other: Block) -> Shape:
        """The shape of an element-wise operation."""
        try:
            return broadcast(one, other)
        except ValueError:
            left, right = shape_text(one.shape or ()), shape_text(other.shape or ())
            self.report("shape-mismatch", node, left=left, right=right)
            return None

    def syntax(self, node: ast.AST) -> None:
        """Report syntax that the compiler has no rule for."""
        name = type(node).__name__
        if name not in self.api.nodes:
            what, instead = SYNTAX.get(name, (name, "write it without"))
            self.unsupported(node, what, instead)

    def unsupported(self, node: ast.AST, what: str, instead: str) -> None:
        """Report syntax that kernels cannot have."""
        self.report("unsupported-syntax", node, what=what, instead=instead)

    @contextmanager
    def unsure(self) -> Iterator[None]:
        """For code that the compiler may not come to."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
