"""Provenance of a run: seed, versions, revision, judge."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from adaexplore.settings.paths import REPOSITORY_ROOT

_PACKAGES = ("adaexplore", "anthropic", "httpx", "openai", "pydantic", "pyyaml", "torch", "triton")


def provenance(seed: int, judge: Mapping[str, Any]) -> dict[str, Any]:
    """Return seed, package versions, git revision and judge of a run, for ``environment.json``."""
    return {
        "seed": seed,
        "python": platform.python_version(),
        "packages": {name: installed_version(name) for name in _PACKAGES},
        "git_revision": _revision(),
        "judge": judge,
    }


def installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _revision() -> str | None:
    """Return the commit of this package's checkout, with ``-dirty`` if files differ from it.

    None for an installed copy, which may be inside another project's checkout.
    """
    if not (REPOSITORY_ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(REPOSITORY_ROOT), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
