"""Verdicts that are known already, by what was asked and on what it would run."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adaexplore.core.identity import source_identity
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.metrics import Metrics
from online_judge.store import Store

log = logging.getLogger(__name__)

PROTOCOL = 3
"""Raised whenever the same question may get another verdict than before."""
KEPT = 50_000

_MAX_PARSED = 200_000
"""Characters of a source up to which it is compared as a program."""

_CHANCE = {Status.TIMEOUT, Status.CRASH, Status.OUT_OF_MEMORY, Status.NONDETERMINISTIC}
"""Statuses that may differ the next time, for reasons that are not the candidate's."""


@dataclass(frozen=True)
class Question:
    """What identifies a verdict.

    Attributes:
        exact: key of this very text.
        normalised: key that all texts of the same program share.
    """

    exact: str
    normalised: str

    @classmethod
    def of(
        cls, request: EvaluationRequest, recorded_ms: float | None, place: Sequence[str | None]
    ) -> Question:
        """The question that a request asks at ``place`` (hardware and versions)."""
        policy = request.model_dump(
            include={
                "seed_num",
                "num_correct_trials",
                "num_perf_trials",
                "measure_performance",
                "backend",
                "dtype_str",
                "build_dir",
                "tolerance",
                "tf32",
                "tier",
                "baseline",
            }
        )
        rest = [PROTOCOL, request.original_model_src, policy, recorded_ms, list(place)]
        source = request.custom_model_src
        exact = _hash(["exact", source, *rest])
        if len(source) > _MAX_PARSED:
            return cls(exact, exact)
        return cls(exact, _hash(["program", source_identity(source), *rest]))


class ResultCache:
    """Passed verdicts by program, failed ones by text, because their feedback names lines of it."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        """Read and write ``store``; trouble with it is a miss."""
        self._store = store
        self._metrics = metrics

    async def get(self, question: Question) -> Verdict | None:
        """The known verdict, if there is one."""

        def read(connection: sqlite3.Connection) -> Any:
            return connection.execute(
                "SELECT verdict FROM results WHERE key IN (?, ?) ORDER BY number DESC LIMIT 1",
                (question.exact, question.normalised),
            ).fetchone()

        try:
            found = await self._store.do(read)
        except sqlite3.Error as error:
            log.error("the result cache cannot be read: %s", error)
            found = None
        self._metrics.looked_up("miss" if found is None else "hit")
        return None if found is None else Verdict.model_validate(json.loads(found[0]))

    async def put(self, question: Question, verdict: Verdict) -> None:
        """Keep a verdict, unless chance had a part in it; a newer one takes the place of an older."""
        if verdict.status in _CHANCE:
            return
        text = json.dumps(verdict.model_dump(mode="json"))
        key = question.normalised if verdict.correct else question.exact
        other = question.exact if verdict.correct else question.normalised

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM results WHERE key IN (?, ?)", (key, other))
            connection.execute("INSERT INTO results (key, verdict) VALUES (?, ?)", (key, text))
            connection.execute(
                "DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ?", (KEPT,)
            )

        try:
            await self._store.do(write)
        except sqlite3.Error as error:
            log.error("a verdict cannot be cached: %s", error)


def _hash(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
