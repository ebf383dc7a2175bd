"""Running the corpus against a judge, and the report of it."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from pathlib import Path
from typing import Any

from tests.online_judge.live import LiveJudge

from .manifest import CASES, HONEST, ROW_OF
from .sources import Device, fixture, problem

REPORT = "ADVERSARIAL_REPORT"
"""Environment variable with the name of the JSON file that the results go to."""
PLANTED = "adversarial_helper.py"
FIELDS: dict[Device, dict[str, Any]] = {
    "cpu": {"num_correct_trials": 3, "num_perf_trials": 20, "timeout": 60},
    "gpu": {"num_correct_trials": 5, "num_perf_trials": 100, "timeout": 120},
}


class Trials:
    """One judge's answers to the corpus."""

    def __init__(self, judge: LiveJudge, device: Device) -> None:
        self._judge = judge
        self._device = device
        self._honest: dict[str, dict[str, Any]] = {}
        self._results: list[dict[str, Any]] = []

    def honest(self, name: str) -> dict[str, Any]:
        """Return the answer to the honest twin of a problem, asked once."""
        if name not in self._honest:
            self._honest[name] = self._ask(HONEST[name], name, {})
        return self._honest[name]

    def complaint(self, name: str) -> str:
        """Judge a fixture; return how its result differs from the expected one, or nothing."""
        case = CASES[name]
        expectation = case.cpu if self._device == "cpu" else case.gpu
        speedup = None
        if self._device == "gpu" and case.problem in HONEST:
            speedup = self.honest(case.problem)["runtime_stats"].get("fast_p")
        if case.prelude is not None:
            self._ask(case.prelude, case.problem, {})
        answer = self._ask(name, case.problem, dict(case.fields))
        wrong = expectation.complaint(answer, speedup)
        metadata = answer["metadata"]
        self._results.append(
            {
                "row": ROW_OF[name].number,
                "name": ROW_OF[name].name,
                "fixture": name,
                "device": self._device,
                "expected": expectation.kind,
                "flags_expected": sorted(expectation.flags | expectation.problem_flags),
                "status": metadata.get("status"),
                "flags": metadata.get("integrity", []),
                "problem_flags": metadata.get("problem_flags", []),
                "speedup": answer["runtime_stats"].get("fast_p"),
                "honest_speedup": speedup,
                "caught": None if expectation.kind == "unseen" else not wrong,
                "complaint": wrong or expectation.reason,
            }
        )
        return wrong

    def report(self) -> None:
        """Write the results down if somebody wants them."""
        file = os.environ.get(REPORT)
        if not file:
            return
        tried = [result for result in self._results if result["caught"] is not None]
        summary = {
            "device": self._device,
            "rows": len({result["row"] for result in tried}),
            "fixtures": len(tried),
            "caught": sum(result["caught"] for result in tried),
            "missed": [result["fixture"] for result in tried if not result["caught"]],
            "results": self._results,
        }
        Path(file).write_text(json.dumps(summary, indent=1) + "\n")

    def _ask(self, name: str, reference: str, fields: dict[str, Any]) -> dict[str, Any]:
        asked = {"measure_performance": True, "tf32": "off"} | FIELDS[self._device] | fields
        return self._judge.evaluate(fixture(name, self._device), problem(reference, self._device), **asked)


def sweep() -> None:
    """Remove files that fixtures may have planted outside of their folders."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    places = ("/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir())
    for place in (*map(Path, places), Path.home(), home, home / ".triton" / "cache", Path.cwd()):
        (place / PLANTED).unlink(missing_ok=True)
