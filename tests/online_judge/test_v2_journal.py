"""Accepted jobs outlive a killed judge."""

import asyncio
import contextlib
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.wire import EvaluationRequest
from online_judge.queue import journal
from online_judge.queue.job import Job
from online_judge.queue.journal import Journal
from online_judge.queue.store import Store
from online_judge.settings import default_state_file

from .live import LiveJudge, running_judge, wait_until
from .sources import HONEST, NOTED, PASSING, REFERENCE, with_forward
from .test_printable import SURROGATE
from .test_v2_access import free_port
from .test_v2_jobs import FOREVER, cancel, judged, look, metric, submit

SLOW = with_forward(NOTED + "time.sleep(0.3)\n" + HONEST)


def test_killed_judge_finishes_what_it_had_accepted(tmp_path: Path) -> None:
    state = str(tmp_path / "state.sqlite")
    jobs: dict[str, str] = {}
    with running_judge(tmp_path, JUDGE_STATE=state) as judge:
        before = judged(judge, PASSING, key="before")
        unprintable = judged(judge, with_forward(SURROGATE))
        gone = submit(judge, PASSING, key="gone", force=True).json()["id"]
        cancelled = submit(judge, FOREVER, key="cancelled").json()["id"]
        cancel(judge, cancelled)
        look(judge, gone)
        wait_until(lambda: not judge.processes("noted"))
        jobs["running"] = submit(judge, SLOW, key="running").json()["id"]
        jobs["shared"] = submit(judge, SLOW, key="shared").json()["id"]
        for number in range(5):
            jobs[str(number)] = submit(judge, PASSING, key=str(number), force=True).json()["id"]
        wait_until(lambda: judge.processes("noted"))
        judge.process.send_signal(signal.SIGKILL)
        judge.process.wait(30)
    with running_judge(tmp_path, JUDGE_STATE=state) as judge:
        again = {key: submit(judge, SLOW, key=key).json() for key in ("running", "shared")}
        assert {key: each["id"] for key, each in again.items()} == {
            key: jobs[key] for key in ("running", "shared")
        }
        for job in jobs.values():
            answer = look(judge, job)
            assert (answer["state"], answer["verdict"]["status"]) == ("done", "passed")
        assert look(judge, before["id"]) == before
        assert look(judge, unprintable["id"]) == unprintable
        assert look(judge, cancelled)["state"] == "cancelled"
        assert judged(judge, PASSING)["cached"] is True
        passed = metric(judge, 'evaluations_total{kind="candidate",status="passed"}')
        assert passed == 6  # the five, and one for the two that share theirs
        assert judge.processes("noted") == []


@contextlib.contextmanager
def journal_in_memory() -> Iterator[Journal]:
    with contextlib.closing(Store(None)) as store:
        yield Journal(store)


def begun(state: Path, job_id: str, starts: int) -> None:
    """Write a state file with one unfinished job that was started so often."""

    async def write() -> None:
        store = Store(state)
        writer = Journal(store)
        request = EvaluationRequest(original_model_src=REFERENCE, custom_model_src=FOREVER)
        job = Job("candidate", request, id=job_id, durable=True, digest="d", accepted_at=0.0)
        await writer.accept(job)
        for _ in range(starts):
            await writer.begin(job)
        store.close()

    asyncio.run(write())


def test_judge_resumes_jobs_after_an_orderly_stop(tmp_path: Path) -> None:
    """However often: an orderly end is not the job's fault. On a named port it keeps its state by default."""
    port = free_port()
    state = tmp_path / "adaexplore" / "judge" / f"{port}.sqlite"
    begun(state, "patient", 24)
    begun(state, "deadly", 25)
    with running_judge(tmp_path, port=port, XDG_STATE_HOME=str(tmp_path)) as judge:
        given_up = look(judge, "deadly", wait=0)
        assert given_up["state"] == "failed"
        assert "25 times" in given_up["error"]
        wait_until(lambda: judge.processes("noted"))
    with running_judge(tmp_path, port=port, XDG_STATE_HOME=str(tmp_path)) as judge:
        assert look(judge, "patient", wait=0)["state"] in ("queued", "running")
        assert cancel(judge, "patient")["state"] == "cancelled"


def test_orderly_end_clears_the_starts_of_unfinished_jobs() -> None:
    async def starts() -> list[int]:
        with journal_in_memory() as writer:
            request = EvaluationRequest(custom_model_src="x = 1")
            job = Job("candidate", request, id="job", durable=True, digest="d")
            await writer.accept(job)
            found = []
            for step in (writer.begin(job), writer.begin(job), writer.rest(), writer.begin(job)):
                await step
                found += [row.starts for row in await writer.jobs()]
        return found

    assert asyncio.run(starts()) == [1, 2, 0, 1]


def test_job_that_cannot_be_written_down_is_refused(
    own_judge: Callable[..., LiveJudge], tmp_path: Path
) -> None:
    state = tmp_path / "state.sqlite"
    judge = own_judge(JUDGE_STATE=str(state))
    assert judge.client.get("/readyz").status_code == 200
    with contextlib.closing(sqlite3.connect(state, isolation_level=None)) as other:
        other.execute("PRAGMA busy_timeout = 10000")
        other.execute("BEGIN IMMEDIATE")
        refused = submit(judge, FOREVER, key="k")
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert judge.client.get("/readyz").status_code == 503
        other.execute("ROLLBACK")
    other.close()
    wait_until(lambda: judge.client.get("/queue/status").json()["total_processing"] == 0)
    assert judge.processes("noted") == []
    assert judged(judge, PASSING, key="k")["state"] == "done"


