"""``adaexplore run --dry-run``: estimate a run's requests, tokens, cost and time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from adaexplore.core.task import Task
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.pricing import model_table
from adaexplore.llm.vendors.replay_client import ReplayClient
from adaexplore.records.run_records import RunRecords
from adaexplore.report.text import count_of
from adaexplore.run.build import judge_facts
from adaexplore.run.estimate import REQUEST_S, Estimate, estimate
from adaexplore.run.memory import open_memory
from adaexplore.run.origin import Fork, to_take
from adaexplore.run.vendors import vendor_of
from adaexplore.settings.config import RunConfig
from adaexplore.settings.paths import locate
from adaexplore.tasks.seeds import load_seeds


def dry_run(config: RunConfig, tasks: Sequence[Task], folder: Path, fork: Fork | None) -> str:
    """Report requests, tokens, dollars and hours; ask no model and no judge, and write nothing.

    Steps recorded in ``folder``, and those that a fork copies, are not repeated.

    Raises:
        UsageError: the memory, the starting kernels, or the steps to copy cannot be read.
    """
    nobody = JudgeIdentity(device="cuda", hardware="the judge's GPU")
    memory = open_memory(_with_readable_memory(config), ReplayClient({}))
    free = _free(config, tasks, RunRecords(folder), fork)
    found = estimate(config, tasks, judge_facts(config, nobody), memory.rules(), free)
    steps = count_of(found.steps, "step") + (f" (besides {found.free} that ask none)" if found.free else "")
    lines = [
        f"{count_of(len(tasks), 'task')}, {steps}, "
        f"about {count_of(found.requests, 'request')} to {_server(config)}",
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


def _with_readable_memory(config: RunConfig) -> RunConfig:
    """Return ``config`` without an update of the memory, and without one that the run would create."""
    path = config.general_memory_path
    created = config.memory_update and path is not None and not locate(path).exists()
    changes = {"memory_update": False, "general_memory_path": None if created else path}
    return config.model_copy(update=changes)


def _free(
    config: RunConfig, tasks: Sequence[Task], records: RunRecords, fork: Fork | None
) -> Mapping[str, int]:
    """Count the steps of each task that ask no model: recorded ones, copied ones, starting kernels."""
    taken = to_take(records, config, tasks, fork)
    free = {key: len(seeds) for key, seeds in load_seeds(config, tasks).items()}
    for key, steps in [
        *((task.key, records.task(task.key, config.agent_type).step_count()) for task in tasks),
        *((taking.ours.folder.name, taking.steps) for taking in taken),
    ]:
        free[key] = max(free.get(key, 0), steps)
    return free


def _server(config: RunConfig) -> str:
    listed = vendor_of(config.server_type).cost == "listed"
    return f"{config.model_name} ({config.server_type})" if listed else config.server_type


def _cost(config: RunConfig, found: Estimate) -> str:
    match vendor_of(config.server_type).cost:
        case "nothing":
            return "nothing"
        case "unknown":
            return "unknown, and so are its tokens; only max_wall_s can limit this run"
        case "listed":
            prices = found.usd(config.model_name, config.service_tier)
            if prices is None:
                return "unknown, no list price is known; max_total_tokens can limit this run"
            least, most = prices
            return (
                f"${least:,.2f} without reasoning, at most ${most:,.2f} "
                f"(list prices of {model_table().as_of}, no prompt cached, repairs left out)"
            )


def _time(config: RunConfig, tasks: int, found: Estimate) -> str:
    if vendor_of(config.server_type).cost == "nothing":
        return "the judge's time"
    at_a_time = min(config.num_processes, tasks) * config.parallel_steps
    if config.max_concurrent_requests is not None:
        at_a_time = min(at_a_time, config.max_concurrent_requests)
    hours = found.requests * REQUEST_S / max(at_a_time, 1) / 3600
    told = f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
    return f"about {told}, at {REQUEST_S:.0f} s a request"


def _thousands(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1e6 else f"{tokens / 1e3:.0f} k"
