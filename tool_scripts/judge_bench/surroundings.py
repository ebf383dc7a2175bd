"""What the measurements are made on and with."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from adaexplore.core.errors import UsageError
from tool_scripts.judge_bench.records import Session

ROOT = Path(__file__).parents[2]
_PACKAGES = ("torch", "triton")
_LIMIT_S = 20.0


def session(device: str, command: Sequence[str], revision: str | None) -> Session:
    """The facts of now.

    Raises:
        UsageError: ``device`` is ``cuda`` and there is no GPU.
    """
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    hardware, driver = _gpu() if device == "cuda" else (_cpu(), None)
    return Session(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["python", "tool_scripts/bench_judge.py", *command]),
        revision=revision or _revision(),
        hardware=hardware,
        driver=driver,
        machine=f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPU cores",
        versions=versions,
    )


def _gpu() -> tuple[str, str]:
    text = _output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if not text:
        raise UsageError("--device cuda, but nvidia-smi shows no GPU; use --device cpu")
    name, _, driver = text.splitlines()[0].partition(",")
    return name.strip(), driver.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _revision() -> str:
    return _output(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]) or "unknown"


def _output(command: list[str]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
