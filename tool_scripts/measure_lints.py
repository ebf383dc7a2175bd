"""Measures the lints on recorded candidates: how many failures they stop, and what they stop wrongly.

``python -m tool_scripts.measure_lints TRACES [--triton VERSION] [--out FILE.json]``
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from adaexplore.core.errors import AdaExploreError, UsageError
from adaexplore.preflight.lints import lint
from adaexplore.preflight.triton_api import triton_api
from tool_scripts.judge_bench import candidates
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.measured import dated, quantiles

_WRONG_VALUES = "incorrect output"
_COMPILE = ("CompilationError", "UnsupportedLanguageConstruct")
_RESOURCES = "OutOfResources"
_NAMED = 20


@dataclass(frozen=True)
class Linted:
    """One candidate and the lints that found something."""

    candidate: Candidate
    rules: frozenset[str]
    seconds: float


def class_of(candidate: Candidate) -> str:
    """Its recorded outcome: ``correct``, or how it failed."""
    if candidate.correct:
        return "correct"
    if candidate.error.startswith(_WRONG_VALUES):
        return "wrong_values"
    if any(word in candidate.error for word in _COMPILE):
        return "compile_errors"
    return "out_of_resources" if _RESOURCES in candidate.error else "others"


def summary(linted: Sequence[Linted]) -> dict[str, Any]:
    """The figures: share of failures stopped, by denominator; precision; each lint's part."""
    by_class: dict[str, list[Linted]] = {}
    for each in linted:
        by_class.setdefault(class_of(each.candidate), []).append(each)
    failing = [each for each in linted if not each.candidate.correct]
    stopped = [each for each in linted if each.rules]
    right = [each for each in stopped if not each.candidate.correct]
    without_values = [each for each in failing if class_of(each.candidate) != "wrong_values"]
    return {
        "failing_stopped": _share(failing),
        "failing_without_wrong_values_stopped": _share(without_values),
        "compile_errors_stopped": _share(by_class.get("compile_errors", [])),
        "precision": {"count": len(stopped), "right": len(right), "share": _ratio(len(right), len(stopped))},
        "classes": {name: _share(group) for name, group in sorted(by_class.items())},
        "problems": {
            name: _share([each for each in failing if each.candidate.problem == name])
            for name in sorted({each.candidate.problem for each in linted})
        },
        "rules": {
            rule: {"failing": failing_count, "correct": _count(by_class.get("correct", []), rule)}
            for rule, failing_count in Counter(rule for each in failing for rule in each.rules).most_common()
        },
        "correct_but_stopped": [
            f"{each.candidate.id}: {', '.join(sorted(each.rules))}"
            for each in by_class.get("correct", [])
            if each.rules
        ][:_NAMED],
        "seconds": quantiles([each.seconds for each in linted]),
    }


def _share(group: Sequence[Linted]) -> dict[str, Any]:
    stopped = sum(bool(each.rules) for each in group)
    return {"count": len(group), "stopped": stopped, "share": _ratio(stopped, len(group))}


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _count(group: Sequence[Linted], rule: str) -> int:
    return sum(rule in each.rules for each in group)


def main(argv: list[str] | None = None) -> int:
    """Measure and print; exit code 0, or that of the error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("traces", type=Path, help="folder with recorded trajectories")
    parser.add_argument("--triton", help="version of the judge's Triton (default: the one installed)")
    parser.add_argument("--no-reference", action="store_true", help="lint without the problems")
    parser.add_argument(
        "--out", type=Path, help="write the figures with date, versions and command to this file"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING)
    try:
        api = triton_api(arguments.triton)
        if api is None:
            raise UsageError(f"no table for Triton {arguments.triton}")
        linted = []
        for each in tqdm(candidates.read(arguments.traces), disable=None):
            begin = time.perf_counter()
            found = lint(each.source, api, None if arguments.no_reference else each.reference)
            seconds = time.perf_counter() - begin
            linted.append(Linted(each, frozenset(finding.rule for finding in found), seconds))
    except AdaExploreError as error:
        logging.error("%s", error)
        return error.exit_code
    figures = {"triton": api.version, **summary(linted)}
    if arguments.out is not None:
        options = " --no-reference" * arguments.no_reference
        figures = dated(f"python -m tool_scripts.measure_lints TRACES{options}") | figures
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