def test_full_disk_is_found_by_writing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def ask() -> list[bool]:
        store = Store(tmp_path / "state.sqlite")
        found = [await Journal(store).writable()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            full = Journal(store)
            found.append(await full.writable())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        found += [await full.writable(), await Journal(store).writable()]
        store.close()
        return found

    assert asyncio.run(ask()) == [True, False, False, True]  # what was found holds for a second


def test_jobs_that_arrive_together_are_committed_together(tmp_path: Path) -> None:
    async def accept() -> int:
        store = Store(tmp_path / "state.sqlite")
        writer = Journal(store)
        request = EvaluationRequest(custom_model_src="x = 1")
        jobs = [Job("candidate", request, durable=True, digest="d") for _ in range(100)]
        await asyncio.gather(*map(writer.accept, jobs))
        pages = (tmp_path / "state.sqlite-wal").stat().st_size // 4096
        assert len(await writer.jobs()) == 100
        store.close()
        return pages

    assert asyncio.run(accept()) < 100  # one commit of a job writes four


def test_failed_transaction_fails_alone() -> None:
    async def execute() -> tuple[list[object], list[str]]:
        with journal_in_memory() as writer:
            request = EvaluationRequest(custom_model_src="x = 1")
            jobs = [Job("candidate", request, id=name, durable=True, digest="d") for name in "abac"]
            outcomes = await asyncio.gather(*map(writer.accept, jobs), return_exceptions=True)
            found = [each.id for each in await writer.jobs()]
        return list(outcomes), found

    outcomes, found = asyncio.run(execute())
    assert [isinstance(outcome, sqlite3.Error) for outcome in outcomes] == [False, False, True, False]
    assert found == ["a", "b", "c"]


def test_second_judge_on_one_state_file_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    with pytest.raises(ConfigError, match="in use by another judge"):
        Store(tmp_path / "state.sqlite")
    store.close()
    Store(tmp_path / "state.sqlite").close()


@pytest.mark.parametrize("content", [b"no database at all, just text", None])
def test_unusable_state_file_names_the_variable(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(content) if content is not None else path.mkdir()
    with pytest.raises(ConfigError, match="JUDGE_STATE"):
        Store(path)


def test_state_is_for_the_judges_user_alone(tmp_path: Path) -> None:
    Store(tmp_path / "deep" / "state.sqlite").close()
    assert (tmp_path / "deep").stat().st_mode & 0o077 == 0
    assert (tmp_path / "deep" / "state.sqlite").stat().st_mode & 0o077 == 0


def test_only_oldest_finished_jobs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT", 3)

    async def fill() -> list[Job]:
        with journal_in_memory() as writer:
            request = EvaluationRequest(custom_model_src="x = '\ud800'")
            for number in range(8):
                name = str(number)
                job = Job("candidate", request, id=name, durable=True, digest="d")
                await writer.accept(job)
                if number != 2:
                    await writer.finish(job, JobAnswer(id=name, kind="candidate", state="failed", error="x"))
            return await writer.jobs()

    rows = asyncio.run(fill())
    assert [row.id for row in rows] == ["2", "5", "6", "7"]
    assert rows[0].body is not None
    assert rows[0].body.request.custom_model_src == "x = '\ud800'"
    assert all(row.body is None and row.answer is not None for row in rows[1:])


def test_default_state_file_follows_xdg_and_the_port() -> None:
    assert default_state_file(7, {"XDG_STATE_HOME": "/s"}) == Path("/s/adaexplore/judge/7.sqlite")
    assert default_state_file(7, {}) == Path.home() / ".cache/adaexplore/judge/7.sqlite"


def test_job_that_finished_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT", 2)

    async def kept() -> list[str]:
        with journal_in_memory() as writer:
            request = EvaluationRequest(custom_model_src="x = 1")
            jobs = [Job("candidate", request, id=f"{n}", durable=True, digest="d") for n in range(5)]
            for job in jobs:
                await writer.accept(job)
            for job in (*jobs[1:4], jobs[0]):  # the last one still runs
                await writer.finish(job, JobAnswer(id=job.id, kind="candidate", state="cancelled"))
            return [job.id for job in await writer.jobs()]

    assert asyncio.run(kept()) == ["4", "3", "0"]


def test_shutdown_ends_a_long_poll_with_503(tmp_path: Path) -> None:
    with running_judge(tmp_path) as judge, ThreadPoolExecutor(1) as executor:
        job = submit(judge, FOREVER).json()["id"]
        wait_until(lambda: judge.processes("noted"))
        poll = executor.submit(judge.client.get, f"/v2/jobs/{job}", params={"wait": 60})
        wait_until(lambda: poll.running())
        time.sleep(0.3)  # until the judge has the question
        judge.process.terminate()
        answer = poll.result(60)
        assert (answer.status_code, answer.json()) == (503, {"detail": "the judge is shutting down"})
        judge.process.wait(60)
