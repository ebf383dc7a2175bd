"""Parsing from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.syntax import literal, parse, parse_expression

NESTED = "x = " + "[" * 40 + "1" + "]" * 40 + "\n"
SOURCE = NESTED * 60


def test_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: parse(SOURCE), range(60)))
    assert {len(tree.body) for tree in trees} == {60}


def test_expressions_and_literals() -> None:
    assert parse_expression("a + 1").body.lineno == 1
    assert literal(" {'a': [1, 2.5, None]}") == {"a": [1, 2.5, None]}
    with pytest.raises(ValueError, match="malformed"):
        literal("a")
