"""The release's form of a verdict: compiled, correctness, metadata, runtime (ms) and runtime_stats.

Answers of judges and metrics files have this form. No other module knows its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from adaexplore.core.judging.flags import DEGENERATE, SUSPECT, Flag, ProblemFlag
from adaexplore.core.judging.parts import FailureText, RuntimeStats
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import INTERPRETER, Verdict

T = TypeVar("T", bound=BaseModel)

_RENAMED = {"speedup": "fast_p", "baseline_ms": "baseline_time", "use": "slot", "host": "witness"}
_OTHER_GPUS = "other_gpus"
_OF_FLAGS = ("integrity", "problem_flags")
_PROBLEM_FLAGS_OF_BEFORE = (DEGENERATE, "constant_inputs")


def _keys(cls: type[BaseModel], *apart: str) -> dict[str, str]:
    """Return the fields by their keys; those ``apart`` have another form."""
    return {_RENAMED.get(name, name): name for name in cls.model_fields if name not in apart}


_STATS = _keys(RuntimeStats, "runtime_ms", "unknown")
_FAILURE = _keys(FailureText)
_SAME = _keys(
    Verdict,
    *("status", "flags", "problem_flags", "failure", "unknown", _OTHER_GPUS, "timing", "interpreted"),
)


class JobVerdict(TypedDict):
    """The release's form with the typed status, in answers of protocol v2."""

    status: str
    compiled: bool
    correctness: bool
    metadata: dict[str, Any]
    runtime: float
    runtime_stats: dict[str, Any]


def to_metrics(verdict: Verdict) -> dict[str, Any]:
    """Return the five keys of ``step_k_metrics.json``, in the release's order; an infinite number is null."""
    metadata: dict[str, Any] = {"status": verdict.status}
    same = verdict.model_dump(include=set(_SAME), exclude_unset=True)
    for name in Verdict.model_fields:
        if name in same:
            metadata[name] = same[name]
        elif name == "flags" and not verdict.unknown.keys() & set(_OF_FLAGS):
            metadata |= _flag_keys(verdict.flags, verdict.problem_flags)
        elif name == "failure":
            metadata |= verdict.failure.model_dump(exclude_unset=True)
        elif name == "unknown":
            metadata |= verdict.unknown
        elif name == _OTHER_GPUS and verdict.other_gpus:
            metadata[name] = {model: to_metrics(each) for model, each in verdict.other_gpus.items()}
    metrics: dict[str, Any] = to_jsonable_python(
        {
            "compiled": verdict.compiled,
            "correctness": verdict.correct,
            "metadata": metadata,
            "runtime": -1.0 if verdict.runtime_ms is None else verdict.runtime_ms,
            "runtime_stats": _stats(verdict),
        },
        inf_nan_mode="null",
    )
    return metrics


def from_metrics(data: Mapping[str, Any]) -> Verdict:
    """Read a verdict from an answer of a judge or a metrics file, including those of the release.

    Values that have another form than this project's are kept as unknown.

    Raises:
        KeyError, TypeError, ValueError: ``data`` is not of that shape.
    """
    compiled, correct = bool(data["compiled"]), bool(data["correctness"])
    metadata = dict(data.get("metadata") or {})
    named = metadata.pop("status", None)
    status = Status(named) if named else _status_of_release(compiled, correct, metadata)
    others = dict(metadata.pop(_OTHER_GPUS, None) or {})
    given: dict[str, Any] = {_OTHER_GPUS: {model: from_metrics(told) for model, told in others.items()}}
    given |= _read_flags(metadata)
    given |= {"status": status, "failure": _read(FailureText, metadata, _FAILURE)}
    if status is Status.PASSED:
        given |= _read_times(float(data.get("runtime", -1.0)), dict(data.get("runtime_stats") or {}))
    verdict = _read(Verdict, metadata, _SAME, **given)
    return verdict.model_copy(update={"unknown": metadata})


