"""The statuses of a verdict, and the stages of an evaluation."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Stage of a candidate's evaluation."""

    LOAD = "load"
    CONSTRUCT = "construct"
    FORWARD = "forward"
    TIMING = "timing"


class Status(StrEnum):
    """The outcome of an evaluation, decided by stage and exception type."""

    PASSED = "passed"
    SYNTAX = "syntax"
    LOAD = "load"
    CONSTRUCT = "construct"
    COMPILE = "compile"
    LAUNCH = "launch"
    ILLEGAL_ACCESS = "illegal_access"
    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUE = "wrong_value"
    NONFINITE = "nonfinite"
    NONDETERMINISTIC = "nondeterministic"
    INTEGRITY = "integrity"
    NOT_CHECKED = "not_checked"

    @property
    def module_imported(self) -> bool:
        """v1's ``compiled``: the candidate's module could be imported."""
        return self not in (Status.SYNTAX, Status.LOAD)
