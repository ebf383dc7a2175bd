"""Defaults, presets and checks of the configuration model."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from adaexplore.settings.config import DEFAULT_PRESET, RunConfig
from tests.documented_tables import key_table

ROOT = Path(__file__).resolve().parents[2]


def test_no_preset_means_paper_with_code_defaults() -> None:
    config = RunConfig()
    assert config.preset == "paper"
    assert (config.total_steps, config.num_processes, config.memory_update) == (25, 8, False)
    assert (config.exploration_weight, config.expand_exploration_ratio, config.reward_alpha) == (0.25, 1, 1)
    assert (config.small_step_limit, config.p_large) == (2, 0.25)
    assert (config.pool_size, config.pool_size_extra_max) == (5, 3)
    assert (config.softmax_temperature, config.geometric_p) == (1, 0.5)
    assert (config.max_memory_round, config.knowledge_1_threshold) == (5, 3)
    assert (config.disable_reviewer, config.force_reviser) == (False, False)
    assert (config.temperature, config.max_completion_tokens) == (1.0, 16384)
    assert (config.tf32, config.tier, config.baseline) == ("paper", "legacy", "eager")


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_paper_tolerance_is_the_same_for_every_dtype(dtype: str) -> None:
    assert RunConfig.model_validate({"dtype_str": dtype}).tolerance == 5e-2


@pytest.mark.parametrize(
    ("values", "tier"),
    [
        ({}, "legacy"),
        ({"dtype_str": "fp16"}, "legacy"),
        ({"tier": "auto"}, "tf32"),
        ({"preset": "default"}, "strict"),
        ({"preset": "default", "tf32": "on"}, "tf32"),
        ({"preset": "default", "tf32": "paper"}, "tf32"),
        ({"preset": "default", "dtype_str": "fp16"}, "half"),
        ({"preset": "default", "dtype_str": "bf16", "tf32": "on"}, "half"),
        ({"preset": "default", "tier": "legacy"}, "legacy"),
        ({"tier": "strict", "dtype_str": "bf16"}, "strict"),
    ],
)
def test_auto_tier_follows_the_runs_precision(values: dict[str, str], tier: str) -> None:
    assert RunConfig.model_validate(values).tier == tier


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_default_and_null_tolerance_are_the_papers(preset: str) -> None:
    assert RunConfig.model_validate({"preset": preset}).tolerance == 5e-2
    assert RunConfig.model_validate({"preset": preset, "tolerance": None}).tolerance == 5e-2


def test_default_preset_fills_only_absent_keys() -> None:
    config = RunConfig(preset="default", p_large=0.9, tolerance=0.5, tf32="paper")
    assert (config.p_large, config.tolerance, config.tf32) == (0.9, 0.5, "paper")
    rest = {key: value for key, value in DEFAULT_PRESET.items() if key not in ("p_large", "tf32", "tier")}
    assert {key: getattr(config, key) for key in rest} == rest


def test_default_preset_searches_with_the_level_2_values() -> None:
    config = RunConfig(preset="default")
    assert (config.total_steps, config.exploration_weight, config.expand_exploration_ratio) == (50, 0.3, 1.0)
    assert (config.reward_alpha, config.small_step_limit, config.p_large) == (0.0, 2, 0.2)
    assert (config.pool_size, config.pool_size_extra_max, config.geometric_p) == (5, 0, 0.6)
    assert config.tf32 == "off"


def test_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        RunConfig().seed = 1  # type: ignore[misc]


@pytest.mark.parametrize("source", ["FIT", "MLSYS", "TBG", "TBT"])
def test_other_benchmarks_keep_their_own_dtypes(source: str) -> None:
    assert RunConfig.model_validate({"test_source": source}).dtype_str == "native"
    with pytest.raises(ValidationError, match=f"dtype_str: {source} names its own dtypes"):
        RunConfig.model_validate({"test_source": source, "dtype_str": "fp16"})
    with pytest.raises(ValidationError, match=f"direction: {source} has no gradients"):
        RunConfig.model_validate({"test_source": source, "direction": "both"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_processes": 3, "gpu_ids": [0, 1]}, "3 is not a multiple of the 2 gpu_ids"),
        ({"gpu_ids": [0, 0]}, "names a GPU twice"),
        ({"gpu_models": ["H100", "h100"]}, "names a model twice"),
        ({"gpu_models": ["H100"], "gpu_ids": [0]}, "gpu_models: leave out gpu_ids"),
        ({"memory_update": True, "general_memory_path": None}, "general_memory_path: missing"),
        ({"use_remote_eval": True, "remote_eval_url": "localhost:12017"}, "starts with http://"),
        ({"use_remote_eval": True, "remote_eval_url": "http://."}, "starts with http://"),
        ({"use_remote_eval": True, "remote_eval_url": "http://" + "a" * 70_000}, "starts with http://"),
        ({"use_remote_eval": True, "remote_eval_url": "http://here:port"}, "starts with http://"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RunConfig.model_validate(values)


def test_several_gpus_take_a_multiple_of_processes() -> None:
    config = RunConfig.model_validate({"num_processes": 4, "gpu_ids": [1, 0]})
    assert config.gpu_ids == (1, 0)


def test_documentation_holds_the_table_of_all_keys() -> None:
    table = key_table()
    for key in RunConfig.model_fields:
        assert f"| `{key}` |" in table
    assert table in (ROOT / "docs/configuration.md").read_text(encoding="utf-8"), (
        "docs/configuration.md is out of date; CONTRIBUTING.md says how to write its table anew"
    )


def test_every_key_description_fits_a_table_cell() -> None:
    for key, field in RunConfig.model_fields.items():
        assert field.description, key
        assert "|" not in field.description, key
