"""Measure which recorded candidates the lints or the judge's compile gate stop, and their time.

``python -m tool_scripts.measure_checks lints TRACES [--triton FILE] [--out FILE.json]``
``python -m tool_scripts.measure_checks gate TRACES [--sample N] [--out FILE.json]``
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from adaexplore.core.files.atomic import write_json
from adaexplore.core.judging.status import Status
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_names import read_triton
from tool_scripts.judge_bench import candidates
from tool_scripts.judge_bench.candidates import Candidate, grouped
from tool_scripts.judge_bench.figure import quantile, share
from tool_scripts.judge_bench.service import Client, running_judge, session
from tool_scripts.script import script, show

_CLASSES = {
    "compile_errors": ("CompilationError", "UnsupportedLanguageConstruct"),
    "out_of_resources": ("OutOfResources",),
}
_WRONG_VALUES = "incorrect output"
_NAMED = 20
_LIMIT_S = 600.0


@dataclass(frozen=True)
class Checked:
    """One candidate and the result of a check."""

    candidate: Candidate  # with its recorded outcome
    found: tuple[str, ...]  # the lints that found something, or the gate's status
    stopped: bool  # whether the check refuses it
    seconds: float  # duration at the client
    inside_s: float | None = None  # the part of it in the judge's slot, until the report; None for lints


def class_of(candidate: Candidate) -> str:
    """Return the recorded outcome: ``correct``, or how it failed."""
    if candidate.correct:
        return "correct"
    if candidate.error.startswith(_WRONG_VALUES):
        return "wrong_values"
    found = (name for name, words in _CLASSES.items() if any(word in candidate.error for word in words))
    return next(found, "others")


def sample(found: Iterable[Candidate], count: int | None, seed: int) -> list[Candidate]:
    """Return up to ``count`` candidates of each class, wrong values among the others; all without one."""
    ordered = candidates.shuffled(found, seed, "compile gate")
    by_class = grouped(ordered, lambda each: class_of(each).replace("wrong_values", "others"))
    return [each for group in by_class.values() for each in group[:count]]


def linted(options: argparse.Namespace) -> Iterator[Checked]:
    triton = None if options.triton is None else read_triton(options.triton)
    for each in tqdm(candidates.read(options.traces), disable=None):
        begin = time.perf_counter()
        findings = lint(each.source, triton, each.reference)
        seconds = time.perf_counter() - begin
        rules = tuple(sorted({finding.rule for finding in findings}))
        yield Checked(each, rules, bool(rules), seconds)


def gated(options: argparse.Namespace) -> Iterator[Checked]:
    """Send candidates through the compile gate, one at a time."""
    chosen = sample(candidates.read(options.traces), options.sample, seed=0)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_judge("auto", 1, Path(folder) / "log") as address,
        Client(address) as client,
    ):
        gate(client, chosen[0])  # caches are cold for the first one
        for each in tqdm(chosen, disable=None):
            yield gate(client, each)


def gate(client: Client, candidate: Candidate) -> Checked:
    request = {"original_model_src": candidate.reference, "custom_model_src": candidate.source}
    begin = time.perf_counter()
    job = client.finished({"kind": "compile", "request": request}, _LIMIT_S)
    seconds = time.perf_counter() - begin
    report = job.get("report")
    status = report["status"] if report else "failed"
    inside_s = job.get("execution_time", 0.0) - job.get("queue_time", 0.0)
    stopped = bool(report) and Status(status).is_fault  # a failed job stops nothing
    return Checked(candidate, (status,), stopped, seconds, inside_s)


def summary(checked: Sequence[Checked]) -> dict[str, Any]:
    """Return the figures: shares of stopped failures by denominator, precision, classes and problems."""
    by_class = grouped(checked, lambda each: class_of(each.candidate))
    failing = [each for each in checked if not each.candidate.correct]
    without_values = [each for each in failing if class_of(each.candidate) != "wrong_values"]
    stopped = [each for each in checked if each.stopped]
    right = [each for each in stopped if not each.candidate.correct]
    inside_s = [each.inside_s for each in checked if each.inside_s is not None]
    return {
        "failing_stopped": _share(failing),
        "failing_without_wrong_values_stopped": _share(without_values),
        "compile_errors_stopped": _share(by_class.get("compile_errors", [])),
        "precision": {"count": len(stopped), "right": len(right), "share": share(len(right), len(stopped))},
        "classes": {
            name: _share(group)
            | {
                "found": dict(Counter(name for each in group for name in each.found).most_common()),
                "seconds": _quantiles([each.seconds for each in group]),
            }
            for name, group in sorted(by_class.items())
        },
        "problems": {
            name: _share([each for each in failing if each.candidate.problem == name])
            for name in sorted({each.candidate.problem for each in checked})
        },
        "correct_but_stopped": _named(each for each in by_class.get("correct", []) if each.stopped),
        "compile_errors_missed": _named(e for e in by_class.get("compile_errors", []) if not e.stopped),
        "seconds": _quantiles([each.seconds for each in checked]),
        "inside_s": _quantiles(inside_s) if inside_s else None,
    }


def _share(group: Sequence[Checked]) -> dict[str, Any]:
    stopped = sum(each.stopped for each in group)
    return {"count": len(group), "stopped": stopped, "share": share(stopped, len(group))}


def _named(group: Iterable[Checked]) -> list[str]:
    return [f"{each.candidate.id}: {', '.join(each.found)}" for each in group][:_NAMED]


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p90": 0.9, "max": 1.0}
    return {name: round(quantile(seconds, at), 4) for name, at in shares.items()}


@script
def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("check", choices=("lints", "gate"))
    parser.add_argument("traces", type=Path, help="folder with recorded trajectories")
    parser.add_argument("--triton", type=Path, metavar="FILE", help="lints: judge_environment.json of a run")
    parser.add_argument("--sample", type=int, help="gate: candidates of each recorded outcome (default: all)")
    parser.add_argument("--out", type=Path, help="write the figures with date, versions and command to it")
    options = parser.parse_args(argv)
    before = os.getloadavg()[0]
    figures = summary(list(linted(options) if options.check == "lints" else gated(options)))
    figures["load"] = {"before": before, "after": os.getloadavg()[0], "cores": os.cpu_count()}
    if options.out is not None:
        now = session("cpu", [], None)
        command = f"python -m tool_scripts.measure_checks {options.check} TRACES"
        command += " --triton judge_environment.json" * (options.triton is not None)
        about: dict[str, Any] = {"command": command, "date": now.date, "revision": now.revision}
        about |= {"hardware": f"{now.hardware}; {now.machine}", "versions": now.versions}
        write_json(options.out, about | figures)
    show(figures)


if __name__ == "__main__":
    sys.exit(main())
