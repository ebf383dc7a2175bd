"""Build the options of search, agent and prompts from a configuration."""

import threading
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from adaexplore.agent.agent import AgentOptions
from adaexplore.core.draft import RepairReason
from adaexplore.core.environment import Environment
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.core.usage import Usage
from adaexplore.judge_client.hardware import prompt_hardware
from adaexplore.judge_client.http import TIMED_RUNS, TRIALS
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.budget import Budget, BudgetedClient
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.pricing import price_of, usd
from adaexplore.llm.vendors.vendor import Opening, RecordedReply
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.run.vendors import build_client, vendor_of
from adaexplore.search.knobs import SearchKnobs
from adaexplore.settings.config import RunConfig

WARMUP_RUNS = 10
"""Minimum number of untimed runs before the timed ones, as in the judge."""


def judge_facts(
    config: RunConfig, identity: JudgeIdentity, environment: Environment | None = None
) -> JudgeFacts:
    name, architecture = prompt_hardware(
        config.gpu_name, config.gpu_architecture, identity, config.compile_target
    )
    return JudgeFacts(
        gpu_name=name,
        gpu_architecture=architecture,
        dtype=config.dtype_str,
        direction=config.direction,
        tf32=config.tf32,
        tolerance=config.tolerance,
        trials=TRIALS,
        timed_runs=TIMED_RUNS,
        warmup_runs=WARMUP_RUNS,
        tier=config.tier,
        shows_flags=config.preset != "paper",
        tunes=config.tune_s > 0 and identity.device == "cuda",
        environment=environment,
        omitted=frozenset(config.omit_facts),
    )


def agent_options(config: RunConfig) -> AgentOptions:
    paper = config.preset == "paper"
    return AgentOptions(
        reviewer=not config.disable_reviewer,
        force_review=config.force_reviser,
        worked_example=config.test_source == "KB",
        layout="paper" if paper else "shared",
        max_prompt_tokens=config.max_prompt_tokens or (0 if paper else _space(config)),
        repair_attempts=config.repair_attempts,
        repaired=_repaired(config),
    )


def _space(config: RunConfig) -> int:
    """Return the tokens that the model's context leaves for a prompt; 0 if unknown."""
    model = price_of(config.model_name) if vendor_of(config.server_type).names_model else None
    if model is None or model.context is None:
        return 0
    return max(model.context - config.max_completion_tokens, 1)


def _repaired(config: RunConfig) -> frozenset[RepairReason]:
    """Return the reasons to send a reply back: failed edits always, others if their check is enabled."""
    reasons = {RepairReason.EDIT}
    if config.preset != "paper":
        reasons |= {RepairReason.FORMAT, RepairReason.UNCHANGED, RepairReason.DUPLICATE}
    if config.preflight:
        reasons.add(RepairReason.LINT)
    if config.compile_gate:
        reasons.add(RepairReason.GATE)
    return frozenset(reasons)


def search_knobs(config: RunConfig) -> SearchKnobs:
    return SearchKnobs(**{knob.name: getattr(config, knob.name) for knob in fields(SearchKnobs)})


def open_model(
    config: RunConfig,
    replies: Mapping[str, RecordedReply] | None,
    stop: threading.Event,
    *,
    mailbox: Path | None = None,
    run: str = "",
    notes: JsonLines | None = None,
) -> MeteredClient:
    """Open the model that the configuration names, with its cost counted.

    Args:
        config: names the model, and limits of its service.
        replies: recorded replies by request key, for ``replay``.
        stop: set from outside to end waits.
        mailbox: the folder for ``mailbox`` if the configuration does not name one.
        run: the id of the run, for a mailbox that several runs use.
        notes: gets a line with the cost of each reply.

    Raises:
        ModelError: a key or a package is missing.
    """
    return MeteredClient(build_client(Opening(config, mailbox, run, replies, stop=stop)), notes)


def open_model_within_budget(config: RunConfig, stop: threading.Event) -> BudgetedClient:
    """Open the model for a command other than a run; its limits hold for this process.

    Raises:
        ModelError: a key or a package is missing.
        ConfigError: dollars are limited and the model's price is unknown.
    """
    client = open_model(config, None, stop)
    expected = Usage()
    if vendor_of(config.server_type).cost != "nothing":
        longest = Usage(output_tokens=config.max_completion_tokens)
        expected = replace(longest, usd=usd(config.model_name, longest, config.service_tier))
    return BudgetedClient(client, Budget(config, client, expected=expected), stop)
