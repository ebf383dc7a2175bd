"""Modules as users bring them, run end to end on the CPU with the offline writer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.records.run_records import RunRecords

pytestmark = pytest.mark.slow
MODULES = sorted((Path(__file__).parent / "own_modules").glob("*.py"))
LEAST_WITH_KERNELS = 3


def test_own_modules_get_correct_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELBENCH_ROOT", raising=False)
    (tmp_path / "level1").mkdir()
    for number, path in enumerate(MODULES, 1):
        shutil.copy(path, tmp_path / "level1" / f"{number}_{path.name}")
    (tmp_path / "tasks.txt").write_text("1\n")
    run = tmp_path / "run"
    settings = {
        "preset": "default",
        "problem_root": tmp_path,
        "test_list_path": tmp_path / "tasks.txt",
        "server_type": "offline",
        "judge_device": "cpu",
        "num_processes": 2,
        "total_steps": 2,
        "save_path": run,
    }
    flags = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    assert main(["run", *flags]) == 0
    best = {key: RunRecords(run).task(key).best() for key in RunRecords(run).tasks()}
    assert len(best) == len(MODULES)
    launching = set()
    for key, kernel in best.items():
        assert kernel is not None
        assert kernel.verdict is not None
        assert kernel.verdict.correct, key
        if "no_own_kernel" not in {flag.id for flag in kernel.verdict.flags}:
            launching.add(key)
            assert "@triton.jit" in kernel.source
    assert len(launching) >= LEAST_WITH_KERNELS
