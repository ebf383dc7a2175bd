"""Report a failed compilation at the lines of the candidate's own text."""

from __future__ import annotations

import re

from adaexplore.core.verdict import Status
from adaexplore.core.wire import CompileReport
from online_judge.common import printable, texts
from online_judge.protocol.findings import Failure, Stage

_MAX_BYTES = 1500
_MAX_KERNELS = 64
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
        return CompileReport(ok=True, status=Status.PASSED.value, asm=asm)
    message = failure.message
    line = failure.frames[-1].line if failure.frames else None
    kernel = None
    place = _PLACE.match(message) if failure.status is Status.COMPILE else None
    if place is not None:
        kernel, line = _place(source, int(place[1]), place[2]) or (None, line)
    text = texts.clip(texts.scrub(message, folder).strip("\n"), _MAX_BYTES, keep_end=True)
    return CompileReport(
        ok=False, status=failure.status.value, kernel=kernel, line=line, message=text, error_name=failure.name
    )


def timed_out(limit_s: int, stage: Stage) -> CompileReport:
    message = f"not done after {limit_s} s during {stage.value}"
    return CompileReport(ok=False, status=Status.TIMEOUT.value, message=message)


def process_gone(how: str, stage: Stage, *, out_of_memory: bool) -> CompileReport:
    """Return the report on a candidate that ended as ``how`` says after "the process ended"."""
    status = Status.OUT_OF_MEMORY if out_of_memory else Status.CRASH
    message = f"the process ended {how} during {stage.value}"
    return CompileReport(ok=False, status=status.value, message=message)


def _place(source: str, number: int, excerpt: str) -> tuple[str, int] | None:
    """Return the function whose line ``number``, from its ``def``, ends the excerpt, and its line there."""
    lines = source.splitlines()
    shown = excerpt.rstrip("\n").rpartition("\n")[2].strip()
    for head in _HEAD.finditer(source):
        line = source.count("\n", 0, head.start()) + number
        if line <= len(lines) and lines[line - 1].strip() == shown:
            return head[1], line
    return None
