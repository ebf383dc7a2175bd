from __future__ import annotations

import random

import pytest

from adaexplore.tasks.operators import Operator, RuleError, evaluate, match, shape, written

POOL = Operator(
    name="pool",
    family="pooling",
    source="torch.nn.MaxPool2d",
    call="layer(x)",
    module="nn.MaxPool2d(k, stride=s)",
    operands={"x": "N C H W", "i": "H : int<C*2"},
    output="N C (H-k)//s+1 (W-k)//s+1",
    values={"k": [2, 3], "s": ["k", 1]},
    where=["H>=8", "W>=8"],
)


@pytest.mark.parametrize(
    ("pattern", "given", "bound"),
    [
        ("N D", (4, 8), {"N": 4, "D": 8}),
        ("* D", (2, 3, 8), {"*": (2, 3), "D": 8}),
        ("* D", (8,), {"*": (), "D": 8}),
        ("*", (2, 3), {"*": (2, 3)}),
        ("N 64", (4, 64), {"N": 4}),
        ("N L L", (2, 5, 5), {"N": 2, "L": 5}),
        ("N L L", (2, 5, 6), None),
        ("N D", (4, 8, 2), None),
        ("N 64", (4, 63), None),
        ("* H W", (3,), None),
    ],
)
def test_patterns_bind_dimensions(
    pattern: str, given: tuple[int, ...], bound: dict[str, object] | None
) -> None:
    assert match(pattern, given) == bound


def test_shapes_are_computed_from_bound_names() -> None:
    assert shape("* 2*D D//2", {"*": (3, 4), "D": 10}) == (3, 4, 20, 5)
    assert shape("", {}) == ()


def test_values_may_depend_on_others_and_conditions_hold() -> None:
    seen = set()
    for seed in range(40):
        bound = POOL.bind((2, 4, 9, 12), random.Random(seed))
        assert bound is not None
        seen.add((bound["k"], bound["s"]))
        assert POOL.result(bound) == (
            2,
            4,
            (9 - bound["k"]) // bound["s"] + 1,
            (12 - bound["k"]) // bound["s"] + 1,
        )
    assert seen == {(2, 2), (2, 1), (3, 3), (3, 1)}
    assert POOL.bind((2, 4, 7, 12), random.Random(0)) is None
    assert POOL.bind((2, 4, 9), random.Random(0)) is None


def test_operands_have_content_and_shape() -> None:
    bound = POOL.bind((2, 4, 9, 12), random.Random(0))
    assert bound is not None
    assert POOL.content("x", bound) == ("float", 0)
    assert POOL.content("i", bound) == ("int", 8)
    assert POOL.shape_of("i", bound) == (9,)


def test_expressions_are_arithmetic_and_nothing_else() -> None:
    assert evaluate("min(a, 3) * 2 == 6 and a % 5 == 0", {"a": 10}) is True
    assert evaluate("'none'", {}) == "none"
    for bad in ("b + 1", "__import__('os')", "a.real", "1 / 0", "a +", "[a]"):
        with pytest.raises(RuleError, match="cannot evaluate"):
            evaluate(bad, {"a": 1})


def test_calls_are_written_with_bound_names() -> None:
    text = written(
        "layer(x, dim=a) * (1.0 / D)", {"layer": "self.f", "x": "h1", "a": "-1", "D": "64", "*": "(2,)"}
    )
    assert text == "self.f(h1, dim=-1) * (1.0 / 64)"
