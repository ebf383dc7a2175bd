"""Failures that too little GPU memory may cause; the job may succeed alone on the device."""

from typing import Final

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict

# cuDNN and cuBLAS raise the others also if they cannot allocate a workspace or a handle
_WORDS: Final = (
    "out of memory",
    "STATUS_ALLOC_FAILED",
    "STATUS_INTERNAL_ERROR",
    "STATUS_NOT_INITIALIZED",
    "unable to find an engine to execute this computation",
)


def explains_text(text: str) -> bool:
    """Return True if too little memory may cause an error with this text."""
    return any(words in text for words in _WORDS)


def explains_failure(status: Status, text: str) -> bool:
    """Return True if too little memory may be the cause of a candidate's failure."""
    return status is Status.OUT_OF_MEMORY or (status.row.may_lack_memory and explains_text(text))


def explains(verdict: Verdict) -> bool:
    """Return True if too little memory may be the cause of this verdict."""
    return explains_failure(verdict.status, verdict.feedback)
