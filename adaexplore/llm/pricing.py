"""Prices and context sizes of models, from ``config/models.yaml``; costs are estimates, not bills."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.errors import ConfigError
from adaexplore.core.usage import Usage
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import read_model

MODELS = "config/models.yaml"

_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$")
_STANDARD_TIERS = (None, "auto", "default", "standard")

Dollars = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """US dollars per million tokens, standard service tier; ``context`` in tokens, None if unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Dollars
    cached: Dollars
    output: Dollars
    context: Annotated[int, Field(gt=0)] | None = None


class ModelTable(BaseModel):
    """The content of the file; its comments explain each key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str = "an unknown date"
    tiers: dict[str, Dollars] = Field(default_factory=dict)
    cache_write: dict[str, Dollars] = Field(default_factory=dict)
    cache_breakpoints: tuple[str, ...] = ()
    models: dict[str, Model] = Field(default_factory=dict)


@cache
def model_table() -> ModelTable:
    """Return the table; empty without a file.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = locate(MODELS)
    return read_model(path, "model table", ModelTable, ConfigError) if path.is_file() else ModelTable()


def price_of(model: str) -> Model | None:
    """Return the price of ``model``, or of the model whose dated snapshot it is; None if unknown.

    Only dates and ``-latest`` are removed from a name: ``gpt-5-mini-2025-08-07`` has the price of
    ``gpt-5-mini``; a variant with another name does not.
    """
    models = model_table().models
    return models.get(model) or models.get(_SNAPSHOT.sub("", model))


def takes_breakpoints(model: str) -> bool:
    return model.startswith(model_table().cache_breakpoints)


def usd(model: str, usage: Usage, tier: str | None = None) -> float | None:
    """Return the list price of the tokens of ``usage`` in US dollars; None if it is unknown.

    The model's name may be dated; ``tier`` is None for the standard service tier.
    """
    table, price = model_table(), price_of(model)
    scale = 1.0 if tier in _STANDARD_TIERS else table.tiers.get(tier)
    if price is None or scale is None:
        return None
    write = next((rate for name, rate in table.cache_write.items() if model.startswith(name)), 1.0)
    fresh = usage.input_tokens - usage.cached_input_tokens + (write - 1.0) * usage.cache_write_tokens
    cached = usage.cached_input_tokens * price.cached
    return scale * (fresh * price.input + cached + usage.output_tokens * price.output) / 1e6
