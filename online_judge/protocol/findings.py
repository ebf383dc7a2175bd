"""Bases of typed messages, and what can be wrong with a candidate; its claims are checked and cut to size."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from adaexplore.core.verdict import Status
from online_judge.common import printable

MAX_TEXT = 8000
MAX_FRAMES = 8


class Fact(BaseModel):
    """One immutable fact; numbers may be infinite, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read what an evaluator sent, strictly: its process is not trusted; raises ValueError."""
        return cls.model_validate_json(json.dumps(data), strict=True)


class Stage(StrEnum):
    """Where in its evaluation a candidate is."""

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
_FALLBACK = {
    Stage.LOAD: Status.LOAD,
    Stage.CONSTRUCT: Status.CONSTRUCT,
    Stage.FORWARD: Status.LAUNCH,
    Stage.TIMING: Status.LAUNCH,
}


@dataclass(frozen=True)
class Frame:
    """A line of the candidate's own file on the way to the error."""

    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Failure:
    status: Status  # the outcome
    stage: Stage  # where it happened
    name: str  # ``module.Class`` of the deciding exception
    message: str  # its text
    frames: tuple[Frame, ...] = ()  # the candidate's own frames, outermost first

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status.value,
            "name": self.name,
            "message": _cut(self.message),
            "frames": [[frame.line, frame.function, frame.code] for frame in self.frames],
        }

    @property
    def is_claimable(self) -> bool:
        """Return whether a candidate's process may report this status in this stage."""
        return self.status in _CLAIMABLE[self.stage]

    @classmethod
    def from_claim(cls, stage: Stage, claim: object) -> Failure:
        """Read what a candidate says of its failure; an impossible status becomes the stage's own."""
        data = printable.tree(claim) if isinstance(claim, dict) else {}
        named = data.get("status")
        status = _FALLBACK[stage]
        if isinstance(named, str) and named in {status.value for status in _CLAIMABLE[stage]}:
            status = Status(named)
        listed = data.get("frames")
        frames = [
            Frame(part[0], str(part[1])[:100], str(part[2])[:300])
            for part in (listed if isinstance(listed, list) else [])
            if isinstance(part, list) and len(part) == 3 and isinstance(part[0], int)
        ]
        name = str(data.get("name", ""))[:200]
        return cls(status, stage, name, _cut(str(data.get("message", ""))), tuple(frames[-MAX_FRAMES:]))


@dataclass(frozen=True)
class Mismatch:
    index: tuple[int, ...]
    got: str
    want: str


@dataclass(frozen=True)
class Difference:
    """How one output differs from what is expected."""

    examples: tuple[Mismatch, ...]  # the first wrong elements
    wrong: int  # how many elements are wrong, of ``total``
    nonfinite: int  # how many of these are NaN or infinite where the reference is not, or the reverse
    total: int
    largest: float  # largest absolute difference of finite elements
    average: float  # mean absolute difference of finite elements
    pattern: str = ""  # what the wrong elements have in common, in words; empty where nothing stands out


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT // 2]}\n[...]\n{text[-MAX_TEXT // 2 :]}"
