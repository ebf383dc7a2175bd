from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.identity import source_identity

SOURCE = '''
def f(x):
    """Doc."""
    return x * 2
'''


def test_comments_formatting_and_docstrings_do_not_count() -> None:
    assert source_identity(SOURCE) == source_identity("def f( x ):  # twice\n\n    return x*2\n")


def test_numbers_and_names_count() -> None:
    assert source_identity(SOURCE) != source_identity(SOURCE.replace("2", "3"))
    assert source_identity(SOURCE) != source_identity(SOURCE.replace("x", "y"))


def test_unparsable_sources_are_compared_by_their_lines() -> None:
    assert source_identity("def f(:  \n") == source_identity("def f(:")
    assert source_identity("def f(:") != source_identity("def g(:")


@given(st.text())
def test_any_text_has_an_identity(text: str) -> None:
    assert source_identity(text) == source_identity(text)
