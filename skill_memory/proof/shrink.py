"""Shrink a failing candidate to a minimal one with the same failure: delta debugging on its AST."""

import ast
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from skill_memory.proof import trees

Test = Callable[[str], bool]
"""A function that returns whether a source has the wanted property."""
Clock = Callable[[], float]


@dataclass(frozen=True)
class Shrunk:
    """The smallest candidate found, and the effort: trials made, seconds, whether time ran out."""

    source: str
    trials: int
    seconds: float
    cut_short: bool


class _OutOfTime(Exception):
    """The time limit is reached."""


class _Trials:
    """Test sources, each once, until the time limit; remember the smallest with the property."""

    def __init__(self, test: Test, best: str, limit_s: float, clock: Clock) -> None:
        self.best = best
        self.began = clock()
        self.clock = clock
        self.known: dict[str, bool] = {}
        self._test = test
        self._end = self.began + limit_s

    def __call__(self, tree: ast.Module) -> bool:
        source = trees.unparsed(tree)
        if source is None:
            return False
        if source not in self.known:
            if self.clock() > self._end:
                raise _OutOfTime
            self.known[source] = self._test(source)
            if self.known[source]:
                self.best = source
        return self.known[source]


def shrink(source: str, fails: Test, limit_s: float = 60.0, clock: Clock = time.monotonic) -> Shrunk:
    """Return the smallest source found within ``limit_s`` seconds for which ``fails`` is true.

    Statements are removed in ever smaller chunks, then the rest is simplified expression by
    expression, until nothing can be removed. If no change still fails, ``source`` itself is returned.

    Args:
        source: a candidate that fails.
        fails: whether a candidate fails in the same way.
        limit_s: time limit; then the best so far is returned.
        clock: monotonic seconds.
    """
    trials = _Trials(fails, source, limit_s, clock)
    cut_short = False
    try:
        tree = trees.parsed(source)
        if trials(tree):
            before = None
            while before != trials.best:
                before = trials.best
                tree = _fewer_statements(tree, trials)
                tree = _simpler(tree, trials)
    except SyntaxError:
        pass
    except _OutOfTime:
        cut_short = True
    return Shrunk(trials.best, len(trials.known), clock() - trials.began, cut_short)


def nearest_working(source: str, works: Test, limit_s: float = 60.0) -> Shrunk | None:
    """Return the working source nearest to ``source``: the smallest single change that works.

    Returns:
        None if no single change works, or time ran out.
    """
    began = time.monotonic()
    tree = trees.parsed(source)
    whole = trees.size(tree)
    simpler = (trees.simplifications(tree, index) for index in range(whole))
    shorter = (
        trees.without_statements(tree, block, position, 1)
        for block in range(trees.block_count(tree))
        for position in range(trees.block_length(tree, block))
    )
    changed: dict[str, int] = {}
    for tried in chain(*simpler, shorter):
        text = trees.unparsed(tried)
        if text is not None:
            changed.setdefault(text, whole - trees.size(tried))
    for number, text in enumerate(sorted(changed, key=lambda text: changed[text]), start=1):
        if time.monotonic() > began + limit_s:
            return None
        if works(text):
            return Shrunk(text, number, time.monotonic() - began, False)
    return None


def _fewer_statements(tree: ast.Module, fails: _Trials) -> ast.Module:
    """Remove as many statements of ``tree`` as possible: every block by halves, outer ones first."""
    block = 0
    while block < trees.block_count(tree):
        chunk = trees.block_length(tree, block)
        while chunk >= 1:
            start = 0
            while start < trees.block_length(tree, block):
                tried = trees.without_statements(tree, block, start, chunk)
                if trees.size(tried) < trees.size(tree) and fails(tried):
                    tree = tried
                else:
                    start += chunk
            chunk //= 2
        block += 1
    return tree


def _simpler(tree: ast.Module, fails: _Trials) -> ast.Module:
    """Simplify each expression and block of ``tree`` as far as possible, one change at a time."""
    index = 0
    while index < trees.size(tree):
        simpler = trees.simplifications(tree, index)
        smaller = (tried for tried in simpler if trees.size(tried) < trees.size(tree))
        found = next((tried for tried in smaller if fails(tried)), None)
        if found is None:
            index += 1
        else:
            tree = found
    return tree
