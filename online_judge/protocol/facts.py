"""Bases of the typed messages of an evaluator."""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter


class Fact(BaseModel):
    """One immutable fact; numbers may be infinite, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read what an evaluator sent, strictly: its process is not trusted; raises ValueError."""
        return cls.model_validate_json(json.dumps(data), strict=True)


class Message:
    """Lets a dataclass travel as a JSON object."""

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, data: object) -> Self:
        return TypeAdapter(cls).validate_python(data)
