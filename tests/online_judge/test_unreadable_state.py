"""State files with rows that cannot be read, and state files of earlier layouts."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobRequest
from online_judge.queue.cache import Question, ResultCache
from online_judge.queue.job import Job
from online_judge.queue.journal import UNREADABLE, Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.store import Store
from tests.verdicts import changed, make_verdict

from .live import running_judge
from .sources import BAD, PASSING
from .test_v2_jobs import judged, look, metric, submit

BODY = JobRequest(request=EvaluationRequest(custom_model_src="x = 1"))
LAYOUT_1 = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, idempotency_key TEXT UNIQUE, digest TEXT NOT NULL,
    kind TEXT NOT NULL, accepted REAL NOT NULL, starts INTEGER NOT NULL DEFAULT 0, body TEXT, answer TEXT
);
CREATE INDEX unfinished ON jobs (number) WHERE answer IS NULL;
CREATE TABLE results (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, verdict TEXT NOT NULL);
PRAGMA user_version = 1;
"""


def change(state: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(state)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def rows_of(state: Path) -> list[Job]:
    async def read() -> list[Job]:
        store = Store(state)
        try:
            return await Journal(store).jobs()
        finally:
            store.close()

    return asyncio.run(read())


def filled(state: Path, *names: str) -> None:
    async def fill() -> None:
        store = Store(state)
        journal = Journal(store)
        for name in names:
            await journal.accept(
                Job(
                    BODY.kind,
                    BODY.request,
                    id=name,
                    durable=True,
                    key=f"key-{name}",
                    digest="d",
                    accepted_at=1.0,
                )
            )
        store.close()

    asyncio.run(fill())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET body = '{' WHERE id = 'bad'",
        "UPDATE jobs SET body = '[]' WHERE id = 'bad'",
        "UPDATE jobs SET body = NULL WHERE id = 'bad'",
        "UPDATE jobs SET body = 7 WHERE id = 'bad'",
        "UPDATE jobs SET body = x'ff00' WHERE id = 'bad'",
        "UPDATE jobs SET body = CAST(x'22ff22' AS TEXT) WHERE id = 'bad'",
        "UPDATE jobs SET body = replace(hex(zeroblob(50000)), '00', '[') WHERE id = 'bad'",
        "UPDATE jobs SET body = NULL, answer = '{\"state\": \"done\"}' WHERE id = 'bad'",
        "UPDATE jobs SET kind = 'other' WHERE id = 'bad'",
        "UPDATE jobs SET starts = 'many' WHERE id = 'bad'",
        "UPDATE jobs SET accepted = 'today' WHERE id = 'bad'",
        "UPDATE jobs SET digest = x'ff' WHERE id = 'bad'",
    ],
)
def test_unreadable_job_has_failed_and_keeps_its_body(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    state = tmp_path / "state.sqlite"
    filled(state, "before", "bad", "after")
    change(state, statement)
    body = "SELECT hex(body) FROM jobs WHERE id = 'bad'"
    kept = change(state, body)
    for _ in range(2):  # again as on the next start
        before, bad, after = rows_of(state)
        assert (before.body, after.body) == (BODY, BODY)
        assert bad.answer is not None
        assert (bad.id, bad.key, bad.answer.state, bad.answer.error) == (
            "bad",
            "key-bad",
            "failed",
            UNREADABLE,
        )
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert len(caplog.records[0].getMessage().splitlines()) == 1
    assert change(state, body) == kept


def test_row_without_a_readable_id_is_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    filled(state, "bad", "good")
    change(state, "UPDATE jobs SET id = x'ff' WHERE id = 'bad'")
    assert [row.id for row in rows_of(state)] == ["good"]
    assert change(state, "SELECT id FROM jobs ORDER BY number") == [(b"\xff",), ("good",)]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"status": "best"}', 7, b"\xff"])
