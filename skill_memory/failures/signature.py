"""Signatures of failures: stage, exception type and message without particulars."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adaexplore.core.judging.status import Status
from adaexplore.core.judging.workloads import HIDDEN
from adaexplore.core.verdict import Verdict
from skill_memory.failures.construct import construct_of, offending_line

_ENVIRONMENT = re.compile(
    r"^(OSError|IOError|FileNotFoundError|FileExistsError|PermissionError|BlockingIOError|MemoryError|"
    r"BrokenPipeError|Connection\w*Error|TimeoutError|TimeoutExpired|KeyboardInterrupt|SystemExit)$"
)
_MESSAGE_LENGTH = 200
_PARTS = 4

_CARETS = re.compile(r"\s*[\^~]+[\^~\s]*")
_POSITION = re.compile(r"\s*at \d+:\d+:?\s*")
_NAMED = re.compile(r"^\s*(?:\w+\.)*([A-Z]\w*)(?::\s*(.*)|\((.*)\))?$")
_WRAPPED = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:Error\w*|Exception|Resources|Construct|Iteration)[:(]")

_PARTICULARS = (
    (re.compile(r"\.? Did you mean:? \S+\?"), ""),  # Python from 3.13
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"<[^<>]*[\\/][^<>]*>|(?:[\w.\-]*[\\/])+[\w.\-]+|\b[\w\-]+\.py\b"), "<path>"),
    (re.compile(r",?\s*\b(?:on )?line \d+|\bat \d+:\d+:?"), ""),
    (re.compile(r"<?\[[\s\d,'x_]*\](?:,\s*\w+>)?|\(\s*\d+(?:,\s*\d*)+\)|torch\.Size\([^)]*\)"), "<shape>"),
    (
        re.compile(r"\b(?:local variable |name )?'?[A-Za-z_]\w*'? is not (?:defined|in list)"),
        "a name is unknown",
    ),
    (re.compile(r"\b(variable|type for) '?\w+'?"), r"\1 _"),
    (re.compile(r"(meta-parameters: )\w+(?:, \w+)*"), r"\1_"),
    (re.compile(r"\b(?:bfloat|float|bf|fp)(?=\d)"), "fp"),
    (re.compile(r"\b(fp|int|uint)\d+\b"), r"\1#"),
    (re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"), "#"),
    (re.compile(r"\s+"), " "),
)
_WHOLLY_QUOTED = re.compile(r"(['\"])([^'\"]*)\1")
_QUOTED = re.compile(r"(?<!\w)(['\"`])[^'\"`]*\1")
_KEPT_BEFORE = re.compile(r"(attribute|keyword argument|module|type) $")
_KEPT_AFTER = re.compile(r" object\b")


@dataclass(frozen=True)
class Signature:
    """The kind of a failure; equal signatures mean the same mistake."""

    stage: str  # the verdict's status
    exception: str  # class name of the error nearest to the cause; "" if none is named
    message: str  # its message, normalised
    construct: str = ""  # what the offending line does; "" if unknown

    @property
    def key(self) -> str:
        return " | ".join((self.stage, self.exception, self.message, self.construct))

    @property
    def family(self) -> str:
        """The signature as one line, without the details that differ within one kind of mistake."""
        return " | ".join((self.stage, self.exception, _QUOTED.sub("_", self.message)))

    @classmethod
    def from_key(cls, key: str) -> Signature | None:
        """Return the signature whose :attr:`key` is ``key``; None for other texts."""
        parts = key.split(" | ")
        if len(parts) < _PARTS:
            return None
        return cls(parts[0], parts[1], " | ".join(parts[2:-1]), parts[-1])


def error_text(verdict: Verdict) -> str:
    """Return the judge's text of the error: of compilation, of execution, or its feedback."""
    told = (verdict.failure.compilation_error, verdict.failure.runtime_error, verdict.feedback)
    return next((writable(text) for text in map(str.strip, told) if text), "")


