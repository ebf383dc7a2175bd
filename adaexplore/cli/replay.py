"""``adaexplore replay``: repeat a recorded run offline."""

import argparse
from pathlib import Path

from adaexplore.cli.run import carry_out
from adaexplore.core.errors import UsageError
from adaexplore.records.layout import CONFIG
from adaexplore.records.recorded import one_at_a_time, recorded_tasks
from adaexplore.records.run_records import RunRecords
from adaexplore.settings.load import load_config
from adaexplore.settings.paths import locate

_LIMITS = (
    "max_cost_usd",
    "max_total_tokens",
    "max_wall_s",
    "max_concurrent_requests",
    "requests_per_minute",
    "tokens_per_minute",
)
"""Keys for paid services; a replay uses none."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new run")


def run(args: argparse.Namespace) -> int:
    """Repeat the recorded search with the model's replies and the judge's verdicts from disk."""
    recorded = RunRecords.existing(args.run_dir)
    if args.out.resolve() == args.run_dir.resolve():
        raise UsageError(f"--out: {args.out} is the recorded run itself; choose another directory")
    settings = {
        "server_type": "replay",
        "replay_path": str(args.run_dir.resolve()),
        "save_path": str(args.out),
        "resume_from": None,
        "memory_update": False,
        **dict.fromkeys(_LIMITS),
    }
    config = load_config(args.run_dir / CONFIG, chosen=settings)
    memory = config.general_memory_path
    if memory is not None and not locate(memory).exists():  # the recorded tasks hold their rules
        config = config.model_copy(update={"general_memory_path": None})
    if config.parallel_steps > 1 or not one_at_a_time(recorded):
        raise UsageError(
            f"{args.run_dir} had several steps of a task in flight (parallel_steps), whose order differs "
            "each time; only runs with one step at a time can be replayed"
        )
    return carry_out(config, recorded_tasks(recorded, config.dtype_str, config.direction), replayed=recorded)
