"""Known verdicts, by request, hardware and versions."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from adaexplore.core.judging.flags import BASELINE_UNCONFIRMED
from adaexplore.core.metrics import from_metrics, to_metrics
from adaexplore.core.text.tunables import TUNABLES
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobKind, ProfileReport
from online_judge.common import printable
from online_judge.queue.metrics import Metrics
from online_judge.queue.store import MAX_REASON, Store
from online_judge.verdict.endings import PROTOCOL

log = logging.getLogger(__name__)

KEPT = 50_000

Known = Verdict | ProfileReport

_POLICY = {
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
    "samples",
    "direction",
    "hidden_workloads",
}
"""Fields of a request, besides its sources, on which a verdict depends."""


@dataclass(frozen=True)
class Question:
    """Everything that identifies a verdict or a profile."""

    exact: str  # key of this very text
    kind: JobKind = "candidate"
    hardware: frozenset[str] = frozenset()  # hardware of the verdict

    @classmethod
    def of(
        cls,
        request: EvaluationRequest,
        recorded_ms: float | None,
        versions: Sequence[str | None],
        kind: JobKind = "candidate",
        hardware: Collection[str] = (),
    ) -> Question:
        """Return the question that a job of a ``kind`` asks of these versions on this hardware."""
        source = request.custom_model_src
        policy = [request.model_dump(include=_POLICY), request.tune_s if TUNABLES in source else 0.0]
        rest = [PROTOCOL, kind, request.original_model_src, policy, recorded_ms]
        rest.append([*sorted(hardware), *versions])
        return cls(_hash(["exact", source, *rest]), kind, frozenset(hardware))


@dataclass(eq=False)
class ResultCache:
    """Verdicts by exact text: a program that reads its comments or line numbers may hide that it does."""

    _store: Store
    _metrics: Metrics

    async def get(self, question: Question) -> Known | None:
        """Return the known verdict or profile; None if there is none or it cannot be read."""
        try:
            found = await self._read(question)
        except sqlite3.Error as error:
            log.error("the result cache cannot be read: %s", error)
            found = None
        if found is not None:
            self._metrics.looked_up("hit")
        return found

    async def _read(self, question: Question) -> Known | None:
        select = "SELECT number, verdict FROM results WHERE key = ? ORDER BY number DESC LIMIT 1"
        read = ProfileReport.model_validate if question.kind == "profile" else from_metrics
        for number, text in await self._store.execute((select, question.exact)):
            try:
                return read(printable.tree(json.loads(text)))
            except (KeyError, ValueError, TypeError, RecursionError) as error:
                log.error("a cached verdict cannot be read (%r)", str(error)[:MAX_REASON])
                await self._store.execute(("DELETE FROM results WHERE number = ?", number))
        return None

    async def put(self, question: Question, found: Known) -> None:
        """Keep a verdict that does not depend on chance, or a profile; a newer one replaces an older."""
        if isinstance(found, Verdict):
            stopped_early = found.timing is not None and found.timing.stopped_early
            by_chance = found.status.row.by_chance or found.has_flag(BASELINE_UNCONFIRMED)
            keep = not (by_chance or stopped_early)
            told = to_metrics(found)
        else:
            keep, told = found.profile is not None, found.model_dump(mode="json")
        if not keep:
            return
        text = json.dumps(told)
        try:
            await self._store.execute(
                ("DELETE FROM results WHERE key = ?", question.exact),
                ("INSERT INTO results (key, verdict) VALUES (?, ?)", question.exact, text),
                ("DELETE FROM results WHERE number <= (SELECT max(number) FROM results) - ?", KEPT),
            )
        except sqlite3.Error as error:
            log.error("a verdict cannot be cached: %s", error)


def _hash(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
