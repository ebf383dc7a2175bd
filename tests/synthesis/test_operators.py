"""The installed torch confirms each operator of the catalogue."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from adaexplore.tasks.operators import Operator, written
from synthesis.catalogue import read_catalogue

ENTRIES = {entry.name: entry for entry in read_catalogue().operators}
PLAIN = [
    entry for entry in ENTRIES.values() if (entry.call, entry.operands) == (f"{entry.source}(x)", {"x": "*"})
]
NAMESPACE = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
RANGES = {"positive": (0.05, 2.0), "unit": (0.01, 0.99), "open": (-0.95, 0.95)}
DOMAINS = RANGES | {"positive": (0.05, 6.0)}
LIMITS = {"unit": (0.0, 1.0), "open": (-1.0, 1.0), "bounded": (-6.0, 6.0), "positive": (1e-3, float("inf"))}
SIZES = (2, 3, 4, 8, 12, 16, 32, 64)
DRAWS = 6


def complaint(entry: Operator) -> str:
    """Call an operator with drawn arguments; return how torch contradicts its rule, empty if it does not."""
    rng = random.Random(entry.name)
    rule = next(iter(entry.operands.values())).partition(":")[0]
    checked = 0
    for _ in range(4000):
        tokens = rule.replace("*", rng.choice(("A", "A B"))).split()
        shape = tuple(int(token) if token.isdecimal() else rng.choice(SIZES) for token in tokens)
        bound = entry.bind(shape, rng)
        if bound is None:
            continue
        try:
            result, wanted = call(entry, bound), entry.result(bound)
        except (AttributeError, RuntimeError, ValueError, TypeError, IndexError) as error:
            return f"fails on {shape}: {error}"
        if tuple(result.shape) != wanted:
            return f"gives {tuple(result.shape)} for {shape}, its rule {wanted}"
        if result.is_floating_point() != (entry.holds == "float"):
            return f"gives {result.dtype}"
        checked += 1
        if checked == DRAWS:
            return ""
    return "no shapes fit its rule"


def call(entry: Operator, bound: dict[str, Any]) -> Any:
    """Run an operator on drawn operands."""
    given: dict[str, Any] = {}
    for name in entry.operands:
        kind, limit = entry.content(name, bound)
        given[name] = drawn(kind, entry.shape_of(name, bound), limit)
    first = next(iter(given))
    if entry.needs in RANGES:
        given[first] = drawn(entry.needs, tuple(given[first].shape), 0)
    numbers = {name: repr(value) for name, value in bound.items() if name != "*"}
    spaces = {**NAMESPACE, **given}
    if entry.module:
        spaces["layer"] = eval(written(entry.module, numbers), dict(NAMESPACE))
    with torch.no_grad():
        return eval(written(entry.call, numbers), spaces)


def drawn(kind: str, shape: tuple[int, ...], limit: int) -> torch.Tensor:
    match kind:
        case "int":
            return torch.randint(0, limit, shape)
        case "bool":
            return torch.rand(shape) < 0.5
        case "sign":
            return torch.randint(0, 2, shape) * 2.0 - 1.0
    if kind not in RANGES:
        return torch.randn(shape)
    low, high = RANGES[kind]
    return torch.rand(shape) * (high - low) + low


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_torch_confirms_calls_and_shapes(entry: Operator) -> None:
    assert complaint(entry) == ""


@pytest.mark.parametrize("entry", PLAIN, ids=lambda entry: entry.name)
def test_torch_confirms_domain_and_range(entry: Operator) -> None:
    inputs = torch.linspace(*DOMAINS.get(entry.needs, (-6.0, 6.0)), 10_001)
    results = eval(entry.call, {"torch": torch, "x": inputs})
    assert torch.isfinite(results).all()
    assert torch.allclose(eval(entry.call, {"torch": torch, "x": inputs.flip(0)}), results.flip(0))
    for claim in entry.gives:
        low, high = LIMITS.get(claim, (-6.0, 6.0))
        assert low <= float(results.min()) <= float(results.max()) <= high


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": "N o H W+1"}, "its rule"),
        ({"call": "layer(x, x)"}, "fails on"),
        ({"call": "torch.no_such_name(x)"}, "fails on"),
        ({"holds": "int"}, "float32"),
        ({"where": ["H>100"]}, "no shapes fit"),
    ],
)
def test_wrong_rule_is_contradicted(change: dict[str, Any], words: str) -> None:
    assert words in complaint(ENTRIES["conv2d_pointwise"].model_copy(update=change))
