"""Runs one of this package's child programs in a fresh interpreter with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.surroundings import ROOT

RESULT_FILE = "result.json"
STARTED_VARIABLE = "BENCH_STARTED_AT"
_DETAIL_CHARS = 300


@dataclass(frozen=True)
class ChildEnd:
    """How a child ended.

    Attributes:
        result: what it wrote down last; empty where it did not get that far.
        timed_out: whether its time was up.
        seconds: from its start to its end.
        detail: what it said last on stderr.
    """

    result: dict[str, Any]
    timed_out: bool
    seconds: float
    detail: str

    @property
    def outcome(self) -> str:
        """``timeout``, what the child found, or ``crash``."""
        return "timeout" if self.timed_out else str(self.result.get("outcome", "crash"))

    @property
    def reason(self) -> str:
        """Why it is no pass, in one line."""
        if self.outcome in ("passed", "timeout"):
            return ""
        return str(self.result.get("detail") or self.detail)


def run_child(
    module: str, candidate: Candidate, device: str, limit_s: float, environment: dict[str, str]
) -> ChildEnd:
    """Run ``python -m tool_scripts.judge_bench.<module>`` on a candidate; nothing of it is left.

    The child finds ``reference.py`` and ``candidate.py`` in its folder and leaves ``result.json`` there.
    """
    with tempfile.TemporaryDirectory(prefix="bench-judge-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "reference.py").write_text(candidate.reference, encoding="utf-8")
        (folder / "candidate.py").write_text(candidate.source, encoding="utf-8")
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        base = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        errors = folder / "stderr"
        with errors.open("wb") as stderr:
            begin = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", f"tool_scripts.judge_bench.{module}", "--device", device],
                cwd=folder,
                env=base | environment | {STARTED_VARIABLE: repr(time.time())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                process.wait(limit_s)
                timed_out = False
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                seconds = time.monotonic() - begin
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return ChildEnd(_result(folder / RESULT_FILE), timed_out, seconds, _last_line(errors))


def _result(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:_DETAIL_CHARS] if lines else ""
