"""Reports of compilations and profiles, and answers about sources that are too large to be judged."""

from __future__ import annotations

import re
from typing import Literal

from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, JobKind, ProfileReport
from online_judge.checks.facts.findings import Failure
from online_judge.common import printable, texts
from online_judge.protocol.result import ProfileResult
from online_judge.verdict.endings import explain

_MAX_BYTES = 1500
_MAX_KERNELS = 64
_TOO_LARGE = "SourceTooLarge"
_SHORTER = "Make the source shorter; compute tables of numbers instead of writing them out."
_KERNEL = re.compile(r"[A-Za-z_]\w{0,119}(-\d{1,4})?")
_PLACE = re.compile(r"\s*at (\d{1,6}):\d{1,6}:\n(.*?)^ *\^ *$", re.DOTALL | re.MULTILINE)
_HEAD = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+([^\W\d]\w*)", re.MULTILINE)


def asm_of(claim: object) -> dict[str, str]:
    """Read the PTX by kernel that a compile process sent; what cannot be one is left out."""
    told = claim.items() if isinstance(claim, dict) else ()
    return {
        name: printable.text(text)
        for name, text in list(told)[:_MAX_KERNELS]
        if _KERNEL.fullmatch(name) and isinstance(text, str)
    }


def compiled(
    failure: Failure | None, source: str, folder: str, asm: dict[str, str] | None = None
) -> CompileReport:
    """Report on ``source`` whose process, in ``folder``, had this failure, or none.

    Triton's messages begin with a place relative to the kernel's ``def`` and the text up to it; where that
    is found in the source, the line is the place itself, else the line that led there.
    """
    if failure is None:
        return CompileReport(ok=True, status=Status.PASSED, asm=asm)
    message = failure.message
    line = failure.frames[-1].line if failure.frames else None
    kernel = None
    place = _PLACE.match(message) if failure.status is Status.COMPILE else None
    if place is not None:
        kernel, line = _place(source, int(place[1]), place[2]) or (None, line)
    text = texts.clip(texts.scrub(message, folder).strip("\n"), _MAX_BYTES, keep_end=True)
    return CompileReport(
        ok=False, status=failure.status, kernel=kernel, line=line, message=text, error_name=failure.name
    )


def compilation_timed_out(limit_s: int, stage: Stage) -> CompileReport:
    return _not_compiled(Status.TIMEOUT, _late(limit_s, stage))


def compiler_gone(how: str, stage: Stage, *, out_of_memory: bool) -> CompileReport:
    """Return the report on a candidate that ended as ``how`` says after "the process ended"."""
    status = Status.OUT_OF_MEMORY if out_of_memory else Status.CRASH
    return _not_compiled(status, f"the process ended {how} during {stage.value}")


def profiled(result: ProfileResult, folder: str) -> ProfileReport:
    """Return the report on a candidate that was profiled, or that failed meanwhile."""
    explained = explain(result.ending, folder)
    message = explained.feedback
    if explained.status is Status.PASSED and result.profile is None:
        message = "the profiler does not work here, or saw nothing"
    return ProfileReport(status=explained.status, profile=result.profile, message=message)


def without_gpu() -> ProfileReport:
    return _not_profiled(Status.NOT_CHECKED, "profiles need a judge with a GPU")


def profile_timed_out(limit_s: int, stage: Stage) -> ProfileReport:
    return _not_profiled(Status.TIMEOUT, _late(limit_s, stage))


def profiled_process_gone(how: str) -> ProfileReport:
    """Return the report on a candidate that ended as ``how`` says after "the process ended"."""
    return _not_profiled(Status.CRASH, f"the process ended {how}")


def excess(whose: Literal["reference", "candidate"], source: str, limit: int) -> str | None:
    """Return why a source of more than ``limit`` bytes is refused; None for a smaller one."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size <= limit:
        return None
    return f"the {whose} has {size} bytes; this judge takes at most {limit} (MAX_SOURCE_BYTES)"


def too_large(
    kind: JobKind, why: str, *, hardware: str, device: str
) -> Verdict | CompileReport | ProfileReport:
    """Return the answer about a candidate that is refused, to a job of a ``kind``."""
    if kind == "compile":
        return _not_compiled(Status.LOAD, why, _TOO_LARGE)
    if kind == "profile":
        return _not_profiled(Status.LOAD, why)
    return Verdict(
        status=Status.LOAD,
        hardware=hardware,
        device=device,
        failure=FailureText(compilation_error_name=_TOO_LARGE, compilation_error=why),
        feedback=f"load: {why}\nNext: {_SHORTER}",
    )


def _not_compiled(status: Status, message: str, error_name: str = "") -> CompileReport:
    return CompileReport(ok=False, status=status, message=message, error_name=error_name)


def _not_profiled(status: Status, message: str) -> ProfileReport:
    return ProfileReport(status=status, profile=None, message=message)


def _late(limit_s: int, stage: Stage) -> str:
    return f"not done after {limit_s} s during {stage.value}"


def _place(source: str, number: int, excerpt: str) -> tuple[str, int] | None:
    """Return the function whose line ``number``, from its ``def``, ends the excerpt, and its line there."""
    lines = source.splitlines()
    shown = excerpt.rstrip("\n").rpartition("\n")[2].strip()
    for head in _HEAD.finditer(source):
        line = source.count("\n", 0, head.start()) + number
        if line <= len(lines) and lines[line - 1].strip() == shown:
            return head[1], line
    return None
