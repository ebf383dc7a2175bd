"""Answers for sources that are too large to be judged."""

from __future__ import annotations

from typing import Literal

from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import CompileReport, ProfileReport

_NAME = "SourceTooLarge"
_SHORTER = "Make the source shorter; compute tables of numbers instead of writing them out."


def reason(whose: Literal["reference", "candidate"], source: str, limit: int) -> str | None:
    """Return why a source of more than ``limit`` bytes is refused; None for a smaller one."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size <= limit:
        return None
    return f"the {whose} has {size} bytes; this judge takes at most {limit} (MAX_SOURCE_BYTES)"


def verdict(why: str, *, hardware: str, device: str) -> Verdict:
    metadata = {
        "hardware": hardware,
        "device": device,
        "compilation_error_name": _NAME,
        "compilation_error": why,
        "feedback": f"load: {why}\nNext: {_SHORTER}",
    }
    return Verdict(status=Status.LOAD, metadata=metadata)


def compile_report(why: str) -> CompileReport:
    return CompileReport(ok=False, status=Status.LOAD.value, message=why, error_name=_NAME)


def profile_report(why: str) -> ProfileReport:
    return ProfileReport(status=Status.LOAD.value, profile=None, message=why)
