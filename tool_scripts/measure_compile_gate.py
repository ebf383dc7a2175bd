"""Measures the judge's compile gate on recorded candidates: what it stops, and in what time.

``python -m tool_scripts.measure_compile_gate TRACES [--sample N] [--url URL] [--json] [--out FILE.json]``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tqdm import tqdm

from adaexplore.core.errors import AdaExploreError
from tool_scripts.judge_bench import candidates
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.service import running_judge
from tool_scripts.measured import dated, quantiles

_HTTP_S = 120.0
_WAIT_S = 60
_MISSES = 20
_CLASSES = {
    "compile_errors": ("CompilationError", "UnsupportedLanguageConstruct"),
    "out_of_resources": ("OutOfResources",),
}


@dataclass(frozen=True)
class Gated:
    """One candidate's way through the gate.

    Attributes:
        candidate: with its recorded outcome.
        status: of the report; ``failed`` if the job failed.
        stopped: whether its report refuses it; what could not be checked goes on to the devices.
        end_to_end_s: from the request to the report, at the client.
        inside_s: of that, from the slot's start to the report, at the judge.
    """

    candidate: Candidate
    status: str
    stopped: bool
    end_to_end_s: float
    inside_s: float


def class_of(candidate: Candidate) -> str:
    """The recorded outcome: ``correct``, ``compile_errors``, ``out_of_resources`` or ``others``."""
    if candidate.correct:
        return "correct"
    for name, words in _CLASSES.items():
        if any(word in candidate.error for word in words):
            return name
    return "others"


def sample(found: Iterable[Candidate], count: int | None, seed: int) -> list[Candidate]:
    """Up to ``count`` candidates of each class, all without one."""
    by_class: dict[str, list[Candidate]] = {}
    for each in candidates.shuffled(found, seed, "compile gate"):
        by_class.setdefault(class_of(each), []).append(each)
    return [each for group in by_class.values() for each in group[:count]]


def gate(client: httpx.Client, candidate: Candidate) -> Gated:
    """Send one candidate through, alone."""
    request = {"original_model_src": candidate.reference, "custom_model_src": candidate.source}
    begin = time.perf_counter()
    ticket = client.post("/v2/jobs", json={"kind": "compile", "request": request}).raise_for_status().json()
    while True:
        url = f"/v2/jobs/{ticket['id']}"
        job = client.get(url, params={"wait": _WAIT_S}).raise_for_status().json()
        if job["state"] not in ("queued", "running"):
            break
    end_to_end_s = time.perf_counter() - begin
    status = job["report"]["status"] if job["report"] else "failed"
    stopped = status not in ("passed", "not_checked", "failed")
    return Gated(candidate, status, stopped, end_to_end_s, job["execution_time"] - job["queue_time"])


def summary(gated: list[Gated]) -> dict[str, Any]:
    """The figures, by recorded outcome."""
    by_class: dict[str, list[Gated]] = {}
    for each in gated:
        by_class.setdefault(class_of(each.candidate), []).append(each)
    return {
        "classes": {name: _figures(name, group) for name, group in sorted(by_class.items())},
        "end_to_end_s": quantiles([each.end_to_end_s for each in gated]),
        "inside_s": quantiles([each.inside_s for each in gated]),
    }


def _figures(name: str, group: list[Gated]) -> dict[str, Any]:
    stopped = sum(each.stopped for each in group)
    unexpected = [
        f"{each.candidate.id}: {each.status}" for each in group if each.stopped == (name == "correct")
    ]
    return {
        "count": len(group),
        "stopped": stopped,
        "share": stopped / len(group),
        "statuses": dict(Counter(each.status for each in group)),
        "seconds": quantiles([each.end_to_end_s for each in group]),
        "unexpected": unexpected[:_MISSES] if name in ("correct", "compile_errors") else [],
    }


@contextlib.contextmanager
def _judge(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory() as folder, running_judge("auto", 1, Path(folder) / "log") as own:
        yield own


def main(argv: list[str] | None = None) -> int:
    """Measure and print; exit code 0, or that of the error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", type=Path, help="folder with recorded trajectories")
    parser.add_argument("--sample", type=int, help="candidates of each recorded outcome (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--url", help="a judge that runs already (default: one is started)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--out", type=Path, help="write the figures with date, versions and command to this file"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING)
    try:
        chosen = sample(candidates.read(arguments.traces), arguments.sample, arguments.seed)
        with _judge(arguments.url) as url:
            before = os.getloadavg()[0]
            with httpx.Client(base_url=url, timeout=_HTTP_S, trust_env=False) as client:
                gate(client, chosen[0])  # the first one finds cold caches
                gated = [gate(client, each) for each in tqdm(chosen, disable=None)]
    except AdaExploreError as error:
        logging.error("%s", error)
        return error.exit_code
    load = {"before": before, "after": os.getloadavg()[0], "cores": os.cpu_count()}
    figures = summary(gated) | {"load": load}
    if arguments.out is not None:
        kept = dated("python -m tool_scripts.measure_compile_gate TRACES") | figures
        arguments.out.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(figures, indent=None if arguments.json else 2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
