"""Reading a reply takes time linear in its length, whatever the text."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import pytest

from adaexplore.agent.reading import reading_of
from adaexplore.core.text.dispatch import without_dispatch
from adaexplore.core.text.edits import EditError, apply_edits, parse_edits
from adaexplore.core.text.identity import source_identity
from adaexplore.core.text.tunables import TunablesError, read_tunables

SIZES = (2**17, 2**18)
SHORTEST = 0.02
"""Seconds below which a ratio says nothing."""
PIECES = [
    "\n", " ", "\t", "\r", "\ufeff", "`", "```", "```\n", "```python\n", "~~~\n", "<", "<code>",
    "</code>\n", "&lt;", "\"", "'", "\"\"\"", "'''\n", "<think>", "</think>", "<think></think>",
    "`</think>`", "[THINK]", "[THINK][/THINK]", "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>", "<|end|>", "</s>", "> ", "> ```\n", "- ```python\n", "{", "{\n",
    "{\"a\":", "[\n", "(", "@@\n-a\n+b\n", "<<<<<<< SEARCH\n", "<old_str>", "<old_str_1>a</old_str_1>",
    "<old_str_1>a</old_str_1>\n<new_str_1>b</new_str_1>\n", "# ...\n", "... same ", "# unchanged\n",
    "ModelNew ", "class ModelNew: x = y\n```python\n", "assistantfinal",
    "# Numbers by shape class, written by the judge's sweep.\n",
]  # fmt: skip
BEFORE = ["", "analysis class ModelNew:\n", "```python\nclass ModelNew:\n    x = 1\n"]


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Leave out the garbage collector, whose cost depends on the other objects of the process."""
    gc.disable()
    yield
    gc.enable()


def read_in_default(reply: str) -> None:
    reading = reading_of("shared")
    reading.read(reading.answer_in(reply), "x = 1\n", "")


def read_in_paper(reply: str) -> None:
    reading = reading_of("paper")
    reading.read(reading.answer_in(reply), None, "")


def use_as_source(text: str) -> None:
    source_identity(text)
    without_dispatch(text)
    try:
        read_tunables(text)
        apply_edits(text, parse_edits("<old_str_1>\nzzz\n</old_str_1><new_str_1>a</new_str_1>"))
    except (EditError, TunablesError):
        pass


def seconds(work: Callable[[str], None], text: str) -> float:
    started = time.process_time()
    work(text)
    return time.process_time() - started


def is_quadratic(work: Callable[[str], None], piece: str, before: str) -> bool:
    """Return whether twice the text takes over three times as long, in three measurements."""
    half, whole = (before + piece * (size // len(piece)) for size in SIZES)

    def grows() -> bool:
        return seconds(work, whole) > 3 * max(seconds(work, half), SHORTEST)

    return grows() and grows() and grows()


@pytest.mark.slow
@pytest.mark.parametrize(
    "work", [read_in_default, read_in_paper, use_as_source], ids=lambda work: work.__name__
)
@pytest.mark.parametrize("before", BEFORE, ids=["nothing", "class", "fence"])
def test_twice_the_text_takes_twice_as_long(work: Callable[[str], None], before: str) -> None:
    assert [piece for piece in PIECES if is_quadratic(work, piece, before)] == []
