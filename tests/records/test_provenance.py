from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from adaexplore.judge_client.protocol import JudgeIdentity, Sandbox
from adaexplore.records import provenance as module
from adaexplore.records.provenance import provenance

CPU = JudgeIdentity("cpu", "CPU", {"triton": "3"})


def test_seed_versions_revision_and_judge_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    monkeypatch.setattr(module, "REPOSITORY_ROOT", tmp_path)
    made = provenance(7, CPU.to_record())
    assert made["seed"] == 7
    assert re.fullmatch("[0-9a-f]{40}", made["git_revision"])
    assert made["packages"]["pydantic"]
    assert made["judge"] == {"device": "cpu", "hardware": "CPU", "versions": {"triton": "3"}}


def test_reported_sandbox_is_recorded() -> None:
    judge = JudgeIdentity("cpu", "CPU", {}, Sandbox(("memory",), ("network",)))
    assert provenance(7, judge.to_record())["judge"]["sandbox"] == {
        "in_force": ("memory",),
        "missing": ("network",),
        "level": "",
        "evaluator": "",
    }


def test_installed_copy_ignores_surrounding_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    installed = tmp_path / "site-packages"
    installed.mkdir()
    monkeypatch.setattr(module, "REPOSITORY_ROOT", installed)
    assert provenance(0, CPU.to_record())["git_revision"] is None
