"""The board of jobs with made-up slots and caches."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobRequest
from online_judge.common.tokens import Caller
from online_judge.queue import board, journal
from online_judge.queue.board import JobBoard
from online_judge.queue.cache import Known, Question, ResultCache
from online_judge.queue.evaluations import Evaluations
from online_judge.queue.job import Job
from online_judge.queue.journal import Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import QueueFull, Scheduler
from online_judge.queue.store import Store
from online_judge.settings import Settings
from online_judge.slots import baselines
from online_judge.slots.devices import Device, Machine
from online_judge.slots.jobs import EvaluationJob
from tests.verdicts import make_verdict, metadata_of

from .test_placement import A100, H100, slot
from .test_scheduler import slots

BODY = JobRequest(request=EvaluationRequest(custom_model_src="x = 1"))
GPU = Device(0, "cuda", "", "GPU")  # that of the made-up slots
A, B = Caller("a", "a", max_queued=2), Caller("b", "b")


class BrokenCache(ResultCache):
    async def get(self, question: Question) -> Known | None:
        raise RuntimeError("by hand")


def found(slot: object, job: EvaluationJob, cancelled: threading.Event) -> Verdict:
    assert isinstance(job.request, EvaluationRequest)
    facts = {"source": job.request.custom_model_src, "recorded_ms": job.recorded_ms}
    return make_verdict(status=Status.WRONG_VALUE, metadata=facts)


def with_board(
    body: Callable[[JobBoard], Awaitable[None]],
    cache: type[ResultCache] | None = None,
    *,
    start: bool = False,
) -> None:
    async def run() -> None:
        store, metrics, settings = Store(None), Metrics(), Settings(cache_v2=cache is not None)
        evaluations = Evaluations(settings, Machine(True, 1, (GPU,), "sm_90"), {}, metrics)
        scheduler = Scheduler(slots(0), 10, found)
        if start:  # else all jobs wait
            asyncio.get_running_loop().call_later(0.1, scheduler.start)
        known = (cache or ResultCache)(store, metrics)
        board = JobBoard(scheduler, evaluations, Journal(store), known, metrics)
        try:
            await body(board)
        finally:
            await board.close()
            await scheduler.close()
            store.close()

    asyncio.run(run())


def test_retry_after_an_unexpected_error_does_not_hang() -> None:
    async def body(board: JobBoard) -> None:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="by hand"):
                await asyncio.wait_for(board.submit(Job.of_v2(BODY, A, "key")), 10)
        assert sum(board.count().values()) == 0

    with_board(body, BrokenCache)


def test_client_has_its_own_jobs_and_keys() -> None:
    async def body(board: JobBoard) -> None:
        mine, theirs = [await board.submit(Job.of_v2(BODY, caller, "key")) for caller in (A, B)]
        assert mine.id != theirs.id
        assert (await board.submit(Job.of_v2(BODY, A, "key"))).id == mine.id
        assert board.find(mine.id, "b") is None
        assert board.find(mine.id, "a") is mine
        await board.cancel(mine)
        assert board.look(mine).state == "cancelled"

    with_board(body)


def test_identical_jobs_count_for_their_own_clients() -> None:
    async def body(board: JobBoard) -> None:
        jobs = [await board.submit(Job.of_v2(BODY, caller)) for caller in (A, B, A, A)]
        for number in (2, 0):  # one that waits for the job of another, then the job: it goes on for b
            with pytest.raises(QueueFull, match="Client a"):  # the first is about to start and counts not
                await board.submit(Job.of_v2(BODY, A))
            await board.cancel(jobs[number])
            if number:
                jobs.append(await board.submit(Job.of_v2(BODY, A)))
        with pytest.raises(QueueFull, match="Client a"):
            await board.submit(Job.of_v2(BODY, A))
        await board.cancel(jobs[3])
        await board.submit(Job.of_v2(BODY, A))
        await board.submit(Job.of_v2(BODY, B))

    with_board(body)


def test_cached_verdict_applies_only_to_its_gpu() -> None:
    async def run() -> None:
        store, metrics = Store(None), Metrics()
        machine = Machine(True, 1, (slot(0, H100).device,), "sm_90", elastic=True)
        evaluations = Evaluations(Settings(), machine, {}, metrics)
        scheduler = Scheduler([slot(1, A100)], 10, found)  # it joins after the jobs were accepted
        board = JobBoard(scheduler, evaluations, Journal(store), ResultCache(store, metrics), metrics)
        on_h100 = JobRequest(request=EvaluationRequest(custom_model_src="x = 1", gpu="H100"))
        first, bound = [await board.submit(Job.of_v2(body, A)) for body in (BODY, on_h100)]
        scheduler.start()
        again = Job.of_v2(BODY, A)
        for job in (first, again):
            await board.wait(await board.submit(job) if job is again else job, 10)
            assert (board.look(job).state, board.look(job).cached) == ("done", False)
        assert board.look(bound).state == "queued"
        scheduler.admit([slot(0, H100)])
        await board.wait(bound, 10)
        assert board.look(await board.submit(Job.of_v2(on_h100, A))).cached
        await board.close()
        await scheduler.close()
        store.close()

    asyncio.run(run())


def test_finished_jobs_never_evict_other_clients_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT", 2)
    monkeypatch.setattr(board, "KEPT", 2)

    async def body(board: JobBoard) -> None:
        kept = await board.submit(Job.of_v2(BODY, B))
        await board.cancel(kept)
        mine = []
        for _ in range(4):
            mine.append(await board.submit(Job.of_v2(BODY, A)))
            await board.cancel(mine[-1])
        assert board.find(kept.id, "b") is not None
        assert [board.find(each.id, "a") is not None for each in mine] == [False, False, True, True]

    with_board(body)


def test_shared_evaluation_continues_after_first_client_cancels() -> None:
    async def body(board: JobBoard) -> None:
        first, second = [await board.submit(Job.of_v2(BODY, caller)) for caller in (A, B)]
        await board.cancel(first)
        await board.wait(second, 10)
        assert board.look(first).state == "cancelled"
        verdict = board.look(second).verdict
        assert verdict is not None
        assert metadata_of(verdict)["source"] == "x = 1"
        assert (first.request, second.request) == (None, None)

    with_board(body, start=True)


def test_v1_job_has_outcome_and_is_not_kept() -> None:
    async def body(board: JobBoard) -> None:
        durable = await board.submit(Job.of_v2(BODY, A))
        job = await board.submit(Job("candidate", BODY.request, A))
        assert job.leader is job  # measured again, even beside an identical job
        await board.wait(job, 10)
        assert isinstance(job.outcome, Verdict)
        assert board.find(job.id, "a") is None
        await board.wait(durable, 10)
        assert sum(board.count().values()) == 1

    with_board(body, start=True)


@pytest.mark.parametrize("durable", [True, False])
def test_recorded_time_is_read_once_a_job(monkeypatch: pytest.MonkeyPatch, *, durable: bool) -> None:
    times = [2.5, 1.5]
    monkeypatch.setattr(baselines, "recorded_ms", lambda *place: times.pop())

    async def body(board: JobBoard) -> None:
        job = await board.submit(Job.of_v2(BODY, A) if durable else Job("candidate", BODY.request, A))
        await board.wait(job, 10)
        assert isinstance(job.outcome, Verdict)
        assert metadata_of(job.outcome)["recorded_ms"] == 1.5
        assert times == [2.5]

    with_board(body, start=True)


def test_known_verdict_answers_at_once_unless_forced() -> None:
    async def body(board: JobBoard) -> None:
        first = await board.submit(Job.of_v2(BODY, A))
        await board.wait(first, 10)
        again = await board.submit(Job.of_v2(BODY, A))
        assert (again.state, board.look(again).cached) == ("done", True)
        forced = await board.submit(Job.of_v2(BODY.model_copy(update={"force": True}), A))
        await board.wait(forced, 10)
        assert (forced.state, board.look(forced).cached) == ("done", False)

    with_board(body, ResultCache, start=True)


def test_job_that_is_abandoned_leaves_the_queue() -> None:
    async def body(board: JobBoard) -> None:
        job = await board.submit(Job("candidate", BODY.request, A))
        board.abandon(job)
        for _ in range(3):  # one that is about to start, and as many as this client may have waiting
            await board.submit(Job("candidate", BODY.request, A))

    with_board(body)
