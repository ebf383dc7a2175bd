"""From settings to a model client."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import assert_never

from adaexplore.core.errors import ConfigError
from adaexplore.llm.command_client import COMMAND_RETRIES, CommandClient
from adaexplore.llm.mailbox_client import MailboxClient
from adaexplore.llm.pricing import takes_breakpoints
from adaexplore.llm.protocol import ModelClient
from adaexplore.llm.replay_client import RecordedReply, ReplayClient
from adaexplore.llm.retry import Retry, RetryPolicy
from adaexplore.llm.sampling import SamplingParameters
from adaexplore.settings.config import OpenaiApi, ServerType


def build_client(
    server_type: ServerType,
    model_name: str,
    *,
    base_url: str | None = None,
    command: str | None = None,
    mailbox: Path | None = None,
    mailbox_wait_s: float = 0.0,
    replies: Mapping[str, RecordedReply] | None = None,
    temperature: float | None = None,
    reasoning_effort: str | None = None,
    service_tier: str | None = None,
    openai_api: OpenaiApi = "auto",
    max_completion_tokens: int = 16384,
    timeout_s: float = 600.0,
    seed: int = 0,
    stop: threading.Event | None = None,
    retry_policy: RetryPolicy | None = None,
    environment: Mapping[str, str] | None = None,
) -> ModelClient:
    """The client that ``server_type`` names; arguments that it does not use are ignored.

    Args:
        server_type: which client.
        model_name: the model, or on Azure the deployment.
        base_url: another server of the same dialect; the endpoint on Azure.
        command: the command line for ``command``.
        mailbox: the folder for ``mailbox``.
        mailbox_wait_s: seconds without an answer after which that gives up.
        replies: recorded replies by request key, for ``replay``.
        temperature: sampling temperature; None leaves it to the service.
        reasoning_effort: how much a reasoning model may think; None leaves it to the service.
        service_tier: OpenAI's service tier; None leaves it to the project.
        openai_api: which of OpenAI's APIs ``openai`` speaks.
        max_completion_tokens: upper bound of a reply's tokens.
        timeout_s: seconds that one attempt may take.
        seed: seeds the offline writer.
        stop: set from outside to end waits between attempts, and a command, at once.
        retry_policy: limits of the retries; each client has its own when None.
        environment: where keys are read; the process's environment when None.

    Raises:
        ConfigError: an argument that ``server_type`` needs is missing.
        ModelRequestError: no key, or an SDK is not installed.
    """
    environment = os.environ if environment is None else environment
    match server_type:
        case "openai" | "azure":
            from adaexplore.llm.openai_client import CACHE_KEY, CACHE_OPTIONS, open_azure, open_openai

            if openai_api == "auto":
                elsewhere = base_url or environment.get("OPENAI_BASE_URL")
                openai_api = "chat" if elsewhere else "responses"
            responses = server_type == "openai" and openai_api == "responses"
            effort = None if reasoning_effort is None else {"effort": reasoning_effort}
            body: dict[str, object] = {
                CACHE_KEY: "one a task" if server_type == "openai" else None,
                CACHE_OPTIONS: {"mode": "explicit"} if responses and takes_breakpoints(model_name) else None,
                "temperature": temperature,
                "service_tier": service_tier,
                "reasoning" if responses else "reasoning_effort": effort if responses else reasoning_effort,
                "max_output_tokens" if responses else "max_completion_tokens": max_completion_tokens,
            }
            open_client = open_azure if server_type == "azure" else partial(open_openai, responses=responses)
            return open_client(
                model_name,
                base_url=base_url,
                sampling=_sampling(model_name, body),
                retry=Retry(retry_policy, stop=stop),
                timeout_s=timeout_s,
                environment=environment,
            )
        case "claude" | "anthropic":
            from adaexplore.llm.anthropic_client import CACHE_CONTROL, open_anthropic

            effort = None if reasoning_effort is None else {"effort": reasoning_effort}
            body = {
                CACHE_CONTROL: "ephemeral",
                "temperature": temperature,
                "output_config": effort,
            }
            return open_anthropic(
                model_name,
                base_url=base_url,
                sampling=_sampling(model_name, body),
                max_tokens=max_completion_tokens,
                retry=Retry(retry_policy, stop=stop),
                timeout_s=timeout_s,
                environment=environment,
            )
        case "command":
            if not command:
                raise ConfigError(
                    "server_type command needs command: a program that reads a prompt and writes a reply"
                )
            return CommandClient(
                command,
                timeout_s=timeout_s,
                retry=Retry(retry_policy or COMMAND_RETRIES, stop=stop),
                stop=stop,
            )
        case "mailbox":
            if mailbox is None:
                raise ConfigError("server_type mailbox needs mailbox_path: a folder for prompts and answers")
            return MailboxClient(mailbox, wait_s=mailbox_wait_s, stop=stop)
        case "replay":
            if replies is None:
                raise ConfigError("server_type replay needs replay_path: the directory of a recorded run")
            return ReplayClient(replies)
        case "offline":
            from adaexplore.llm.offline import OfflineWriter

            return OfflineWriter(seed=seed)
        case _:
            assert_never(server_type)


def _sampling(model_name: str, body: Mapping[str, object]) -> SamplingParameters:
    return SamplingParameters(model_name, {name: value for name, value in body.items() if value is not None})
