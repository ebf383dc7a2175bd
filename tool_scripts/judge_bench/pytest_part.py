"""The parts that are tests: the catalogue of ways to cheat, killed processes, malformed requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from adaexplore.core.errors import UsageError
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.plan import Plan, log
from tool_scripts.judge_bench.records import TestRun
from tool_scripts.judge_bench.surroundings import ROOT

REPORT_VARIABLE = "ADVERSARIAL_REPORT"
PATHS: dict[tuple[str, str], tuple[str, ...]] = {
    ("catalogue", "cpu"): ("tests/adversarial",),
    ("catalogue", "cuda"): ("tests/gpu/test_adversarial.py",),
    ("recovery", "cpu"): ("tests/online_judge/test_recovery.py", "tests/online_judge/test_isolation.py"),
    ("malformed", "cpu"): ("tests/online_judge/test_v2_malformed.py",),
}


def run_tests(plan: Plan, ledger: Ledger) -> int:
    """Run the part's tests and keep how they ended.

    Raises:
        UsageError: the part has no tests for this device, or they are not in this checkout.
    """
    if ledger.of(TestRun)[-1:] and ledger.of(TestRun)[-1].exit_code == 0:
        return 0
    paths = PATHS.get((ledger.part, plan.device))
    if paths is None:
        raise UsageError(f"the part {ledger.part} has no tests for --device {plan.device}")
    missing = [path for path in paths if not (ROOT / path).exists()]
    if missing:
        raise UsageError(f"the part {ledger.part} needs {missing[0]}; run this from a full checkout")
    with tempfile.TemporaryDirectory(prefix="bench-judge-") as folder:
        report = Path(folder) / "report.json"
        output = plan.out / f"{plan.device}-{ledger.part}.txt"
        begin = time.monotonic()
        with output.open("wb") as out:
            exit_code = subprocess.call(
                [sys.executable, "-m", "pytest", *paths, "-p", "no:cacheprovider"],
                cwd=ROOT,
                env={**os.environ, REPORT_VARIABLE: str(report)},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        run = TestRun(
            paths=paths,
            exit_code=exit_code,
            last_line=lines[-1].strip("= ") if lines else "",
            seconds=time.monotonic() - begin,
            report=_entries(report),
        )
    log.info("%s: %s", ledger.part, run.last_line)
    ledger.add(run)
    return 0


def _entries(report: Path) -> tuple[dict[str, Any], ...] | None:
    try:
        found = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found = found.get("results") if isinstance(found, dict) else found
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else None
