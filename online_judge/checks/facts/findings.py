"""Bases of typed messages, and failures of candidates, whose claims are checked and truncated."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter

from adaexplore.core.verdict import Status
from online_judge.common import printable

MAX_TEXT = 8000
MAX_FRAMES = 8

Read = TypeVar("Read")
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def adapter_of(cls: type[Read]) -> TypeAdapter[Read]:
    """Return the cached reader of a dataclass, because building one takes longer than reading."""
    if cls not in _ADAPTERS:
        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]


class Fact(BaseModel):
    """One immutable fact; numbers may be infinite, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read an evaluator's message strictly, because its process is not trusted; raises ValueError."""
        return cls.model_validate_json(json.dumps(data), strict=True)


class Stage(StrEnum):
    LOAD = "load"
    CONSTRUCT = "construct"
    FORWARD = "forward"
    TIMING = "timing"


_ON_DEVICE = {Status.COMPILE, Status.ILLEGAL_ACCESS, Status.OUT_OF_MEMORY, Status.NOT_CHECKED}
_CALLED = _ON_DEVICE | {Status.LAUNCH, Status.WRONG_SHAPE}
_CLAIMABLE = {
    Stage.LOAD: {Status.SYNTAX, Status.LOAD, Status.NOT_CHECKED},
    Stage.CONSTRUCT: _ON_DEVICE | {Status.CONSTRUCT},
    Stage.FORWARD: _CALLED,
    Stage.TIMING: _CALLED,
}
_FALLBACK = {Stage.LOAD: Status.LOAD, Stage.CONSTRUCT: Status.CONSTRUCT}


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT // 2]}\n[...]\n{text[-MAX_TEXT // 2 :]}"


class Frame(NamedTuple):
    """A line of the candidate's own file on the way to the error."""

    line: int
    function: Annotated[str, AfterValidator(lambda text: text[:100])]
    code: Annotated[str, AfterValidator(lambda text: text[:300])]


@dataclass(frozen=True)
class Failure:
    status: Status  # the outcome
    stage: Stage  # its stage
    # ``module.Class`` of the deciding exception
    name: Annotated[str, AfterValidator(lambda text: text[:200])] = ""
    message: Annotated[str, AfterValidator(_cut)] = ""  # its text
    # the candidate's own frames, outermost first
    frames: Annotated[tuple[Frame, ...], AfterValidator(lambda frames: frames[-MAX_FRAMES:])] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(replace(self, message=_cut(self.message)))

    @property
    def is_claimable(self) -> bool:
        """Return True if a candidate's process may report this status in this stage."""
        return self.status in _CLAIMABLE[self.stage]

    @classmethod
    def from_claim(cls, stage: Stage, claim: object) -> Failure:
        """Read a candidate's report of its failure; an impossible status becomes the stage's own."""
        fallback = cls(_FALLBACK.get(stage, Status.LAUNCH), stage)
        said = claim if isinstance(claim, dict) else {}
        try:
            data = {"status": fallback.status, **printable.tree(said), "stage": stage}
            found = adapter_of(cls).validate_python(data)
        except ValueError:
            return fallback
        return found if found.is_claimable else replace(found, status=fallback.status)


@dataclass(frozen=True)
class Mismatch:
    index: tuple[int, ...]
    got: str
    want: str


@dataclass(frozen=True)
class Difference:
    """How one output differs from the expected one."""

    examples: tuple[Mismatch, ...]  # the first wrong elements
    wrong: int  # how many elements are wrong, of ``total``
    nonfinite: int  # how many of these are NaN or infinite where the reference is not, or the reverse
    total: int
    largest: float  # largest absolute difference of finite elements
    average: float  # mean absolute difference of finite elements
    pattern: str = ""  # pattern of the wrong elements in words; empty if nothing stands out
