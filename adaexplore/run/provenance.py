"""What a run was made with."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.settings.paths import REPOSITORY_ROOT

_PACKAGES = ("adaexplore", "anthropic", "httpx", "openai", "pydantic", "pyyaml", "torch", "triton")


def provenance(seed: int, judge: JudgeIdentity) -> dict[str, Any]:
    """Seed, package versions, git revision and judge of a run, for ``environment.json``."""
    told: dict[str, Any] = {
        "device": judge.device,
        "hardware": judge.hardware,
        "versions": dict(judge.versions),
    }
    if judge.sandbox is not None:
        told["sandbox"] = asdict(judge.sandbox)
    return {
        "seed": seed,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "git_revision": _revision(),
        "judge": told,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _revision() -> str | None:
    """The commit of the checkout this package runs from, with ``-dirty`` where files differ from it.

    None for an installed copy, which may well lie within another project's checkout.
    """
    if not (REPOSITORY_ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(REPOSITORY_ROOT), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
