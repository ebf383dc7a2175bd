"""Write one JSON object with a run's figures and their provenance, for ``results/``.

    python -m tool_scripts.summarise_run RUN --command TEXT [--note TEXT] --out FILE.json

Figures are those of ``adaexplore stats``; this adds hardware, versions, settings, command and date,
and for each task the outcomes of its steps and the times of its best kernel.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from adaexplore.core.files.atomic import write_json
from adaexplore.records import layout
from adaexplore.records.run_records import RunRecords
from adaexplore.records.step_reader import StepSummary
from adaexplore.report.statistics import run_results, run_statistics
from adaexplore.report.task_result import TaskResult
from adaexplore.run.vendors import vendor_of
from adaexplore.settings.load import load_config
from tool_scripts.script import script

FORMAT = 1
"""Version of the object's shape."""
CONFIG_KEYS = (
    *("preset", "seed", "agent_type", "selection", "parallel_steps", "tune_s", "test_source", "dtype_str"),
    *("tolerance", "tf32", "tier", "baseline", "total_steps", "server_type", "model_name", "num_processes"),
    *("exploration_weight", "expand_exploration_ratio", "reward_alpha", "small_step_limit", "p_large"),
    *("pool_size", "pool_size_extra_max", "general_memory_path", "knowledge_1_threshold"),
)
"""Keys of the configuration that influence the figures; paths and addresses do not."""


def summarise(folder: Path, command: str, today: date, note: str | None = None) -> dict[str, Any]:
    """Summarise the run in ``folder``, which ``command`` made; ``note`` is a remark for readers.

    Raises:
        RecordError: ``folder`` is not a run, or a record in it is damaged.
        ConfigError: its configuration is damaged.
    """
    records = RunRecords.existing(folder)
    return {
        "format": FORMAT,
        "date": today.isoformat(),
        "command": command,
        "note": note,
        "environment": records.environment(),
        "config": _settings(folder) if records.config() is not None else None,
        "statistics": run_statistics(folder).model_dump(mode="json", exclude={"per_task"}),
        "tasks": [_task(each, records.task(each.key, None).summaries()) for each in run_results(folder)],
    }


@script
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="summarise_run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--command", required=True, metavar="TEXT", help="the command that made the run")
    parser.add_argument("--note", default=None, metavar="TEXT", help="a remark for readers")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.json", help="file to write")
    args = parser.parse_args(arguments)
    write_json(args.out, summarise(args.run, args.command, datetime.now(UTC).date(), args.note))


def _settings(folder: Path) -> dict[str, Any]:
    """Return the keys of ``CONFIG_KEYS``; the model's name only if a model was asked."""
    config = load_config(folder / layout.CONFIG).model_dump(mode="json")
    shown = {key: config[key] for key in CONFIG_KEYS}
    if vendor_of(shown["server_type"]).cost != "listed":
        del shown["model_name"]
    return shown


def _task(result: TaskResult, steps: Sequence[StepSummary]) -> dict[str, Any]:
    """Return one task's row; times are GPU milliseconds, None if nothing was timed.

    ``judged_steps`` counts steps whose kernel was sent to the judge; the others repeat a known kernel.
    """
    best = next((step.verdict for step in steps if step.step == result.best.step), None)
    timing = None if best is None else best.timing
    return {
        "task": result.key,
        "outcomes": dict(sorted(result.statuses.items(), key=lambda item: (-item[1], item[0]))),
        "judged_steps": sum(step.evaluated for step in steps),
        "first_correct_step": next((after.step for after in result.curve if after.correct), None),
        "best_step": result.best.step,
        "best_speedup": result.best.speedup,
        "runtime_ms": None if best is None else best.runtime_ms,
        "runtime_std_ms": None if timing is None else timing.std,
        "baseline_ms": None if timing is None else timing.baseline_ms,
        "failure": None if result.failure is None else result.failure.message,
    }


if __name__ == "__main__":
    sys.exit(main())