def test_unreadable_verdict_is_a_miss(tmp_path: Path, content: object) -> None:
    state = tmp_path / "state.sqlite"
    question = Question("exact")
    verdict = Verdict(status=Status.WRONG_VALUE)

    async def ask(*, put: bool) -> object:
        store = Store(state)
        cache = ResultCache(store, Metrics())
        if put:
            await cache.put(question, verdict)
        found = await cache.get(question)
        store.close()
        return found

    assert asyncio.run(ask(put=True)) == verdict
    change(state, "UPDATE results SET verdict = ?", content)
    assert asyncio.run(ask(put=False)) is None
    assert change(state, "SELECT * FROM results") == []
    assert asyncio.run(ask(put=True)) == verdict


def test_verdict_with_an_unconfirmed_baseline_is_not_kept(tmp_path: Path) -> None:
    evidence = [{"id": "baseline_unconfirmed", "severity": "note", "evidence": "busy"}]
    metadata = {"integrity": ["baseline_unconfirmed"], "integrity_evidence": evidence}

    async def kept(verdict: Verdict) -> object:
        store = Store(tmp_path / "state.sqlite")
        cache = ResultCache(store, Metrics())
        await cache.put(Question("exact"), verdict)
        found = await cache.get(Question("exact"))
        store.close()
        return found

    passed = make_verdict(status=Status.PASSED, runtime_ms=1.0, runtime_stats={"fast_p": 28.0})
    assert asyncio.run(kept(changed(passed, metadata))) is None
    assert asyncio.run(kept(passed)) == passed


def test_file_of_the_first_layout_keeps_its_jobs(tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    answer = JobAnswer(id="b", kind="candidate", state="failed", error="x\udc80")
    with contextlib.closing(sqlite3.connect(state)) as connection, connection:
        connection.executescript(LAYOUT_1)
        insert = "INSERT INTO jobs (id, idempotency_key, digest, kind, accepted, starts, body, answer) "
        connection.execute(
            f"{insert} VALUES ('a', 'k', 'd', 'candidate', 1.0, 3, ?, NULL)", (BODY.model_dump_json(),)
        )
        connection.execute(
            f"{insert} VALUES ('b', NULL, 'd', 'candidate', 2.0, 0, NULL, ?)",
            (json.dumps(answer.model_dump(mode="json")),),
        )
        connection.execute("INSERT INTO results (key, verdict) VALUES ('exact', '{\"status\": \"launch\"}')")
    for _ in range(2):
        waiting, done = rows_of(state)
        assert (waiting.id, waiting.key, waiting.digest) == ("a", "k", "d")
        assert (waiting.kind, waiting.accepted_at, waiting.starts) == ("candidate", 1.0, 3)
        assert (waiting.body, waiting.answer, waiting.caller.owner) == (BODY, None, "")
        assert done.answer is not None
        assert (done.caller.owner, done.answer.error) == ("", "x?")
    assert change(state, "SELECT count(*) FROM results") == [(1,)]


def test_judge_with_unreadable_rows_answers_every_key(tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    wrong = BAD["wrong_value"]
    with running_judge(tmp_path, JUDGE_STATE=str(state)) as judge:
        bad, good = (judged(judge, PASSING, key=key)["id"] for key in ("bad", "good"))
        first = judged(judge, wrong)
    change(state, "UPDATE jobs SET answer = '{' WHERE id = ?", bad)
    change(state, "UPDATE results SET verdict = '{'")
    with running_judge(tmp_path, JUDGE_STATE=str(state)) as judge:
        assert submit(judge, PASSING, key="bad").json() == {"id": bad, "status": "failed", "position": 0}
        assert look(judge, bad)["error"] == UNREADABLE
        assert look(judge, good)["state"] == "done"
        again = judged(judge, wrong, key="again")
        assert (again["cached"], again["verdict"]) == (False, first["verdict"])
        assert judged(judge, wrong)["cached"] is True
        assert metric(judge, 'cache_lookups_total{result="miss"}') == 1
