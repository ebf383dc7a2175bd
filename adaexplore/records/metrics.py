"""Convert verdicts to and from metrics files, including steps with nothing to judge."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaexplore.core import metrics
from adaexplore.core.draft import DraftOutcome
from adaexplore.core.plan import StepKind
from adaexplore.core.step import NO_KERNEL
from adaexplore.core.text.syntax import literal
from adaexplore.core.verdict import Verdict
from adaexplore.records import content

_REASONS: dict[DraftOutcome | StepKind, str] = {
    StepKind.DUMMY_ROOT: "this is the dummy root: there was no candidate to judge",
    **{outcome: why for outcome, (_, why) in NO_KERNEL.items()},
    DraftOutcome.WRITTEN: "there was nothing to judge",
    DraftOutcome.UNCHANGED: "the reply asked for no change to a kernel that was never judged",
    DraftOutcome.EDIT_FAILED: "the edits did not match a kernel that was never judged",
    DraftOutcome.LINT_STOPPED: "a lint found a mistake that is sure to fail",
    DraftOutcome.GATE_STOPPED: "the source does not compile",
    DraftOutcome.SEED: "there was nothing to judge in the starting kernel",
}
_TEXT = re.compile(
    r"\s*compiled=(True|False)\s+correctness=(True|False)\s+metadata=(\{.*\})"
    r"\s+runtime=(\S+)\s+runtime_stats=(\{.*\})\s*",
    re.DOTALL,
)


def to_metrics(verdict: Verdict | None, cause: DraftOutcome | StepKind) -> dict[str, Any]:
    """Return the object of ``_metrics.json``: compiled, correctness, metadata, runtime (ms), runtime_stats.

    Without a verdict, ``cause`` says why there was nothing to judge: the draft's outcome, or the dummy root.
    """
    if verdict is not None:
        return metrics.to_metrics(verdict)
    why = {"outcome": cause.value, "error": _REASONS[cause]}
    return {"compiled": False, "correctness": False, "metadata": why, "runtime": -1.0, "runtime_stats": {}}


def from_metrics(data: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict in the object of a metrics file; None if there was nothing to judge.

    Raises:
        KeyError, TypeError, ValueError: ``data`` is not of that shape.
    """
    metadata = data["metadata"]
    if "outcome" in metadata and "status" not in metadata:
        return None
    return metrics.from_metrics(data)


def to_text(metrics: Mapping[str, Any]) -> str:
    """Return the line of ``_metrics.txt``: Python literals in the release's field order."""
    names = ("compiled", "correctness", "metadata", "runtime", "runtime_stats")
    return " ".join(f"{name}={metrics[name]!r}" for name in names)


def from_text(text: str) -> dict[str, Any]:
    """Return the metrics object in the line of a ``_metrics.txt``.

    Raises:
        ValueError: the text is not such a line.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("it is not a line 'compiled=... correctness=... metadata=...'")
    compiled, correctness, metadata, runtime, stats = match.groups()
    try:
        return {
            "compiled": compiled == "True",
            "correctness": correctness == "True",
            "metadata": literal(metadata),
            "runtime": float(runtime),
            "runtime_stats": literal(stats),
        }
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"its metrics are not Python literals ({error})") from error


def read_metrics(path: Path) -> dict[str, Any]:
    """Read the metrics object in a ``_metrics.json`` or ``_metrics.txt``.

    Raises:
        RecordError: it is missing or damaged.
    """
    if path.suffix == ".json":
        return content.read_object(path)
    try:
        return from_text(content.read(path))
    except ValueError as error:
        raise content.damaged(path, str(error)) from error


def read_verdict(path: Path) -> Verdict | None:
    """Read the verdict in a metrics file; None if there was nothing to judge.

    Raises:
        RecordError: the file is missing or damaged.
    """
    try:
        return from_metrics(read_metrics(path))
    except (KeyError, TypeError, ValueError) as error:
        raise content.damaged(path, content.reason(error)) from error
