"""The statuses of a verdict: one row of properties each, which all other code reads."""

from __future__ import annotations

from enum import Enum, StrEnum, auto
from typing import NamedTuple


class Stage(StrEnum):
    """Stage of a candidate's evaluation."""

    LOAD = "load"
    CONSTRUCT = "construct"
    FORWARD = "forward"
    TIMING = "timing"


_LOADING = frozenset({Stage.LOAD})
_CONSTRUCTING = frozenset({Stage.CONSTRUCT})
_CALLING = frozenset({Stage.FORWARD, Stage.TIMING})
_ON_DEVICE = _CONSTRUCTING | _CALLING
_NOWHERE: frozenset[Stage] = frozenset()


class StatusKind(Enum):
    """What a status says about the candidate."""

    PASSED = auto()
    LOAD = auto()  # its module cannot be imported
    BUILD = auto()  # the model cannot be constructed or a kernel not be compiled
    RUN = auto()  # its calls do not complete
    FORM = auto()  # outputs of another shape or dtype
    VALUES = auto()  # outputs of other values
    REJECTED = auto()  # right outputs, but flagged
    UNKNOWN = auto()  # nothing


class StatusRow(NamedTuple):
    """The properties of a status.

    Attributes:
        kind: its kind.
        advice: the end of the feedback: what to do next.
        claimable: stages in which the candidate's own process may report it.
        teaches: whether the skill memory makes rules of its error texts.
        by_chance: whether another run may give another status, because of load, limits or races.
        on_all_inputs: whether the candidate fails with all inputs, so that other workloads say no more.
        may_lack_memory: whether the cause may be too little GPU memory, which the error text says.
        hidden_advice: the advice after a failure on a hidden workload, if ``advice`` refers to shown lines.
    """

    kind: StatusKind
    advice: str
    claimable: frozenset[Stage] = _NOWHERE
    teaches: bool = False
    by_chance: bool = False
    on_all_inputs: bool = False
    may_lack_memory: bool = False
    hidden_advice: str = ""


_OTHER_SHAPES = "Make grid, block sizes and operations right for other shapes and dtypes than those shown."


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
    def row(self) -> StatusRow:
        """Return the status's row; the type checker names a status without one."""
        match self:
            case Status.PASSED:
                return StatusRow(StatusKind.PASSED, "")
            case Status.SYNTAX:
                return StatusRow(
                    StatusKind.LOAD,
                    "Fix the syntax at that line.",
                    _LOADING,
                    teaches=True,
                    on_all_inputs=True,
                )
            case Status.LOAD:
                return StatusRow(
                    StatusKind.LOAD,
                    "Make the file import on its own and define the class ModelNew.",
                    _LOADING,
                    teaches=True,
                    on_all_inputs=True,
                )
            case Status.CONSTRUCT:
                return StatusRow(
                    StatusKind.BUILD,
                    "Give ModelNew the constructor arguments of Model; build nothing there that can fail.",
                    _CONSTRUCTING,
                    teaches=True,
                    on_all_inputs=True,
                    may_lack_memory=True,
                )
            case Status.COMPILE:
                return StatusRow(
                    StatusKind.BUILD,
                    "Rewrite the marked expression with operations that Triton supports.",
                    _ON_DEVICE,
                    teaches=True,
                    hidden_advice=_OTHER_SHAPES,
                )
            case Status.LAUNCH:
                return StatusRow(
                    StatusKind.RUN,
                    "Fix the marked line; check grid, argument order, shapes and block sizes.",
                    _CALLING,
                    teaches=True,
                    may_lack_memory=True,
                    hidden_advice=_OTHER_SHAPES,
                )
            case Status.ILLEGAL_ACCESS:
                return StatusRow(
                    StatusKind.RUN,
                    "Mask every load and store against the tensor's bounds and check strides.",
                    _ON_DEVICE,
                    teaches=True,
                )
            case Status.CRASH:
                return StatusRow(
                    StatusKind.RUN,
                    "Remove what ends or breaks the process; check pointers and native code.",
                    by_chance=True,
                )
            case Status.OUT_OF_MEMORY:
                return StatusRow(
                    StatusKind.RUN,
                    "Use smaller blocks and fewer temporary tensors.",
                    _ON_DEVICE,
                    teaches=True,
                    by_chance=True,
                    may_lack_memory=True,
                )
            case Status.TIMEOUT:
                return StatusRow(
                    StatusKind.RUN,
                    "Look for endless loops; use fewer autotune configurations and larger blocks.",
                    by_chance=True,
                )
            case Status.WRONG_SHAPE:
                return StatusRow(
                    StatusKind.FORM,
                    "Return outputs of the same structure and shapes as Model.",
                    _CALLING,
                    teaches=True,
                )
            case Status.WRONG_DTYPE:
                return StatusRow(
                    StatusKind.FORM,
                    "Store and return the outputs in the dtype that Model returns.",
                    teaches=True,
                )
            case Status.WRONG_VALUE:
                return StatusRow(
                    StatusKind.VALUES,
                    "Check masks, strides, accumulation and the order of operations against Model.",
                )
            case Status.NONFINITE:
                return StatusRow(
                    StatusKind.VALUES,
                    "Look for uninitialised or unwritten output, division by zero and overflow; "
                    "mask with neutral values.",
                )
            case Status.NONDETERMINISTIC:
                return StatusRow(
                    StatusKind.VALUES,
                    "Look for races, missing masks, unwritten elements and memory used again.",
                    by_chance=True,
                )
            case Status.INTEGRITY:
                return StatusRow(
                    StatusKind.REJECTED,
                    "Compute every output from the inputs of its own call, on the current stream.",
                )
            case Status.NOT_CHECKED:
                return StatusRow(
                    StatusKind.UNKNOWN,
                    "This judge has no GPU and could not run it; nothing is known about the kernel.",
                    _LOADING | _ON_DEVICE,
                )

    @property
    def module_imported(self) -> bool:
        """v1's ``compiled``: the candidate's module could be imported."""
        return self.row.kind is not StatusKind.LOAD

    @property
    def is_fault(self) -> bool:
        """Whether it speaks against the candidate."""
        match self.row.kind:
            case StatusKind.PASSED | StatusKind.UNKNOWN:
                return False
            case StatusKind.LOAD | StatusKind.BUILD | StatusKind.RUN:
                return True
            case StatusKind.FORM | StatusKind.VALUES | StatusKind.REJECTED:
                return True

    @property
    def ran(self) -> bool:
        """Whether all calls completed, with a right or a wrong result."""
        match self.row.kind:
            case StatusKind.PASSED | StatusKind.FORM | StatusKind.VALUES | StatusKind.REJECTED:
                return True
            case StatusKind.LOAD | StatusKind.BUILD | StatusKind.RUN | StatusKind.UNKNOWN:
                return False
