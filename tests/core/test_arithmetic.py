from __future__ import annotations

import ast

import pytest

from adaexplore.core.text.arithmetic import compare, operate
from adaexplore.core.text.syntax import parse_expression


def value(text: str) -> object:
    """Of an expression of one operator between two literals."""
    match parse_expression(text).body:
        case ast.BinOp(left=left, op=way, right=right):
            return operate(way, ast.literal_eval(left), ast.literal_eval(right))
        case ast.Compare(left=left, ops=[way], comparators=[right]):
            return compare(way, ast.literal_eval(left), ast.literal_eval(right))
    raise AssertionError(text)


ARITHMETIC = "7 + 2; 7 - 9; 3 * 2.5; 7 / 2; 7 // 2; -7 % 4; 2 ** 10; 2 ** -1; 4096.5 ** 2; 1 << 12; 4096 >> 3"
COMPARISONS = "1 < 2; 2.0 >= 2; 1 == 1.0; 3 > 4; 4 <= 3; (1, 2) != (2, 1)"


@pytest.mark.parametrize("text", f"{ARITHMETIC}; {COMPARISONS}".split("; "))
def test_operators_give_what_python_gives(text: str) -> None:
    result = value(text)
    assert result == eval(text)
    assert type(result) is type(eval(text))


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "0 ** -1", "1.5 << 2", "1 << -1", "1 @ 2", "10.0 ** 400"])
def test_invalid_operations_have_no_value(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize(
    "text", ["2 ** 1000000", "(1 << 63) ** 64", "1 << 10000000", "36893488147419103232 ** 2"]
)
def test_results_that_may_be_huge_are_not_computed(text: str) -> None:
    match parse_expression(text).body:
        case ast.BinOp(left=left, op=way, right=right):
            assert operate(way, eval(ast.unparse(left)), ast.literal_eval(right)) is None


@pytest.mark.parametrize(
    "text", ["'a' * 3", "'a' + 'b'", "(1,) + (2,)", "1 < 'a'", "1 in (1, 2)", "(-8) ** 0.5"]
)
def test_only_real_numbers_and_ordered_comparisons_have_values(text: str) -> None:
    assert value(text) is None


def test_product_over_4096_bits_is_none() -> None:
    assert operate(ast.Mult(), 2**4000, 2) == 2**4001
    assert operate(ast.Mult(), 2**4000, 2**4000) is None