def _stats(verdict: Verdict) -> dict[str, Any]:
    if verdict.timing is None:
        return {"fast_p": 1.0, "timing": INTERPRETER} if verdict.interpreted else {}
    given = verdict.timing.model_dump(exclude={"runtime_ms", "unknown"}, exclude_unset=True)
    return {_RENAMED.get(name, name): value for name, value in given.items()} | verdict.timing.unknown


def _read_times(runtime_ms: float, stats: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(stats.get("fast_p"), int | float | None):
        raise TypeError("fast_p is not a number")
    if stats.get("timing") == INTERPRETER:
        return {"interpreted": True}
    if runtime_ms <= 0 and not stats:
        return {}
    timing = _read(RuntimeStats, stats, _STATS, **({"runtime_ms": runtime_ms} if runtime_ms > 0 else {}))
    return {"timing": timing.model_copy(update={"unknown": stats})}


def _read(cls: type[T], data: dict[str, Any], names: Mapping[str, str], **given: Any) -> T:
    """Read ``names`` (field by key) out of ``data``; what has another form stays there."""
    mine = {name: data[key] for key, name in names.items() if key in data}
    try:
        found = cls.model_validate(given | mine)
    except ValidationError as error:
        odd = mine.keys() & {each["loc"][0] for each in error.errors() if each["loc"]}
        if not odd:
            raise
        return _read(cls, data, {key: name for key, name in names.items() if name not in odd}, **given)
    for key in names:
        data.pop(key, None)
    return found


def _read_flags(metadata: dict[str, Any]) -> dict[str, Any]:
    """Read the flags out of ``metadata``; their keys stay there if an older judge wrote them.

    Older judges list flags of the problem in ``integrity``, newer ones in ``problem_flags``. A kernel's flag
    without evidence counts as suspect.
    """
    kernel, problem = [], {}
    for key in _OF_FLAGS:
        ids, entries = (_list(metadata.get(name)) for name in (key, f"{key}_evidence"))
        told = {str(entry.get("id")): entry for entry in entries if isinstance(entry, dict)}
        for name in map(str, ids):
            entry = told.get(name, {})
            evidence = str(entry.get("evidence", ""))
            if key == "problem_flags" or name in _PROBLEM_FLAGS_OF_BEFORE:
                problem[name] = ProblemFlag(name, evidence)
            else:
                kernel.append(Flag(name, str(entry.get("severity", SUSPECT)), evidence))
    keys = {name for key in _OF_FLAGS for name in (key, f"{key}_evidence")} & metadata.keys()
    if _flag_keys(kernel, problem.values()) == {key: metadata[key] for key in keys}:
        for key in keys:
            del metadata[key]
    return {"flags": tuple(kernel), "problem_flags": tuple(problem.values())}


def _list(found: object) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else []


def _flag_keys(kernel: Iterable[Flag], problem: Iterable[ProblemFlag]) -> dict[str, Any]:
    listed = {"integrity": list(map(asdict, kernel)), "problem_flags": list(map(asdict, problem))}
    keys: dict[str, Any] = {}
    for name, told in listed.items():
        if told:
            keys |= {name: [each["id"] for each in told], f"{name}_evidence": told}
    return keys


def _status_of_release(compiled: bool, correct: bool, metadata: dict[str, Any]) -> Status:
    """Return the status of a verdict of the release, which states none."""
    if correct:
        return Status.PASSED
    if not compiled:
        return Status.LOAD
    if "max_difference" in metadata:
        return Status.WRONG_VALUE
    name = str(metadata.get("runtime_error_name", ""))
    if "correctness_issue_name" in metadata:
        return Status.WRONG_SHAPE
    if "CompilationError" in name or "UnsupportedLanguageConstruct" in name:
        return Status.COMPILE
    if "OutOfMemory" in name:
        return Status.OUT_OF_MEMORY
    return Status.LAUNCH
