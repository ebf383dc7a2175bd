"""The type of a vendor: who answers the requests of a ``server_type``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelClient
from adaexplore.llm.retry import RetryPolicy
from adaexplore.settings.config import RunConfig, ServerType


@dataclass(frozen=True)
class RecordedReply:
    """One reply of an earlier run.

    Attributes:
        finish: how the reply ended.
        prompt: the prompt; None if not recorded, and then it is not compared.
        usage: the cost to report for the reply.
    """

    purpose: Purpose
    text: str
    finish: Finish = Finish.COMPLETE
    prompt: str | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Opening:
    """The settings of a client, and what else one may need.

    Attributes:
        config: names the service and the model, with the parameters of requests.
        mailbox: the folder for ``mailbox`` if the configuration does not name one.
        run: the id of the run, which tells its prompts from those of other runs in the named folder.
        replies: recorded replies by request key, for ``replay``.
        timeout_s: seconds that one attempt may take.
        stop: set from outside to end waits between attempts, and a command, at once.
        environment: where keys are read.
    """

    config: RunConfig
    mailbox: Path | None = None
    run: str = ""
    replies: Mapping[str, RecordedReply] | None = None
    timeout_s: float = 600.0
    stop: threading.Event = field(default_factory=threading.Event)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


@dataclass(frozen=True)
class Vendor:
    """A model service, or a program that answers like one.

    Attributes:
        names: its values of ``server_type``.
        about: who answers, for docs/models.md.
        needs: what it needs, likewise.
        open: returns its client, which makes one attempt per request. Raises ConfigError if a setting is
            missing, and ModelRequestError without a key or an SDK.
        cost: whether ``config/models.yaml`` has its prices, it costs nothing, or tokens and cost are unknown.
        names_model: whether ``model_name`` is a name in ``config/models.yaml``, whose context limit holds.
        variables: environment variables that it needs, its key first.
        setting: a key of the configuration that it needs and no other vendor reads, and what that names.
        has_tiers: whether ``service_tier`` may be set.
        writes_backward: whether it answers prompts for backward passes.
        remembers: whether it answers requests for rules of the skill memory.
        retries: limits of the retries; None for those of a service.
    """

    names: tuple[ServerType, ...]
    about: str
    needs: str
    open: Callable[[Opening], ModelClient]
    cost: Literal["listed", "nothing", "unknown"]
    names_model: bool = False
    variables: tuple[str, ...] = ()
    setting: tuple[str, str] | None = None
    has_tiers: bool = False
    writes_backward: bool = True
    remembers: bool = True
    retries: RetryPolicy | None = None
