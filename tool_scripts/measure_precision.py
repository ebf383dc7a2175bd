"""Measures which precision tier the judge gives to kernels whose precision is known.

``python -m tool_scripts.measure_precision [--rounds N] [--slots N] [--url URL] [--out FILE.json]``

Starts a judge and sends it the kernels of ``judge_bench/precision_corpus.py``, each several times, at tier
``tf32``. Kernels with TF32 operands must pass and those with bfloat16 operands must not; those with float16
operands are reported. Exit code 0 if so, 1 if not; the results are written in both cases.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
from tqdm import tqdm

from adaexplore.core.errors import AdaExploreError
from tool_scripts.judge_bench.precision_corpus import Entry, Variant, entries
from tool_scripts.judge_bench.service import running_judge
from tool_scripts.judge_bench.surroundings import session

_HTTP_S = 120.0
_WAIT_S = 60
_REQUEST: dict[str, Any] = {
    "seed_num": 42,
    "num_correct_trials": 5,
    "measure_performance": False,
    "backend": "triton",
    "tf32": "on",
    "tier": "tf32",
    "timeout": 300,
}

Outcome = Literal["passed", "imprecise", "failed", "unknown"]


@dataclass(frozen=True)
class Round:
    """One answer of the judge.

    Attributes:
        status: of the verdict; None where the judge gave none.
        tier: that the outputs reach; None where they were not graded.
        precision: errors and limits, as the judge reports them.
        flags: of the verdict.
        feedback: its first line.
        error: why there is no verdict.
        seconds: from the submission to the answer.
    """

    status: str | None
    tier: str | None = None
    precision: Any = None
    flags: tuple[str, ...] = ()
    feedback: str = ""
    error: str | None = None
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """``failed`` is a verdict that says nothing about precision."""
        if self.status is None:
            return "unknown"
        if self.status == "wrong_value":
            return "imprecise"
        return "passed" if self.status == "passed" else "failed"


@dataclass(frozen=True)
class Graded:
    """All rounds of one kernel."""

    entry: Entry
    rounds: tuple[Round, ...]

    def having(self, *outcomes: Outcome) -> int:
        """Return how many rounds had one of the outcomes."""
        return sum(each.outcome in outcomes for each in self.rounds)


def judge(client: httpx.Client, entry: Entry) -> Round:
    """Have a kernel judged anew."""
    begin = time.perf_counter()
    sources = {"original_model_src": entry.problem, "custom_model_src": entry.source}
    body = {"kind": "candidate", "request": _REQUEST | sources, "force": True}
    try:
        ticket = client.post("/v2/jobs", json=body).raise_for_status().json()
        while True:
            answer = client.get(f"/v2/jobs/{ticket['id']}", params={"wait": _WAIT_S}).raise_for_status()
            job = answer.json()
            if job["state"] not in ("queued", "running"):
                break
    except httpx.HTTPError as error:
        job = {"error": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - begin, 2)
    verdict = job.get("verdict")
    if not verdict:
        return Round(None, error=str(job.get("error") or f"job {job['state']}"), seconds=seconds)
    metadata = verdict["metadata"]
    return Round(
        status=verdict["status"],
        tier=metadata.get("tier"),
        precision=metadata.get("precision"),
        flags=tuple(metadata.get("integrity") or ()),
        feedback=str(metadata.get("feedback", "")).partition("\n")[0],
        seconds=seconds,
    )


def judge_all(client: httpx.Client, corpus: Sequence[Entry], rounds: int, slots: int) -> list[Graded]:
    """Have every kernel judged ``rounds`` times, ``slots`` at a time."""
    orders = [each for each in corpus for _ in range(rounds)]
    with ThreadPoolExecutor(slots) as threads:
        answers = threads.map(lambda entry: judge(client, entry), orders)
        shown = list(tqdm(answers, total=len(orders), disable=None))
    return [
        Graded(entry, tuple(shown[start : start + rounds]))
        for entry, start in zip(corpus, range(0, len(orders), rounds), strict=True)
    ]


def summary(graded: Sequence[Graded]) -> dict[str, Any]:
    """Return the figures; a target is met only if every verdict is about precision."""
    honest_rejected = _figure(graded, "tf32", ("imprecise", "failed"), target=0)
    bf16_passed = _figure(graded, "bf16", ("passed",), target=0)
    bf16_failed = _figure(graded, "bf16", ("failed",), target=0)
    not_judged = [each.entry.id for each in graded if each.having("unknown")]
    targets = (honest_rejected, bf16_passed, bf16_failed)
    return {
        "targets_met": not not_judged and not any(figure["kernels"] for figure in targets),
        "honest_rejected": honest_rejected,
        "bf16_passed": bf16_passed,
        "bf16_failed_otherwise": bf16_failed,
        "fp16_rejected": _figure(graded, "fp16", ("imprecise", "failed")),
        "not_judged": not_judged,
    }


def _figure(
    graded: Sequence[Graded], variant: Variant, outcomes: tuple[Outcome, ...], target: int | None = None
) -> dict[str, Any]:
    chosen = [each for each in graded if each.entry.variant == variant]
    which = {each.entry.id: each.having(*outcomes) for each in chosen if each.having(*outcomes)}
    return {"kernels": len(which), "of": len(chosen), "target": target, "rounds_by_kernel": which}


def _record(graded: Graded) -> dict[str, Any]:
    entry = graded.entry
    rounds = [asdict(each) | {"outcome": each.outcome} for each in graded.rounds]
    return {"name": entry.name, "variant": entry.variant, "rounds": rounds}


@contextlib.contextmanager
def _judge(url: str | None, slots: int, log: Path) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with running_judge("auto", slots, log) as own:
        yield own


def main(argv: list[str] | None = None) -> int:
    """Measure and write; exit code 0 if the targets are met, 1 if not, or that of an error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="verdicts of each kernel")
    parser.add_argument("--slots", type=int, default=4, help="evaluations at a time")
    parser.add_argument("--url", help="a judge that runs already (default: one is started)")
    parser.add_argument("--revision", help="of the measured sources (default: ask git)")
    parser.add_argument("--out", type=Path, default=Path("outputs/judge-precision.json"), help="results")
    words = sys.argv[1:] if argv is None else argv
    arguments = parser.parse_args(words)
    logging.basicConfig(level=logging.WARNING)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    log = arguments.out.with_suffix(".judge.log")
    device = "cuda" if shutil.which("nvidia-smi") else "cpu"
    command = shlex.join(["python", "-m", "tool_scripts.measure_precision", *words])
    try:
        facts = session(device, [], arguments.revision).model_dump() | {"command": command}
        with (
            _judge(arguments.url, arguments.slots, log) as url,
            httpx.Client(base_url=url, timeout=_HTTP_S, trust_env=False) as client,
        ):
            graded = judge_all(client, list(entries()), arguments.rounds, arguments.slots)
    except AdaExploreError as error:
        logging.error("%s", error)
        return error.exit_code
    figures = summary(graded)
    kept = {**facts, "rounds": arguments.rounds, "request": _REQUEST, "figures": figures}
    kept["kernels"] = [_record(each) for each in graded]
    arguments.out.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0 if figures["targets_met"] else 1


if __name__ == "__main__":
    sys.exit(main())
