from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.core.usage import Usage
from adaexplore.llm.pricing import model_table, price_of, usd


def test_million_tokens_cost_the_list_price() -> None:
    cost = usd("gpt-5-mini", Usage(2_000_000, 1_000_000, 1_000_000))
    assert cost == pytest.approx(0.25 + 0.025 + 2.0)


@pytest.mark.parametrize(
    ("snapshot", "model"),
    [
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
    ],
)
def test_snapshot_costs_what_its_model_costs(snapshot: str, model: str) -> None:
    assert price_of(snapshot) == model_table().models[model]


def test_snapshot_with_a_price_of_its_own() -> None:
    assert price_of("gpt-4o-2024-05-13") != price_of("gpt-4o-2024-08-06")


@pytest.mark.parametrize(
    "name", ["", "qwen3-coder", "gpt-5-mini-turbo", "gpt-4o-audio-preview", "gpt-50", "o3-pro"]
)
def test_unknown_name_has_no_price(name: str) -> None:
    assert price_of(name) is None
    assert usd(name, Usage(1, 0, 1)) is None


def test_cached_input_never_costs_more_than_fresh_input() -> None:
    assert all(0 < price.cached <= price.input < price.output for price in model_table().models.values())


def test_flex_halves_price_and_unknown_tier_has_none() -> None:
    counts = Usage(1_000_000)
    assert usd("gpt-5", counts, tier="flex") == pytest.approx(1.25 / 2)
    assert usd("gpt-5", counts, tier="default") == pytest.approx(1.25)
    assert usd("gpt-5", counts, tier="priority") is None


def test_users_edit_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adaexplore.llm.pricing.MODELS", str(tmp_path / "models.yaml"))
    for text, message in (
        ("models: {mine: {input: 1, cached: 1}}", r"models\.mine\.output: Field required; correct the file"),
        ("model: {}", "model: Extra inputs are not permitted"),
        ("models: [", "models.yaml: .*; correct the file or restore it"),
    ):
        (tmp_path / "models.yaml").write_text(text)
        model_table.cache_clear()
        with pytest.raises(ConfigError, match=message):
            price_of("mine")
    (tmp_path / "models.yaml").write_text("models: {mine: {input: 1, cached: 0, output: 2, context: 9}}")
    model_table.cache_clear()
    found = price_of("mine")
    (tmp_path / "models.yaml").unlink()
    model_table.cache_clear()
    unknown = price_of("gpt-5")
    model_table.cache_clear()
    assert found is not None
    assert (found.output, found.context) == (2.0, 9)
    assert unknown is None


@pytest.mark.parametrize(("model", "extra"), [("claude-sonnet-4-6", 0.25 * 3.0), ("gpt-5-mini", 0.0)])
def test_cache_writes_cost_extra_for_some_models(model: str, extra: float) -> None:
    counts = Usage(2_000_000)
    plain = usd(model, counts)
    written = usd(model, replace(counts, cache_write_tokens=1_000_000))
    assert plain is not None
    assert written == pytest.approx(plain + extra)
