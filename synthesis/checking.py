"""A whole set looked at again by a judge, another one than made it perhaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.wire import DtypeName
from adaexplore.judge_client.protocol import Judge
from synthesis.catalogue import Catalogue
from synthesis.validation import Finding, Limits, examine

_FILE = re.compile(r"(\d+)\.py")


@dataclass(frozen=True)
class SetReport:
    """What was found of a set.

    Attributes:
        tasks: its problems.
        valid: those that can be used.
        invalid: why the others cannot, by file name.
        duplicates: files that compute what one before them computes.
        operators: in how many problems each occurs.
        elements: least, median and most of a problem.
        call_ms: likewise, one call of the reference by the wall clock.
    """

    tasks: int
    valid: int
    invalid: dict[str, str]
    duplicates: dict[str, str]
    operators: dict[str, int]
    elements: tuple[float, float, float]
    call_ms: tuple[float, float, float]


def check_set(
    folder: Path,
    catalogue: Catalogue,
    judge: Judge,
    *,
    dtype: DtypeName,
    limits: Limits,
    workers: int,
    progress: Callable[[str], object] = lambda _: None,
) -> SetReport:
    """Have ``judge`` look at every problem of ``folder``.

    Raises:
        TaskError: there are none.
        JudgeError: the judge failed.
    """
    paths = sorted(
        (path for path in folder.glob("*.py") if _FILE.fullmatch(path.name)), key=lambda path: int(path.stem)
    )
    if not paths:
        raise TaskError(f"no problems in {folder}; name a folder that holds 1.py, 2.py, ...")
    # what is no UTF-8 is then no Python either, and reported as such
    sources = {path.name: path.read_text(encoding="utf-8", errors="surrogateescape") for path in paths}

    def look(name: str) -> Finding:
        found = examine(judge, sources[name], dtype, limits)
        progress(name)
        return found

    with ThreadPoolExecutor(workers) as pool:
        found = dict(zip(sources, pool.map(look, sources), strict=True))
    first: dict[str, str] = {}
    duplicates = {
        name: first[finding.graph]
        for name, finding in found.items()
        if finding.graph and first.setdefault(finding.graph, name) != name
    }
    used = Counter(operator for source in sources.values() for operator in catalogue.operators_in(source))
    invalid = {
        name: f"{finding.reason}: {finding.detail}" for name, finding in found.items() if finding.reason
    }
    return SetReport(
        tasks=len(sources),
        valid=len(sources) - len(invalid),
        invalid=invalid,
        duplicates=duplicates,
        operators=dict(sorted(used.items())),
        elements=_spread([finding.elements for finding in found.values()]),
        call_ms=_spread([finding.call_ms for finding in found.values()]),
    )


def _spread(numbers: list[int] | list[float]) -> tuple[float, float, float]:
    ordered = sorted(numbers)
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]
