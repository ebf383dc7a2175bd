"""Vendors: each value of ``server_type`` has one, and its declaration is what other parts read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.run.vendors import all_vendors, check_vendor, vendor_of, vendor_table
from adaexplore.settings.config import RunConfig, ServerType

ROOT = Path(__file__).parents[2]


def test_each_server_type_has_one_vendor() -> None:
    names = [name for vendor in all_vendors() for name in vendor.names]
    assert sorted(names) == sorted(get_args(ServerType))


def test_documented_table_is_the_declared_one() -> None:
    assert vendor_table() in (ROOT / "docs/models.md").read_text(encoding="utf-8")


def test_vendor_with_listed_prices_needs_a_key() -> None:
    assert {vendor.names[0] for vendor in all_vendors() if vendor.variables} == {
        vendor.names[0] for vendor in all_vendors() if vendor.cost == "listed"
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"server_type": "command"}, "command: missing"),
        ({"command": "cat"}, "command: is not used without server_type: command"),
        ({"replay_path": "r"}, "replay_path: is not used without server_type: replay"),
        ({"server_type": "replay"}, "replay_path: missing"),
        (
            {"server_type": "replay", "replay_path": "r", "memory_update": True},
            "memory_update: server_type 'replay' has no replies for rules",
        ),
        ({"server_type": "mailbox", "max_cost_usd": 1.0}, "max_cost_usd: a mailbox reports neither"),
        ({"server_type": "claude", "service_tier": "flex"}, "service_tier: server_type 'claude' has none"),
    ],
)
def test_settings_that_the_vendor_cannot_use_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_vendor(RunConfig.model_validate(values))


def test_every_problem_of_a_vendor_has_a_line() -> None:
    values = {"server_type": "command", "max_total_tokens": 1, "service_tier": "flex"}
    with pytest.raises(ConfigError) as caught:
        check_vendor(RunConfig.model_validate(values))
    assert len(str(caught.value).splitlines()) == 3


def test_usable_settings_pass_unchanged() -> None:
    config = RunConfig.model_validate({"server_type": "command", "command": "cat"})
    assert check_vendor(config) is config
    assert vendor_of("claude") is vendor_of("anthropic")
