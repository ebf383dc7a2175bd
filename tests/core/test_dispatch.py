"""Numbers by shape in a source, and their effect."""

import types
from typing import Any

from adaexplore.core.judging.status import Status
from adaexplore.core.text.dispatch import can_dispatch, shape_class, with_dispatch, without_dispatch
from adaexplore.core.text.tunables import read_tunables
from adaexplore.preflight.lints import lint
from tests.verdicts import make_verdict

SOURCE = """BLOCK = 64
WARPS = 4
TUNABLES = {"BLOCK": [32, 64, 128], "WARPS": [4, 8]}


class ModelNew:
    def forward(self, x, scale):
        return BLOCK, WARPS
"""
TABLE = {(9, 4): {"BLOCK": 128, "WARPS": 8}, (3, 4): {"BLOCK": 32, "WARPS": 4}}


def forward(source: str, *shape: int) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["ModelNew"]().forward(types.SimpleNamespace(shape=shape), 2.0)


def test_class_counts_bits_of_the_tensors_sizes() -> None:
    assert shape_class([4096, 64]) == (13, 7)
    assert shape_class([]) == ()


def test_values_follow_the_shape_class_with_a_fallback() -> None:
    text = with_dispatch(SOURCE, TABLE)
    assert forward(text, 400, 8) == forward(text, 511, 15) == (128, 8)
    assert forward(text, 4, 8) == (32, 4)
    assert forward(text, 1000, 8) == (64, 4)


def test_one_tunable_is_dispatched_too() -> None:
    source = SOURCE.replace(', "WARPS": [4, 8]', "")
    assert forward(with_dispatch(source, {(9, 4): {"BLOCK": 128}}), 400, 8) == (128, 4)


def test_block_is_taken_out_without_a_trace() -> None:
    text = with_dispatch(SOURCE, TABLE)
    assert without_dispatch(text) == SOURCE
    assert without_dispatch(text + "x = 1\n") == SOURCE + "x = 1\n"
    assert without_dispatch(SOURCE) == SOURCE


def test_equal_values_need_no_block() -> None:
    assert with_dispatch(SOURCE, {(9, 4): {"BLOCK": 64, "WARPS": 4}}) == SOURCE


def test_lints_have_nothing_against_it() -> None:
    assert lint(with_dispatch(SOURCE, TABLE), None, "") == lint(SOURCE, None, "")


def test_constants_of_kernels_are_not_dispatched() -> None:
    assert can_dispatch(SOURCE, read_tunables(SOURCE))
    wrapped = SOURCE.replace("BLOCK = 64", "BLOCK: object = tl.constexpr(64)")
    assert not can_dispatch(wrapped, read_tunables(wrapped))


def test_malformed_shape_table_of_a_verdict_is_empty() -> None:
    tuned = {
        "values": {"BLOCK": 64},
        "by_shape": [{"shape": 3}, 5, {"shape": [1], "values": None}, {"shape": [[]], "values": {}}],
    }
    assert make_verdict(status=Status.PASSED, metadata={"tuned": tuned}).tuned_by_shape == {}
