from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import ModelClient, ModelRequest
from adaexplore.llm.retry import RetryPolicy
from adaexplore.llm.vendors.vendor import Opening
from adaexplore.run import vendors
from adaexplore.settings.config import RunConfig
from tests.model_server import ModelServer

AT_ONCE = RetryPolicy(max_attempts=3, base_s=0.0)
KEY = "4f7a9c2e51d0"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as service:
        yield service


Connect = Callable[..., ModelClient]


def build_client(server_type: str, model: str, **options: Any) -> ModelClient:
    """Build the client of a configuration that is not checked; other options are those of an opening."""
    keys = {name: options.pop(name) for name in RunConfig.model_fields if name in options}
    config = {"server_type": server_type, "model_name": model, "temperature": None, **keys}
    policy = options.pop("retry_policy", None)
    return vendors.build_client(Opening(RunConfig.model_construct(**config), **options), policy)


@pytest.fixture(params=["openai", "azure", "anthropic"])
def connect(request: pytest.FixtureRequest, server: ModelServer) -> Connect:
    """Return a builder of clients of one API for the server, without waits between attempts."""
    return connector(request.param, server)


def connector(dialect: str, server: ModelServer) -> Connect:
    def build(model: str = "gpt-5-mini", **options: object) -> ModelClient:
        variable = {"openai": "OPENAI_API_KEY", "azure": "AZURE_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
        arguments: dict[str, object] = {
            "base_url": server.openai_url if dialect == "openai" else server.url,
            "environment": {variable[dialect]: KEY},
            "retry_policy": AT_ONCE,
            "timeout_s": 10.0,
        }
        return build_client(dialect, model, **{**arguments, **options})

    return build


def ask(prompt: str = "write a kernel") -> ModelRequest:
    return ModelRequest(prompt, Purpose.LARGE, "1_1/1/large")
