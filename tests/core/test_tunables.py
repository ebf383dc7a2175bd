"""Tunables of a candidate: reading them, refusing them in one line, and writing them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.tunables import (
    Tunable,
    TunablesError,
    Values,
    combination,
    count,
    declared_values,
    read_tunables,
    with_values,
)

SOURCE = '''"""Ein größerer Kern."""
import triton.language as tl

BLOCK_M: int = 64; NUM_WARPS = 4  # ä comment
BLOCK_N = tl.constexpr(32)
SCALE = -0.5
PRECISION = "ieee"
FUSED = True
TUNABLES = {
    "BLOCK_M": [32, 64, 128, 64],
    "NUM_WARPS": (4, 8),
    "BLOCK_N": [16, 32],
    "SCALE": [-0.5, 1],
    "PRECISION": ["ieee", "tf32"],
    "FUSED": [True, False],
}

def f(BLOCK_M):
    BLOCK_N = BLOCK_M + 1
    return BLOCK_N
'''


def test_constants_are_read_with_their_choices() -> None:
    found = read_tunables(SOURCE)
    assert found[0] == Tunable("BLOCK_M", 64, (32, 64, 128))
    assert declared_values(found) == {
        "BLOCK_M": 64,
        "NUM_WARPS": 4,
        "BLOCK_N": 32,
        "SCALE": -0.5,
        "PRECISION": "ieee",
        "FUSED": True,
    }


def test_values_replace_only_the_declared_literals() -> None:
    values: Values = {
        "BLOCK_M": 128,
        "NUM_WARPS": 8,
        "BLOCK_N": 16,
        "SCALE": 1,
        "PRECISION": "tf32",
        "FUSED": False,
    }
    written = with_values(SOURCE, values)
    assert declared_values(read_tunables(written)) == values
    expected = (
        SOURCE.replace("int = 64; NUM_WARPS = 4 ", "int = 128; NUM_WARPS = 8 ")
        .replace("constexpr(32)", "constexpr(16)")
        .replace("SCALE = -0.5", "SCALE = 1")
        .replace('PRECISION = "ieee"', "PRECISION = 'tf32'")
        .replace("FUSED = True", "FUSED = False")
    )
    assert written == expected


def test_values_as_declared_leave_the_text_alone() -> None:
    assert with_values(SOURCE, declared_values(read_tunables(SOURCE))) == SOURCE
    assert with_values(SOURCE, {}) == SOURCE


@given(st.data())
def test_every_combination_is_found_again_in_its_source(data: st.DataObject) -> None:
    tunables = read_tunables(SOURCE)
    values = combination(tunables, data.draw(st.integers(0, count(tunables))))
    assert declared_values(read_tunables(with_values(SOURCE, values))) == values


def test_source_without_readable_tunables_declares_none() -> None:
    assert read_tunables("BLOCK = 3\n") == ()
    assert read_tunables("TUNABLES = {'A': [1]}\nA = (") == ()
    assert read_tunables("# TUNABLES\n") == ()
    assert read_tunables("def f():\n    TUNABLES = {'A': [1]}\n") == ()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("TUNABLES = 3", "line 1: TUNABLES must be a literal like"),
        ("TUNABLES = dict(A=[1])", "line 1: TUNABLES must be a literal like"),
        ("TUNABLES = {}", "line 1: TUNABLES must be a literal like"),
        ("TUNABLES = {'A': [1], **{'B': [1]}}", "line 1: TUNABLES must be a literal like"),
        ("A = 1\nTUNABLES = {'A': [n for n in (1, 2)]}", "line 2: TUNABLES must be a literal like"),
        ("A = 1\nTUNABLES = {'A': [1], 'A': [2]}", "line 2: TUNABLES must be a literal like"),
        (
            "A = 1\nTUNABLES = {'A': [1]}\nTUNABLES['A'] = [2]\nTUNABLES = {'A': [3]}",
            "line 4: TUNABLES is assi",
        ),
        ("TUNABLES = {'A': [1]}", "line 1: A is assigned nowhere at the top level"),
        ("A = 1\nif A: A = 2\nTUNABLES = {'A': [1]}", "line 3: A is assigned more than once"),
        ("A = 1\nA += 1\nTUNABLES = {'A': [1]}", "line 3: A is assigned more than once"),
        (
            "A = 1\ndef f():\n  global A\n  A = 2\nTUNABLES = {'A': [1]}",
            "line 5: A is assigned more than once",
        ),
        ("A = 1\nfrom x import y as A\nTUNABLES = {'A': [1]}", "line 3: A is assigned more than once"),
        ("A = 2 * 32\nTUNABLES = {'A': [1]}", "line 1: A must be a literal"),
        ("A, B = 1, 2\nTUNABLES = {'A': [1]}", "line 1: A must be a literal"),
        ("A = [1]\nTUNABLES = {'A': [1]}", "line 1: A must be a literal"),
        ("A = 1e999\nTUNABLES = {'A': [1]}", "line 1: A must be a literal"),
        ("A = 0xffffffffffff\nTUNABLES = {'A': [1]}", "line 1: A must be a literal"),
        ("A = 1\nTUNABLES = {'A': 2}", "line 2: A needs a list"),
        ("A = 1\nTUNABLES = {'A': []}", "line 2: A needs a list"),
        ("A = 1\nTUNABLES = {'A': [[1]]}", "line 2: A needs a list"),
        ("A = 1\nTUNABLES = {'A': ['1']}", "line 2: A is 1, its choice '1' is of another kind"),
        ("A = True\nTUNABLES = {'A': [1]}", "line 2: A is True, its choice 1 is of another kind"),
        (f"A = 1\nTUNABLES = {{'A': {list(range(13))}}}", "line 2: A has 13 choices; give at most 12"),
        (
            "A = B = C = D = E = F = G = 1\nTUNABLES = {c: [1] for c in 'ABCDEFG'}",
            "line 2: TUNABLES must be a literal like",
        ),
        (
            "TUNABLES = {'A': [1], 'B': [1], 'C': [1], 'D': [1], 'E': [1], 'F': [1], 'G': [1]}",
            "line 1: TUNABLES names 7 constants; name at most 6",
        ),
    ],
)
def test_invalid_tunables_are_refused_in_one_line(source: str, message: str) -> None:
    with pytest.raises(TunablesError) as refused:
        read_tunables(source)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_deep_nesting_is_no_crash() -> None:
    deep = "x = " + " + ".join(["1"] * 800) + "\nA = 1\nTUNABLES = {'A': [1, 2]}\n"
    assert len(read_tunables(deep)) == 1


def test_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        with_values(SOURCE, {"BLOCK_K": 3})


def test_declared_values_come_before_every_combination() -> None:
    tunables = (Tunable("A", 3, (1, 2)), Tunable("B", 8, (4, 8, 16)))
    assert count(tunables) == 6
    assert combination(tunables, 0) == {"A": 3, "B": 8}
    others = {tuple(combination(tunables, number).values()) for number in range(1, 7)}
    assert others == {(a, b) for a in (1, 2) for b in (4, 8, 16)}
