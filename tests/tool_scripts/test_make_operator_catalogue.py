from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

from tool_scripts.make_operator_catalogue import Found, described, holds, ruled


def found(name: str, arity: int = 1) -> Found:
    return Found(name, getattr(torch, name), f"torch.{name}", f"aten::{name}", arity)


@pytest.mark.parametrize(
    ("name", "needs", "gives"),
    [
        ("exp", "bounded", ["positive"]),
        ("log", "positive", ["bounded"]),
        ("logit", "unit", []),
        ("floor", "exact", ["bounded"]),
        ("sin", "", ["open", "bounded"]),
        ("neg", "", ["keeps"]),
    ],
)
def test_probes_tell_where_an_operator_is_defined_and_what_it_gives(
    name: str, needs: str, gives: list[str]
) -> None:
    entry = described(found(name))
    assert entry is not None
    assert (entry.needs, entry.gives, entry.call) == (needs, gives, f"torch.{name}(x)")


@pytest.mark.parametrize(
    ("name", "arity"), [("cumsum", 1), ("isnan", 1), ("t", 1), ("dot", 2), ("zeros_like", 1)]
)
def test_what_is_not_elementwise_is_left_out(name: str, arity: int) -> None:
    assert described(found(name, arity)) is None


def test_a_second_operand_has_the_range_that_the_first_needs() -> None:
    entry = described(found("xlogy", 2))
    assert entry is not None
    assert entry.operands == {"x": "*", "y": "* : positive"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": "N o H W+1"}, "its rule"),
        ({"call": "layer(x, x)"}, "fails on"),
        ({"holds": "int"}, "float32"),
        ({"where": ["H>100"]}, "no shapes fit"),
        ({"signature": ""}, "has no torch.nn.Conv2d"),
    ],
)
def test_a_rule_that_torch_contradicts_is_left_out_and_named(
    change: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    entry = next(entry for entry in ruled() if entry.name == "conv2d_pointwise")
    assert entry.signature.startswith("torch.nn.Conv2d(in_channels")
    assert holds(entry)
    with caplog.at_level(logging.WARNING):
        assert not holds(entry.model_copy(update=change))
    assert caplog.records[-1].getMessage().startswith("conv2d_pointwise: ")
    assert words in caplog.text
