"""What a sweep is asked and what it answers; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DECLARED = 0
"""Number of the configuration as written."""


@dataclass(frozen=True)
class SweepTerms:
    """What is swept."""

    # of the configurations, by number; the declared one has :data:`DECLARED`
    sources: tuple[tuple[int, str], ...]
    budget_s: float  # seconds for all of it, waiting for the device left out
    # whether they are tried one by one, so that it is known which one breaks the process
    careful: bool = False
    # whether the sweep ends at once where the declared one runs and its outputs are wrong
    screened: bool = False

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_json` reads."""
        return {
            "sources": self.sources,
            "budget_s": self.budget_s,
            "careful": self.careful,
            "screened": self.screened,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SweepTerms:
        """What :meth:`to_json` wrote."""
        sources = tuple((number, source) for number, source in data["sources"])
        return cls(sources, data["budget_s"], data["careful"], data["screened"])


@dataclass
class Swept:
    """What a sweep found, as far as it came."""

    # configurations that ran, and the wall milliseconds of a call of each
    ready: dict[int, float] = field(default_factory=dict)
    ms: dict[int, float] = field(default_factory=dict)  # milliseconds by the last rating of each
    ranking: list[int] = field(default_factory=list)  # those that were rated, the best first
    failed: dict[int, str] = field(default_factory=dict)  # why others did not run, or were wrong
    suspects: list[int] = field(default_factory=list)  # those of which one broke the process, where one did
    # seconds of the budget by part: ``compile`` (and call once), ``time``, ``check``
    parts_s: dict[str, float] = field(default_factory=dict)
    finished: bool = False  # whether it came to its end
    # whether that was because the declared one's outputs are wrong, with the reference's weights
    wrong: bool = False

    @property
    def spent_s(self) -> float:
        """All parts together."""
        return sum(self.parts_s.values())

    def spend(self, part: str, seconds: float) -> None:
        """Count seconds of the budget."""
        self.parts_s[part] = self.parts_s.get(part, 0.0) + max(seconds, 0.0)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_json` reads."""
        return {
            "ready": [list(item) for item in self.ready.items()],
            "ms": [list(item) for item in self.ms.items()],
            "ranking": self.ranking,
            "failed": [list(item) for item in self.failed.items()],
            "suspects": self.suspects,
            "parts_s": self.parts_s,
            "finished": self.finished,
            "wrong": self.wrong,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Swept:
        """What :meth:`to_json` wrote."""
        return cls(
            ready=dict(data["ready"]),
            ms=dict(data["ms"]),
            ranking=data["ranking"],
            failed=dict(data["failed"]),
            suspects=data["suspects"],
            parts_s=data["parts_s"],
            finished=data["finished"],
            wrong=data["wrong"],
        )