def writable(text: str) -> str:
    """Return ``text`` with lone surrogates, which no file can hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def signature_of(verdict: Verdict, source: str = "", line: int | None = None) -> Signature | None:
    """Return the signature of a failure; None if it teaches no rule.

    Args:
        verdict: the judge's verdict.
        source: the candidate, which holds the offending construct.
        line: the offending line of ``source``, if known.

    No rule comes from wrong or non-finite values, nondeterminism, integrity findings, crashes without a
    message, ``not_checked``, timeouts without a compile error, failures on hidden workloads, and failures
    that the environment caused.
    """
    if verdict.worst_workload is not None and verdict.worst_workload.name == HIDDEN:
        return None
    late_compile_error = verdict.status is Status.TIMEOUT and verdict.failure.compilation_error
    if not verdict.status.row.teaches and not late_compile_error:
        return None
    text = error_text(verdict)
    if not text:
        return None
    exception, message = _cause(text)
    if not message and exception in ("", "CompilationError"):
        return None  # a bare caret: the message is truncated
    exception = _exception(verdict, exception)
    if _ENVIRONMENT.match(exception):
        return None
    construct = construct_of(source, text, line) if source else ""
    if verdict.failure.lint:  # its message has names that the candidate chose
        message = " ".join([f"lint {verdict.failure.lint}", *_triton_names(message.partition(";")[0])])
    return Signature(verdict.status.value, exception, normalise(message), construct)


def is_environment(verdict: Verdict) -> bool:
    """Return whether the machine, not the candidate, causes this exception."""
    return _ENVIRONMENT.match(_exception(verdict, _cause(error_text(verdict))[0])) is not None


def normalise(message: str) -> str:
    """Remove numbers, paths, positions, shapes and the candidate's own names from ``message``.

    Quoted names that are the mistake itself stay: the missing attribute, the unexpected keyword, and their
    type or module.
    """
    whole = _WHOLLY_QUOTED.fullmatch(message.strip())
    message = _QUOTED.sub(_quoted, whole[2] if whole else message)
    for pattern, replacement in _PARTICULARS:
        message = pattern.sub(replacement, message)
    return message.strip(" .:")[:_MESSAGE_LENGTH]


def _exception(verdict: Verdict, named: str) -> str:
    """Return the class that the message names, else the one that the judge names."""
    declared = verdict.failure.compilation_error_name or verdict.failure.runtime_error_name
    return named or writable(declared).rpartition(".")[2]


def _quoted(match: re.Match[str]) -> str:
    text = match.string
    kept = _KEPT_BEFORE.search(text, 0, match.start()) or _KEPT_AFTER.match(text, match.end())
    return match[0] if kept else "_"


def _cause(text: str) -> tuple[str, str]:
    """Return the exception name and message nearest to the cause in a traceback or compiler message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and not _CARETS.fullmatch(lines[-1]):
        return _split(lines[-1])
    # The text ends under a caret: the compiler names the position, and the cause is further up.
    for line in reversed(lines):
        name, message = _split(line)
        if name.endswith(("Error", "Exception", "Construct")) and not _POSITION.fullmatch(
            message or "at 0:0"
        ):
            return name, message
    used = _triton_names(offending_line(text))
    return "", " ".join(["in", *used]) if used else ""


def _triton_names(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b(?:tl|triton|libdevice)\.[\w.]+", text)))


def _split(line: str) -> tuple[str, str]:
    """Split ``a.b.Name: message`` or ``Name('message')``, an inner exception first."""
    named = _NAMED.match(line)
    if named is None:
        return "", line
    name, message = named[1], named[2] or ""
    if named[3] is not None:
        message = _unquoted(named[3])
    if _WRAPPED.match(message):
        return _split(message)
    return name, "" if _CARETS.fullmatch(message) else message


def _unquoted(literal: str) -> str:
    """Return the string of ``literal``, the argument in an exception's repr."""
    if len(literal) >= 2 and literal[0] in "'\"" and literal[-1] == literal[0]:
        return literal[1:-1].replace("\\'", "'").replace('\\"', '"')
    return literal
