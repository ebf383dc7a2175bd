"""The closer look of ``POST /v2/problem`` with ``thorough``."""

from __future__ import annotations

import pytest

from .live import LiveJudge

MODULE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()
        self.weight = nn.Parameter(torch.randn(16))

    def forward(self, x):
        return {result}


def get_inputs():
    return [{given}]


def get_init_inputs():
    return []
"""
GIVEN = "torch.randn(8, 16)"


def traits(judge: LiveJudge, result: str, given: str = GIVEN) -> dict[str, object]:
    source = MODULE.format(result=result, given=given)
    report = judge.post("/v2/problem", {"original_model_src": source, "thorough": True}).json()
    assert report["ok"], report["reason"]
    found: dict[str, object] = report["traits"]
    return found


@pytest.mark.parametrize(
    ("result", "given", "flag"),
    [
        ("torch.exp(x)", GIVEN, None),
        ("F.dropout(x, 0.5, training=True)", GIVEN, "stochastic"),
        ("x * 0.0 + 1.0", GIVEN, "degenerate_problem"),
        ("0.08 * torch.tanh(9.0 * x)", GIVEN, "nearly_degenerate"),
        ("torch.log(x)", GIVEN, "nonfinite"),
        ("x.t()", GIVEN, "view_of_input"),
        ("x.mul_(2.0).exp()", GIVEN, "writes_inputs"),
        ("torch.exp(x)", "torch.ones(8, 16).cumsum(0)", "constant_inputs"),
    ],
)
def test_thorough_look_flags_weak_problems(
    judge: LiveJudge, result: str, given: str, flag: str | None
) -> None:
    flags = traits(judge, result, given)["flags"]
    assert flags == [] if flag is None else flag in flags  # type: ignore[operator]


def test_graph_reflects_computation_not_source_text(judge: LiveJudge) -> None:
    first = traits(judge, "F.gelu(x + self.weight) * 2.0")
    assert traits(judge, "torch.mul(self.act(torch.add(x, self.weight)), 3.0)")["graph"] == first["graph"]
    others = ["F.gelu(x + x) * 2.0", "F.silu(x + self.weight) * 2.0", "x + F.gelu(self.weight) * 2.0"]
    graphs = {traits(judge, other)["graph"] for other in others}
    graphs.add(traits(judge, "F.gelu(x + self.weight) * 2.0", "torch.randn(9, 16)")["graph"])
    assert len(graphs | {first["graph"]}) == 5
    assert first["operators"] == ["add", "gelu", "mul"]
    assert first["elements"] == 8 * 16 + 16 + 8 * 16
    assert first["call_ms"] > 0  # type: ignore[operator]


def test_a_reference_that_fails_has_no_traits(judge: LiveJudge) -> None:
    source = MODULE.format(result="x @ x", given=GIVEN)
    report = judge.post("/v2/problem", {"original_model_src": source, "thorough": True}).json()
    assert (report["ok"], report["traits"]) == (False, None)
