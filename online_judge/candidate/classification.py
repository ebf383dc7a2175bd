"""From an exception to an outcome: by stage and type, along the chain of causes."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator

import torch
from triton.compiler.errors import CompilationError
from triton.runtime import errors as runtime_errors

from adaexplore.core.verdict import Status
from online_judge.common import cuda_driver
from online_judge.common.trees import UnsupportedTree
from online_judge.cpu import IllegalAccessError, NotCheckedError
from online_judge.protocol.findings import MAX_FRAMES, Failure, Frame, Stage

_COMPILE_ERRORS: tuple[type[BaseException], ...] = (CompilationError, runtime_errors.PTXASError)
_MEMORY_ERRORS: tuple[type[BaseException], ...] = (MemoryError, torch.OutOfMemoryError)
# torch and triton raise plain RuntimeErrors for these two; their fixed wording is all there is
_MEMORY_WORDS = ("Triton Error [CUDA]: out of memory", "DefaultCPUAllocator: can't allocate memory")
_COMPILER_FILES = ("triton/compiler/compiler.py", "triton/backends/nvidia/compiler.py")
# where Triton reads what a kernel refers to
_KERNEL_FILE, _KERNEL_READER = "triton/runtime/jit.py", "cache_key"


def describe(error: BaseException, stage: Stage, file: str, *, cuda: bool) -> Failure:
    """The failure that ``error``, caught in ``stage``, means.

    Args:
        error: what was raised.
        stage: what the candidate was doing.
        file: the candidate's path: frames elsewhere are left out.
        cuda: whether the GPU can be asked about illegal accesses.
    """
    status, deciding = _decide(error, stage, cuda=cuda)
    kind = type(deciding)
    return Failure(
        status=status,
        stage=stage,
        name=f"{kind.__module__}.{kind.__qualname__}",
        message=_told(error, deciding, file),
        frames=_frames(error, file),
    )


def _decide(error: BaseException, stage: Stage, *, cuda: bool) -> tuple[Status, BaseException]:
    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, NotCheckedError):
            return Status.NOT_CHECKED, cause
    if stage is Stage.LOAD:
        return Status.LOAD, error
    compile_errors = [cause for cause in causes if isinstance(cause, _COMPILE_ERRORS)]
    if compile_errors:
        return Status.COMPILE, compile_errors[-1]  # the innermost says what and where
    for cause in causes:
        if isinstance(cause, IllegalAccessError):
            return Status.ILLEGAL_ACCESS, cause
        if _is_memory_error(cause):
            return Status.OUT_OF_MEMORY, cause
        if isinstance(cause, UnsupportedTree):
            return Status.WRONG_SHAPE, cause
    if cuda and torch.cuda.is_initialized() and cuda_driver.has_illegal_access():
        return Status.ILLEGAL_ACCESS, error
    for cause in causes:
        if not isinstance(cause, runtime_errors.OutOfResources) and _raised_by_compiler(cause):
            return Status.COMPILE, cause
    return (Status.CONSTRUCT if stage is Stage.CONSTRUCT else Status.LAUNCH), error


def _is_memory_error(error: BaseException) -> bool:
    if isinstance(error, _MEMORY_ERRORS):
        return True
    return type(error) is RuntimeError and any(words in _message(error) for words in _MEMORY_WORDS)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it came from, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _raised_by_compiler(error: BaseException) -> bool:
    """Whether the error passed through Triton's ``compile`` (failed passes are plain RuntimeErrors).

    So are refusals of what a kernel refers to, before that.
    """
    return any(
        (frame.filename.endswith(_COMPILER_FILES) and not frame.name.startswith("_"))
        or (frame.filename.endswith(_KERNEL_FILE) and frame.name == _KERNEL_READER)
        for frame in traceback.extract_tb(error.__traceback__, limit=-50)
    )


def syntax_failure(error: SyntaxError | ValueError | MemoryError | RecursionError, source: str) -> Failure:
    """The failure of a candidate that is no Python, or that is nested too deeply for its parser."""
    text = getattr(error, "msg", None) or str(error) or "too deeply nested for Python's parser"
    frames: tuple[Frame, ...] = ()
    line = getattr(error, "lineno", None)
    if line:
        lines = source.splitlines()
        code = lines[line - 1] if line <= len(lines) else ""
        frames = (Frame(line, "<module>", code.strip()[:300]),)
    kind = type(error)
    return Failure(Status.SYNTAX, Stage.LOAD, f"{kind.__module__}.{kind.__qualname__}", text, frames)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the candidate's own exception class may do anything
        return ""


def _told(error: BaseException, deciding: BaseException, file: str) -> str:
    """The deciding error's text; a reason within Triton's library is told at the kernel's own line."""
    own = [cause for cause in _chain(error) if isinstance(cause, CompilationError) and _is_of(file, cause)]
    if not own or deciding is own[-1] or not isinstance(deciding, CompilationError):
        return _message(deciding)
    place, reason = _message(own[-1]), str(deciding.error_message or "")
    return place if reason in place else f"{place}\n{reason}"


def _is_of(file: str, error: CompilationError) -> bool:
    """Whether the kernel that the error points into stands in ``file``."""
    lines = {line.strip() for line in linecache.getlines(file)}
    return bool(error.src) and all(line.strip() in lines for line in error.src.splitlines())


def _frames(error: BaseException, file: str) -> tuple[Frame, ...]:
    own = [
        Frame(entry.lineno or 0, entry.name, (entry.line or "").strip())
        for cause in _chain(error)
        for entry in traceback.extract_tb(cause.__traceback__)
        if entry.filename == file
    ]
    return tuple(dict.fromkeys(own))[:MAX_FRAMES]
