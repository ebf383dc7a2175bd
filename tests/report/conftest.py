"""A run directory made by hand, file by file, as the release writes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adaexplore.core.judging.flags import Flag, ProblemFlag
from tests.flags import flags_metadata

INTERPRETED = "interpreted"
WRONG = None


class Found(NamedTuple):
    """A candidate with what else the judge found."""

    speedup: float | str | None
    flags: dict[str, str] | None = None
    interval: tuple[float, float] | None = None
    problem_flags: tuple[str, ...] = ()


def _metrics(found: float | str | Found | None) -> dict[str, Any]:
    if isinstance(found, Found):
        metrics = _metrics(found.speedup)
        kernel = tuple(Flag(name, severity, "seen") for name, severity in (found.flags or {}).items())
        problem = tuple(ProblemFlag(name, "seen") for name in found.problem_flags)
        metrics["metadata"] |= flags_metadata(kernel, problem)
        if found.interval is not None:
            metrics["runtime_stats"] |= dict(zip(("ci_low", "ci_high"), found.interval, strict=True))
        return metrics
    stats: dict[str, Any] = {}
    if found == INTERPRETED:
        stats = {"fast_p": 1.0, "timing": "interpreter"}
    elif found is not WRONG:
        stats = {"mean": 2.0, "fast_p": found}
    return {
        "compiled": True,
        "correctness": found is not WRONG,
        "metadata": {} if found is not WRONG else {"max_difference": ["1.000000"]},
        "runtime": 2.0 if stats and found != INTERPRETED else -1.0,
        "runtime_stats": stats,
    }


def _write_task(
    run: Path,
    key: str,
    found: Sequence[float | str | Found | None],
    usage: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Write an MCTS folder with a root and a step for each of ``found``: a speedup, WRONG or INTERPRETED."""
    folder = run / key
    folder.mkdir(parents=True)
    (folder / "reference_src.py").write_text("")
    for step in range(len(found) + 1):
        log = {"node_id": step, "created_by": "large_step" if step else "dummy_root"}
        (folder / f"step_{step}_log.json").write_text(json.dumps(log))
        (folder / f"step_{step}_metrics.json").write_text(
            json.dumps(_metrics(found[step - 1] if step else WRONG))
        )
        if usage is not None and step:
            (folder / f"step_{step}_usage.json").write_text(json.dumps(usage[step - 1]))


@pytest.fixture
def metrics() -> Callable[..., dict[str, Any]]:
    return _metrics


@pytest.fixture
def write_task() -> Callable[..., None]:
    return _write_task


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Five tasks: 20x after a wrong step, 0.5x at once, 1.2x, one never correct, one not run."""
    folder = tmp_path / "run"
    _write_task(folder, "2_2", [WRONG, 4.0, 20.0, 20.0])
    _write_task(folder, "2_10", [0.5, WRONG, 0.25])
    _write_task(folder, "3_1", [1.1, 1.2])
    _write_task(folder, "2_3", [WRONG, WRONG])
    (folder / "3_2").mkdir()
    (folder / "3_2" / "task_failure.json").write_text(
        '{"error_type": "ProblemError", "message": "too large"}'
    )
    return folder


@pytest.fixture
def flagged_run(tmp_path: Path) -> Path:
    """Write a run: suspect 8x over clean 2x, clean 3x with a note, one only suspect, two flagged problems."""
    folder = tmp_path / "flagged"
    trivial = ("degenerate_problem", "constant_inputs")
    decoy = {"decoy_kernel": "suspect", "launch_bound": "note"}
    _write_task(folder, "2_1", [2.0, Found(8.0, decoy, (7.8, 8.3)), WRONG])
    _write_task(folder, "2_2", [Found(3.0, {"launch_bound": "note"}, (2.9, 3.1))])
    _write_task(folder, "2_3", [Found(5.0, {"no_own_kernel": "suspect", "decoy_kernel": "suspect"})])
    _write_task(folder, "2_4", [Found(900.0, problem_flags=trivial)])
    _write_task(folder, "2_5", [Found(1.5, problem_flags=("constant_inputs",))])
    return folder


@pytest.fixture
def flagged_run_of_before(flagged_run: Path) -> Path:
    """``flagged_run`` as older judges described it: flags of the problem among those of the kernel."""
    folder = flagged_run.with_name("before")
    shutil.copytree(flagged_run, folder)
    severities = {"degenerate_problem": "suspect", "constant_inputs": "note"}
    for path in folder.rglob("step_*_metrics.json"):
        metrics = json.loads(path.read_text())
        metadata = metrics["metadata"]
        names = metadata.pop("problem_flags", [])
        told = metadata.pop("problem_flags_evidence", [])
        metadata["integrity"] = [*names, *metadata.get("integrity", [])]
        metadata["integrity_evidence"] = [
            *({**entry, "severity": severities[entry["id"]]} for entry in told),
            *metadata.get("integrity_evidence", []),
        ]
        path.write_text(json.dumps(metrics))
    return folder
