"""``adaexplore run --dry-run``: what a run would ask for, without asking."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.core.task import Task
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.pricing import PRICES_AS_OF
from adaexplore.llm.replay_client import ReplayClient
from adaexplore.run.build import judge_facts
from adaexplore.run.estimate import FREE, REQUEST_S, Estimate, estimate
from adaexplore.run.memory import open_memory
from adaexplore.settings.config import RunConfig


def dry_run(config: RunConfig, tasks: Sequence[Task]) -> str:
    """A report of requests, tokens, dollars and hours; asks no model and no judge, and writes nothing.

    Raises:
        ConfigError: the memory cannot be read.
    """
    nobody = JudgeIdentity(device="cuda", hardware="the judge's GPU")
    memory = open_memory(config.model_copy(update={"memory_update": False}), ReplayClient({}))
    found = estimate(config, tasks, judge_facts(config, nobody), memory.rules())
    lines = [
        f"{len(tasks)} tasks, {found.steps} steps, about {found.requests} requests to {_server(config)}",
        f"tokens: {_thousands(found.input_tokens)} read, {_thousands(found.least_output_tokens)} written "
        f"without reasoning, at most {_thousands(found.most_output_tokens)}",
        f"cost: {_cost(config, found)}",
        f"time: {_time(config, len(tasks), found)}",
    ]
    limits = [
        f"{name} {getattr(config, name):g}"
        for name in ("max_cost_usd", "max_total_tokens", "max_wall_s")
        if getattr(config, name) is not None
    ]
    lines.append(f"limits: {', '.join(limits) or 'none (max_cost_usd, max_total_tokens, max_wall_s)'}")
    return "\n".join(lines)


def _server(config: RunConfig) -> str:
    if config.server_type in FREE or config.server_type == "command":
        return config.server_type
    return f"{config.model_name} ({config.server_type})"


def _cost(config: RunConfig, found: Estimate) -> str:
    if config.server_type in FREE:
        return "nothing"
    prices = found.usd(config.model_name)
    if config.server_type == "command" or prices is None:
        return "unknown, no list price is known; max_total_tokens limits a run all the same"
    least, most = prices
    return (
        f"${least:,.2f} without reasoning, at most ${most:,.2f} "
        f"(list prices of {PRICES_AS_OF}, no prompt cached, repairs left out)"
    )


def _time(config: RunConfig, tasks: int, found: Estimate) -> str:
    if config.server_type in FREE:
        return "what the judge takes"
    at_a_time = min(config.num_processes, tasks) * config.parallel_steps
    if config.max_concurrent_requests is not None:
        at_a_time = min(at_a_time, config.max_concurrent_requests)
    hours = found.requests * REQUEST_S / max(at_a_time, 1) / 3600
    told = f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
    return f"about {told}, at {REQUEST_S:.0f} s a request"


def _thousands(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1e6 else f"{tokens / 1e3:.0f} k"
