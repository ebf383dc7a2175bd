"""What models cost and hold, from ``config/models.yaml``; costs are estimates, not bills."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.errors import ConfigError
from adaexplore.core.inputs import input_text
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import YamlProblem, parse_mapping

MODELS = "config/models.yaml"

_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$")
_STANDARD_TIERS = (None, "auto", "default", "standard")

Dollars = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    """US dollars per million tokens, standard service tier; ``context`` in tokens, None where unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Dollars
    cached: Dollars
    output: Dollars
    context: Annotated[int, Field(gt=0)] | None = None


class ModelTable(BaseModel):
    """The file; its comments say what each key means."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str = "an unknown date"
    tiers: dict[str, Dollars] = Field(default_factory=dict)
    cache_write: dict[str, Dollars] = Field(default_factory=dict)
    cache_breakpoints: tuple[str, ...] = ()
    models: dict[str, Model] = Field(default_factory=dict)


@cache
def model_table() -> ModelTable:
    """Return the table, empty where there is no file.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = locate(MODELS)
    if not path.is_file():
        return ModelTable()
    try:
        return ModelTable.model_validate(parse_mapping(input_text(path, "model table", ConfigError))[0])
    except YamlProblem as problem:
        raise ConfigError(f"{path}: {problem}; correct the file or restore it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where}: {first['msg']}; correct the file or restore it") from None


def price_of(model: str) -> Model | None:
    """The price of ``model`` or of the model that it is a dated snapshot of; None when unknown.

    Only dates and ``-latest`` are taken off a name, so ``gpt-5-mini-2025-08-07`` is priced as
    ``gpt-5-mini``, and a variant with a name of its own never as its namesake.
    """
    models = model_table().models
    return models.get(model) or models.get(_SNAPSHOT.sub("", model))


def takes_breakpoints(model: str) -> bool:
    """Return whether the model takes OpenAI's explicit cache breakpoints."""
    return model.startswith(model_table().cache_breakpoints)


def usd(
    model: str,
    *,
    input_tokens: int,
    cached_input_tokens: int,
    output_tokens: int,
    cache_write_tokens: int = 0,
    tier: str | None = None,
) -> float | None:
    """List price of one request in US dollars; None for a model or a tier without a known price.

    Args:
        model: the model's name, dated or not.
        input_tokens: all tokens of the prompt, the cached ones included.
        cached_input_tokens: those read from the service's cache.
        output_tokens: tokens written, reasoning included.
        cache_write_tokens: those of the input tokens that were written to the service's cache.
        tier: the service tier, None for the standard one.
    """
    table, price = model_table(), price_of(model)
    scale = 1.0 if tier in _STANDARD_TIERS else table.tiers.get(tier)
    if price is None or scale is None:
        return None
    write = next((rate for name, rate in table.cache_write.items() if model.startswith(name)), 1.0)
    fresh = input_tokens - cached_input_tokens + (write - 1.0) * cache_write_tokens
    dollars = fresh * price.input + cached_input_tokens * price.cached + output_tokens * price.output
    return scale * dollars / 1e6
