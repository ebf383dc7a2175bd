"""``adaexplore baseline``: time the references themselves and record the times for a GPU."""

from __future__ import annotations

import argparse
import json
import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from adaexplore.cli.options import add_config, overrides
from adaexplore.cli.output import progress, show
from adaexplore.core.errors import ProblemError, UsageError
from adaexplore.core.files import write_json
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.protocol import Judge
from adaexplore.run.build import open_judge
from adaexplore.settings.environment import read_environment
from adaexplore.settings.load import load_config
from adaexplore.tasks.sources import load_tasks

logger = logging.getLogger(__name__)

FILE_NAME = "baseline_time_torch.json"
_KEPT = ("mean", "median", "std", "min", "max", "p10", "p90", "num_trials", "hardware", "device")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_config(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("results/timing"), help="folder of records (default: results/timing)"
    )


def run(args: argparse.Namespace) -> int:
    """Have every reference judged as its own candidate; prints the path of the record."""
    config = load_config(args.config, overrides(args)).model_copy(update={"baseline": "eager"})
    tasks = load_tasks(config, read_environment(os.environ))
    failed = 0
    with (
        tempfile.TemporaryDirectory(prefix="adaexplore-baseline-") as folder,
        open_judge(config, Path(folder) / "judge.log", threading.Event(), force=True) as access,
    ):
        if access.identity.device != "cuda":
            raise UsageError(f"baselines need a GPU; the judge runs on {access.identity.hardware}")
        name = access.identity.hardware if config.gpu_name == "auto" else config.gpu_name
        path = args.out / name / FILE_NAME
        record = _read(path)
        with progress(len(tasks), "problem") as bar:
            for task in tasks:
                failed += not _recorded(task, access.of_worker(0), record)
                write_json(path, record)
                bar.update()
    show(f"Baselines: {path}")
    return ProblemError.exit_code if failed else 0


def _recorded(task: Task, judge: Judge, record: dict[str, Any]) -> bool:
    """Time one reference into ``record``; returns whether that was possible."""
    try:
        verdict = judge.evaluate(task, _itself(task))
    except ProblemError as problem:
        logger.error("%s", problem)
        return False
    if not verdict.correct:
        logger.error("%s: the reference does not pass itself: %s", task.path, verdict.status.value)
        return False
    record.setdefault(f"level{task.level}", {})[f"{task.name}.py"] = _times(verdict)
    return True


def _itself(task: Task) -> str:
    """The reference as a candidate."""
    return task.reference.rstrip("\n") + "\n\n\nclass ModelNew(Model):\n    pass\n"


def _times(verdict: Verdict) -> dict[str, Any]:
    return {key: verdict.runtime_stats[key] for key in _KEPT if key in verdict.runtime_stats}


def _read(path: Path) -> dict[str, Any]:
    """What is recorded so far; a run that was stopped goes on with it."""
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}); move it away") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path} holds no JSON object; move it away")
    return record
