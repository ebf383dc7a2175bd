"""Check a whole set with a judge, possibly another one than the set was made with."""

import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high

from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.wire import DtypeName
from adaexplore.judge_client.protocol import Judge
from synthesis.catalogue import Catalogue
from synthesis.validation import Finding, examine

_FILE = re.compile(r"(\d+)\.py")


@dataclass(frozen=True)
class SetReport:
    tasks: int
    valid: int
    invalid: dict[str, str]  # reasons of the unusable ones, by file name
    duplicates: dict[str, str]  # files that compute the same as an earlier file
    operators: dict[str, int]  # number of problems with each operator
    elements: tuple[float, float, float]  # minimum, median and maximum of a problem
    call_ms: tuple[float, float, float]  # the same for one call of the reference, by the wall clock


def check_set(
    folder: Path,
    catalogue: Catalogue,
    judge: Judge,
    *,
    dtype: DtypeName,
    workers: int,
    progress: Callable[[str], object] = lambda _: None,
) -> SetReport:
    """Check every problem of ``folder`` with ``judge``; trivial answers need not fail with a margin.

    Raises:
        TaskError: there are no problems.
        JudgeError: the judge failed.
    """
    paths = sorted(
        (path for path in folder.glob("*.py") if _FILE.fullmatch(path.name)), key=lambda path: int(path.stem)
    )
    if not paths:
        raise TaskError(f"no problems in {folder}; name a folder that holds 1.py, 2.py, ...")
    # invalid UTF-8 is then invalid Python, and reported as such
    sources = {path.name: regular_bytes(path).decode("utf-8", "surrogateescape") for path in paths}

    def look(name: str) -> Finding:
        found = examine(judge, sources[name], dtype, margin=False)
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
    return min(numbers), median_high(numbers), max(numbers)
