"""Base of the typed facts that an evaluator returns."""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Fact(BaseModel):
    """One immutable fact; numbers may be infinite, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_json` reads."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read what an evaluator sent, strictly: its process is not trusted.

        Raises:
            ValueError: it is no such fact.
        """
        return cls.model_validate_json(json.dumps(data), strict=True)
