"""Build a model client from settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from adaexplore.core.errors import ConfigError
from adaexplore.llm.limits import limited
from adaexplore.llm.pricing import takes_breakpoints
from adaexplore.llm.protocol import ModelClient
from adaexplore.llm.retry import Retry, RetryingClient, RetryPolicy
from adaexplore.llm.sampling import SamplingParameters
from adaexplore.llm.service import Service, ServiceClient, open_vendor
from adaexplore.llm.vendors.command_client import COMMAND_RETRIES, CommandClient
from adaexplore.llm.vendors.mailbox_client import MailboxClient
from adaexplore.llm.vendors.replay_client import RecordedReply, ReplayClient
from adaexplore.settings.config import RunConfig
from adaexplore.settings.paths import expanded


def build_client(
    config: RunConfig,
    *,
    mailbox: Path | None = None,
    run: str = "",
    replies: Mapping[str, RecordedReply] | None = None,
    timeout_s: float = 600.0,
    stop: threading.Event | None = None,
    retry_policy: RetryPolicy | None = None,
    environment: Mapping[str, str] | None = None,
) -> ModelClient:
    """Build the client of ``server_type``, except ``offline``, with its retries and rate limits.

    Args:
        config: names the service and the model, with the parameters of requests.
        mailbox: the folder for ``mailbox`` if the configuration does not name one.
        run: the id of the run, which tells its prompts from those of other runs in the named folder.
        replies: recorded replies by request key, for ``replay``.
        timeout_s: seconds that one attempt may take.
        stop: set from outside to end waits between attempts, and a command, at once.
        retry_policy: limits of the retries; each client has its own when None.
        environment: where keys are read; the process's environment when None.

    Raises:
        ConfigError: a setting that ``server_type`` needs is missing.
        ModelRequestError: no key, or an SDK is not installed.
    """
    stop = stop or threading.Event()
    environment = os.environ if environment is None else environment
    client = _one_attempt(config, mailbox, run, replies, timeout_s, stop, environment)
    policy = retry_policy or (COMMAND_RETRIES if config.server_type == "command" else None)
    # Each attempt counts against the limits.
    return RetryingClient(limited(client, config, stop), Retry(policy, stop=stop))


def _one_attempt(
    config: RunConfig,
    mailbox: Path | None,
    run: str,
    replies: Mapping[str, RecordedReply] | None,
    timeout_s: float,
    stop: threading.Event,
    environment: Mapping[str, str],
) -> ModelClient:
    """Build the client without retries and limits."""
    server_type, model_name, base_url = config.server_type, config.model_name, config.base_url
    effort = None if config.reasoning_effort is None else {"effort": config.reasoning_effort}
    match server_type:
        case "openai" | "azure":
            from adaexplore.llm.vendors import openai_client as openai

            api = config.openai_api
            if api == "auto":
                elsewhere = base_url or environment.get("OPENAI_BASE_URL")
                api = "chat" if elsewhere else "responses"
            responses = server_type == "openai" and api == "responses"
            explicit = {"mode": "explicit"} if responses and takes_breakpoints(model_name) else None
            body: dict[str, object] = {
                openai.CACHE_KEY: "one a task" if server_type == "openai" else None,
                openai.CACHE_OPTIONS: explicit,
                "temperature": config.temperature,
                "service_tier": config.service_tier,
                "reasoning": effort if responses else None,
                "reasoning_effort": None if responses else config.reasoning_effort,
                "max_output_tokens" if responses else "max_completion_tokens": config.max_completion_tokens,
            }
            service: Service
            if server_type == "azure":
                service = openai.open_azure(model_name, base_url, timeout_s, environment)
            else:
                advice = "set it, set base_url to a server that needs no key"
                sdk = open_vendor("openai", "OpenAI", base_url, timeout_s, environment, advice)
                kind = openai.ResponsesService if responses else openai.OpenAIService
                service = kind(sdk, model_name, "OPENAI_API_KEY")
        case "claude" | "anthropic":
            from adaexplore.llm.vendors.anthropic_client import CACHE_CONTROL, AnthropicService

            body = {CACHE_CONTROL: "ephemeral", "temperature": config.temperature, "output_config": effort}
            advice = "set it to a key of your Anthropic account"
            sdk = open_vendor("anthropic", "Anthropic", base_url, timeout_s, environment, advice)
            most = config.max_completion_tokens
            service = AnthropicService(sdk, model_name, max_tokens=most, timeout_s=timeout_s)
        case "command":
            if not config.command:
                raise ConfigError(
                    "server_type command needs command: a program that reads a prompt and writes a reply"
                )
            return CommandClient(config.command, timeout_s=timeout_s, stop=stop)
        case "mailbox":
            if config.mailbox_path is not None:
                folder = expanded(config.mailbox_path)
                return MailboxClient(folder, wait_s=config.mailbox_wait_s, run=run, stop=stop)
            if mailbox is None:
                raise ConfigError("server_type mailbox needs mailbox_path: a folder for prompts and answers")
            return MailboxClient(mailbox, wait_s=config.mailbox_wait_s, stop=stop)
        case "replay":
            if replies is None:
                raise ConfigError("server_type replay needs replay_path: the directory of a recorded run")
            return ReplayClient(replies)
        case "offline":
            raise ConfigError("server_type offline has no client; the offline writer answers")
    given = {name: value for name, value in body.items() if value is not None}
    sampling = SamplingParameters(model_name, given)
    return ServiceClient(service, model_name, sampling)
