from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from adaexplore.core.errors import UsageError
from synthesis.catalogue import read_catalogue

FAMILIES = {
    "activation", "elementwise", "reduction", "normalisation", "softmax", "pooling", "convolution", "matrix",
    "attention", "indexing", "loss", "padding", "layout", "interpolation", "cumulative",
}  # fmt: skip


def test_catalogue_has_the_families_and_150_operators() -> None:
    catalogue = read_catalogue()
    assert len({entry.source for entry in catalogue.operators}) >= 150
    assert {entry.family for entry in catalogue.operators} >= FAMILIES
    assert all(entry.signature for entry in catalogue.operators)
    names = Counter(entry.name for entry in catalogue.operators)
    assert names.most_common(1)[0][1] == 1


def test_drawn_entries_differ_and_favour_common_operators() -> None:
    catalogue = read_catalogue()
    drawn = catalogue.draw(24, random.Random(3))
    assert len({entry.name for entry in drawn}) == 24
    many = Counter(entry.family for seed in range(100) for entry in catalogue.draw(24, random.Random(seed)))
    assert many["activation"] > many["special"]
    assert len(catalogue.draw(10_000, random.Random(0))) == len(catalogue.operators)


def test_operators_are_found_in_every_spelling() -> None:
    source = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x):
        y = F.silu(self.act(x)) + torch.exp(x)
        return y.masked_fill(x > 0, 0.0) @ x


def get_inputs():
    return [torch.logcumsumexp(torch.randn(3, 3), 0)]
"""
    assert read_catalogue().operators_in(source) == [
        "torch.Tensor.masked_fill",
        "torch.add",
        "torch.exp",
        "torch.matmul",
        "torch.nn.functional.gelu",
        "torch.nn.functional.silu",
    ]


def test_a_catalogue_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"torch": "2", "operators": [{"name": "x"}]}))
    with pytest.raises(UsageError, match="own"):
        read_catalogue(path)
