"""Turn an exception into an outcome by stage, type and chain of causes."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator

import torch
from triton.compiler.errors import CompilationError
from triton.runtime import errors as runtime_errors

from adaexplore.core.judging.status import Stage, Status
from online_judge.checks.facts.findings import MAX_FRAMES, Failure, Frame
from online_judge.common import cuda_driver
from online_judge.common.trees import UnsupportedTree
from online_judge.cpu import IllegalAccessError, NotCheckedError

_COMPILE_ERRORS: tuple[type[BaseException], ...] = (CompilationError, runtime_errors.PTXASError)
_MEMORY_ERRORS: tuple[type[BaseException], ...] = (MemoryError, torch.OutOfMemoryError)
# torch and triton raise plain RuntimeErrors for these; only their wording identifies them
_MEMORY_WORDS = ("Triton Error [CUDA]: out of memory", "DefaultCPUAllocator: can't allocate memory")
_GRADIENT_WORDS = ("returned an invalid gradient", "returned an incorrect number of gradients")
_COMPILER_FILES = ("triton/compiler/compiler.py", "triton/backends/nvidia/compiler.py")
# modules in which Triton resolves a kernel's references
_KERNEL_FILE, _KERNEL_READER = "triton/runtime/jit.py", "cache_key"


def describe(error: BaseException, stage: Stage, file: str, *, cuda: bool) -> Failure:
    """Return the failure behind ``error``, which was caught in ``stage``.

    Frames outside of ``file``, the candidate's path, are left out. With ``cuda`` the GPU is asked about
    illegal accesses.
    """
    status, deciding = _decide(error, stage, cuda=cuda)
    message = _message_for(error, deciding, file)
    return Failure(status, stage, _name(deciding), message, _frames(error, file))


def syntax_failure(error: SyntaxError | ValueError | MemoryError | RecursionError, source: str) -> Failure:
    """Return the failure of a candidate that is not valid Python, or too deeply nested for the parser."""
    text = getattr(error, "msg", None) or str(error) or "too deeply nested for Python's parser"
    frames: tuple[Frame, ...] = ()
    if line := getattr(error, "lineno", None):
        code = "".join(source.splitlines()[line - 1 : line])
        frames = (Frame(line, "<module>", code.strip()[:300]),)
    return Failure(Status.SYNTAX, Stage.LOAD, _name(error), text, frames)


def _name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _decide(error: BaseException, stage: Stage, *, cuda: bool) -> tuple[Status, BaseException]:
    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, NotCheckedError):
            return Status.NOT_CHECKED, cause
    if stage is Stage.LOAD:
        return Status.LOAD, error
    compile_errors = [cause for cause in causes if isinstance(cause, _COMPILE_ERRORS)]
    if compile_errors:
        return Status.COMPILE, compile_errors[-1]  # the innermost cause names error and place
    for cause in causes:
        if isinstance(cause, IllegalAccessError):
            return Status.ILLEGAL_ACCESS, cause
        if isinstance(cause, _MEMORY_ERRORS) or _is_worded(cause, _MEMORY_WORDS):
            return Status.OUT_OF_MEMORY, cause
        if isinstance(cause, UnsupportedTree) or _is_worded(cause, _GRADIENT_WORDS):
            return Status.WRONG_SHAPE, cause
    if cuda and torch.cuda.is_initialized() and cuda_driver.has_illegal_access():
        return Status.ILLEGAL_ACCESS, error
    for cause in causes:
        if not isinstance(cause, runtime_errors.OutOfResources) and _raised_by_compiler(cause):
            return Status.COMPILE, cause
    return (Status.CONSTRUCT if stage is Stage.CONSTRUCT else Status.LAUNCH), error


def _is_worded(error: BaseException, phrases: tuple[str, ...]) -> bool:
    return type(error) is RuntimeError and any(words in _message(error) for words in phrases)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Return ``error`` and its causes, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _raised_by_compiler(error: BaseException) -> bool:
    """Return True if the error passed through Triton's ``compile`` (failed passes are plain RuntimeErrors).

    The same holds for errors about a kernel's references, raised before that.
    """
    return any(
        (frame.filename.endswith(_COMPILER_FILES) and not frame.name.startswith("_"))
        or (frame.filename.endswith(_KERNEL_FILE) and frame.name == _KERNEL_READER)
        for frame in traceback.extract_tb(error.__traceback__, limit=-50)
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the candidate's own exception class may do anything
        return ""


def _message_for(error: BaseException, deciding: BaseException, file: str) -> str:
    """Return the deciding error's text: the kernel's own line, then any reason within Triton's library."""
    own = [cause for cause in _chain(error) if isinstance(cause, CompilationError) and _is_of(file, cause)]
    if not own or deciding is own[-1] or not isinstance(deciding, CompilationError):
        return _message(deciding)
    place, reason = _message(own[-1]), str(deciding.error_message or "")
    return place if reason in place else f"{place}\n{reason}"


def _is_of(file: str, error: CompilationError) -> bool:
    """Return True if the error points into a kernel in ``file``."""
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
