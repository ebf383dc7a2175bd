"""All vendors: which one a configuration names, whether its settings suffice, and its client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import get_args

from adaexplore.core.errors import ConfigError
from adaexplore.core.files.declarations import declared
from adaexplore.llm.limits import limited
from adaexplore.llm.protocol import ModelClient
from adaexplore.llm.retry import Retry, RetryingClient, RetryPolicy
from adaexplore.llm.vendors.vendor import Opening, Vendor
from adaexplore.offline_writer.writer import VENDOR as OFFLINE_WRITER
from adaexplore.settings.config import RunConfig, ServerType


@cache
def all_vendors() -> tuple[Vendor, ...]:
    """Return the ``VENDOR`` of each module of ``llm.vendors`` that has one, and of the offline writer."""
    order: tuple[ServerType, ...] = get_args(ServerType)
    found = [*declared("adaexplore.llm.vendors", "VENDOR"), OFFLINE_WRITER]
    return tuple(sorted(found, key=lambda vendor: order.index(vendor.names[0])))


def vendor_of(server_type: ServerType) -> Vendor:
    return next(vendor for vendor in all_vendors() if server_type in vendor.names)


def vendor_table() -> str:
    """Return all vendors as a Markdown table, for docs/models.md."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in vendor.names)} | {vendor.about} | {vendor.needs} |"
        for vendor in all_vendors()
    ]
    return "\n".join(["| `server_type` | Who answers | Needs |", "|---|---|---|", *rows]) + "\n"


def check_vendor(config: RunConfig) -> RunConfig:
    """Return ``config`` if its vendor can use it.

    Raises:
        ConfigError: a line for every setting that is missing or that the vendor cannot use.
    """
    problems = list(_problems(config))
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def _problems(config: RunConfig) -> Iterator[str]:
    vendor, name = vendor_of(config.server_type), config.server_type
    for other in all_vendors():
        if other.setting is None:
            continue
        key, what = other.setting
        given = getattr(config, key) is not None
        if other is vendor and not given:
            yield f"{key}: missing, server_type '{name}' needs {what}"
        if other is not vendor and given and "server_type" not in config.model_fields_set:
            yield f"{key}: is not used without server_type: {other.names[0]}, add it"
    if vendor.cost == "unknown":
        for key in ("max_cost_usd", "max_total_tokens"):
            if getattr(config, key) is not None:
                yield f"{key}: a {name} reports neither tokens nor dollars, limit max_wall_s instead"
    if config.service_tier is not None and not vendor.has_tiers:
        yield f"service_tier: server_type '{name}' has none, leave it out"
    if config.memory_update and not vendor.remembers:
        yield f"memory_update: server_type '{name}' has no replies for rules, set it to false"


def build_client(opening: Opening, retry_policy: RetryPolicy | None = None) -> ModelClient:
    """Build the client that the configuration names, with its retries and rate limits.

    Each client has its own limits of the retries when ``retry_policy`` is None.

    Raises:
        ConfigError: a setting that ``server_type`` needs is missing.
        ModelRequestError: no key, or an SDK is not installed.
    """
    config, stop = opening.config, opening.stop
    vendor = vendor_of(config.server_type)
    client = limited(vendor.open(opening), config, stop)  # each attempt counts against the limits
    return RetryingClient(client, Retry(retry_policy or vendor.retries, stop=stop))
