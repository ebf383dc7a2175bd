"""Parsing from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.text.syntax import literal, parse, parse_expression

SOURCE = ("x = " + "[" * 40 + "1" + "]" * 40 + "\n") * 8


@pytest.mark.usefixtures("threads_that_switch_while_a_tree_is_built")
def test_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lambda _: parse(SOURCE), range(100)))
    assert {len(tree.body) for tree in trees} == {8}


def test_expressions_and_literals() -> None:
    assert parse_expression("a + 1").body.lineno == 1
    assert literal(" {'a': [1, 2.5, None]}") == {"a": [1, 2.5, None]}
    with pytest.raises(ValueError, match="malformed"):
        literal("a")
