"""The queue with made-up slots."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.common.tokens import Caller
from online_judge.queue.cache import Question
from online_judge.queue.job import Job
from online_judge.queue.scheduler import HEAD_START, QueueFull, Scheduler
from online_judge.slots.jobs import EvaluationJob

Work = Callable[[Any, threading.Event], Any]


class Asked(EvaluationRequest):
    """A request that brings its evaluation."""

    work: Work


@dataclass(eq=False)
class FakeSlot:
    device: SimpleNamespace
    closed: bool = False

    def close(self) -> None:
        self.closed = True


def slots(*devices: int) -> list[FakeSlot]:
    return [FakeSlot(SimpleNamespace(id=device, hardware="GPU")) for device in devices]


def run(slot: FakeSlot, job: EvaluationJob, cancelled: threading.Event) -> Any:
    assert isinstance(job.request, Asked)
    return job.request.work(slot, cancelled)


def submit(
    scheduler: Scheduler,
    work: Work,
    device: int | None = None,
    *,
    priority: int = 0,
    client: str = "",
    max_queued: int | None = None,
    accepted_before: bool = False,
    identical: Job | None = None,
) -> Job:
    """Submit a job of its own, or one that shares the evaluation of an identical one."""
    job = Job("candidate", Asked(work=work), Caller(client, client, max_queued), priority, device=device)
    job.question = Question(job.id) if identical is None else identical.question
    scheduler.submit(job, accepted_before=accepted_before)
    return job


def share(scheduler: Scheduler, job: Job, **fields: Any) -> Job:
    return submit(scheduler, lambda slot, cancelled: None, identical=job, **fields)


async def result(job: Job) -> Any:
    await job.ended.wait()
    if isinstance(job.outcome, Exception):
        raise job.outcome
    return job.outcome


def with_scheduler(
    scheduler_slots: list[FakeSlot],
    size: int,
    body: Callable[[Scheduler], Awaitable[None]],
    *,
    pinned: bool = False,
) -> None:
    async def serve() -> None:
        scheduler = Scheduler(scheduler_slots, size, run, pinned=pinned)
        scheduler.start()
        try:
            await body(scheduler)
        finally:
            await scheduler.close()

    asyncio.run(serve())
    assert all(slot.closed for slot in scheduler_slots)


def test_burst_within_one_tick_is_counted_at_once() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()

        def work(slot: FakeSlot, cancelled: threading.Event) -> int:
            release.wait(10)
            return int(slot.device.id)

        jobs, refused = [], 0
        for _ in range(600):  # no await in between: nothing can start yet
            try:
                jobs.append(submit(scheduler, work))
            except QueueFull:
                refused += 1
        with pytest.raises(QueueFull, match=r"Queue is full\. Max queue size: 5"):
            submit(scheduler, work)
        assert (len(jobs), refused) == (4 + 5 * 4, 600 - 24)
        status = scheduler.status()
        assert (status.total_queued, status.total_processing) == (20, 4)
        await asyncio.gather(*(job.started.wait() for job in jobs[:4]))
        await asyncio.sleep(0)
        assert scheduler.status() == status
        assert {load.processing for load in status.per_device.values()} == {1}
        release.set()
        results = await asyncio.gather(*(result(job) for job in jobs))
        assert set(results) == {0, 1, 2, 3}
        assert scheduler.status().total_processing == 0

    with_scheduler(slots(0, 1, 2, 3), 5, body)


def test_starting_job_counts_on_the_free_device() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        await submit(scheduler, lambda slot, cancelled: release.wait(10)).started.wait()
        submit(scheduler, lambda slot, cancelled: None)  # no await: it has not started yet
        loads = scheduler.status().per_device.values()
        assert [(load.processing, load.queued) for load in loads] == [(1, 0), (1, 0)]
        release.set()

    with_scheduler(slots(0, 1), 10, body)


def test_jobs_for_free_slots_have_nothing_in_front() -> None:
    async def body(scheduler: Scheduler) -> None:
        jobs = [submit(scheduler, lambda slot, cancelled: None) for _ in range(4)]  # none has started yet
        assert [scheduler.position(job) for job in jobs] == [0, 0, 0, 1]

    with_scheduler(slots(0, 1), 10, body)


def test_queue_time_is_the_time_before_the_start() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        first = submit(scheduler, lambda slot, cancelled: release.wait(10))
        await first.started.wait()
        second = submit(scheduler, lambda slot, cancelled: None)
        await asyncio.sleep(0.1)
        release.set()
        await result(second)
        assert 0 <= first.queue_time_s < second.queue_time_s
        assert second.queue_time_s >= 0.1

    with_scheduler(slots(0), 10, body)


def test_free_device_takes_jobs_behind_busy_one() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        blocker = submit(scheduler, lambda slot, cancelled: release.wait(10))
        others = [submit(scheduler, lambda slot, cancelled: int(slot.device.id)) for _ in range(6)]
        results = await asyncio.wait_for(asyncio.gather(*(result(job) for job in others)), 10)
        assert len(set(results)) == 1
        assert not blocker.ended.is_set()
        release.set()
        await result(blocker)

    with_scheduler(slots(0, 1), 10, body)


def test_pinned_jobs_stay_on_their_device() -> None:
    async def body(scheduler: Scheduler) -> None:
        jobs = [submit(scheduler, lambda slot, cancelled: int(slot.device.id), device=1) for _ in range(3)]
        assert await asyncio.gather(*(result(job) for job in jobs)) == [1, 1, 1]
        for _ in range(3):  # one for the free slot, two that wait
            submit(scheduler, lambda slot, cancelled: None, device=0)
        with pytest.raises(QueueFull):
            submit(scheduler, lambda slot, cancelled: None, device=0)
        await result(submit(scheduler, lambda slot, cancelled: None, device=1))

    with_scheduler(slots(0, 1), 2, body, pinned=True)


def test_cancelled_job_leaves_the_queue() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        running = submit(scheduler, lambda slot, cancelled: release.wait(10))
        await running.started.wait()
        waiting = submit(scheduler, lambda slot, cancelled: None)
        with pytest.raises(QueueFull):
            submit(scheduler, lambda slot, cancelled: None)
        scheduler.withdraw(waiting)
        assert scheduler.status().total_queued == 0
        submit(scheduler, lambda slot, cancelled: None)
        release.set()
        await result(running)

    with_scheduler(slots(0), 1, body)


def test_job_error_reaches_owner_and_slot_continues() -> None:
    async def body(scheduler: Scheduler) -> None:
        def fail(slot: FakeSlot, cancelled: threading.Event) -> None:
            raise ValueError("by hand")

        with pytest.raises(ValueError, match="by hand"):
            await result(submit(scheduler, fail))
        assert await result(submit(scheduler, lambda slot, cancelled: 7)) == 7

    with_scheduler(slots(0), 1, body)


def test_closing_cancels_what_runs() -> None:
    seen = []

    async def body(scheduler: Scheduler) -> None:
        job = submit(scheduler, lambda slot, cancelled: seen.append(cancelled.wait(10)))
        await job.started.wait()

    with_scheduler(slots(0), 1, body)
    assert seen == [True]


def test_higher_priority_goes_first_and_equals_keep_order() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        order: list[str] = []
        blocker = submit(scheduler, lambda slot, cancelled: release.wait(10))
        await blocker.started.wait()
        names = {"a": 0, "b": 0, "high": 5, "low": -1, "c": 0}
        jobs = {
            name: submit(
                scheduler,
                lambda slot, cancelled, name=name: order.append(name),  # type: ignore[misc]
                priority=priority,
            )
            for name, priority in names.items()
        }
        assert [scheduler.position(jobs[name]) for name in ("high", "a", "b", "c", "low")] == [0, 1, 2, 3, 4]
        share(scheduler, jobs["c"], priority=9)
        assert scheduler.position(jobs["c"]) == 0
        release.set()
        await asyncio.gather(*(result(job) for job in jobs.values()))
        assert order == ["c", "high", "a", "b", "low"]

    with_scheduler(slots(0), 10, body)


def test_jobs_sharing_another_evaluation_count_as_waiting() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        job = submit(scheduler, lambda slot, cancelled: release.wait(10))
        await job.started.wait()
        share(scheduler, job)
        joined = share(scheduler, job)
        assert scheduler.status().total_queued == 2
        for identical in (job, None):
            with pytest.raises(QueueFull):
                submit(scheduler, lambda slot, cancelled: None, identical=identical)
        taken_before = submit(scheduler, lambda slot, cancelled: None, accepted_before=True)
        scheduler.withdraw(taken_before)
        scheduler.withdraw(joined)
        share(scheduler, job)
        release.set()
        await result(job)

    with_scheduler(slots(0), 2, body)


def submit_named(scheduler: Scheduler, order: list[str], name: str, **fields: object) -> Job:
    return submit(scheduler, lambda slot, cancelled: order.append(name), **fields)  # type: ignore[arg-type]


def test_clients_take_turns_and_newcomers_precede_backlogs() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        order: list[str] = []
        await submit(scheduler, lambda slot, cancelled: release.wait(10)).started.wait()
        jobs = [submit_named(scheduler, order, f"a{number}", client="a") for number in range(4)]
        jobs += [submit_named(scheduler, order, f"b{number}", client="b") for number in range(2)]
        jobs += [submit_named(scheduler, order, "c0", client="c")]
        assert [scheduler.position(job) for job in jobs[4:]] == [1, 4, 2]
        release.set()
        await asyncio.gather(*(result(job) for job in jobs))
        assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]

    with_scheduler(slots(0), 10, body)


def test_turns_already_served_are_not_saved_up() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        order: list[str] = []
        for number in range(20):  # "b" has asked for nothing meanwhile
            await result(submit_named(scheduler, [], f"a{number}", client="a"))
        blocker = submit(scheduler, lambda slot, cancelled: release.wait(10), client="a")
        await blocker.started.wait()
        jobs = [
            submit_named(scheduler, order, f"{client}{number}", client=client)
            for client in "ab"
            for number in range(3)
        ]
        release.set()
        await asyncio.gather(*(result(job) for job in jobs))
        assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]

    with_scheduler(slots(0), 10, body)


def test_cancelled_jobs_cost_their_client_no_turn() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        order: list[str] = []
        await submit(scheduler, lambda slot, cancelled: release.wait(10)).started.wait()
        for number in range(5):
            scheduler.withdraw(submit_named(scheduler, order, f"gone{number}", client="a"))
        jobs = [submit_named(scheduler, order, f"b{number}", client="b") for number in range(2)]
        jobs.append(submit_named(scheduler, order, "a", client="a"))
        release.set()
        await asyncio.gather(*(result(job) for job in jobs))
        assert order == ["b0", "a", "b1"]

    with_scheduler(slots(0), 10, body)


def test_waiting_job_is_not_overtaken_for_ever() -> None:
    async def body(scheduler: Scheduler) -> None:
        order: list[str] = []
        gates = [threading.Event() for _ in range(3 * HEAD_START)]

        def urgent(number: int) -> Job:
            def work(slot: FakeSlot, cancelled: threading.Event) -> None:
                gates[number].wait(10)
                order.append("urgent")

            return submit(scheduler, work, priority=1, client="other")

        jobs = [urgent(0)]
        await jobs[0].started.wait()
        patient = submit_named(scheduler, order, "patient", client="a")
        for number in range(1, len(gates)):  # there is always one of a higher priority
            jobs.append(urgent(number))
            gates[number - 1].set()
            await result(jobs[-2])
        gates[-1].set()
        await asyncio.gather(result(patient), *(result(job) for job in jobs))
        assert order.index("patient") in range(HEAD_START - 2, HEAD_START + 3)

    with_scheduler(slots(0), 10, body)


def test_client_queue_limit_caps_its_waiting_jobs() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        order: list[str] = []
        job = submit(scheduler, lambda slot, cancelled: release.wait(10), client="a", max_queued=1)
        await job.started.wait()
        waiting = submit_named(scheduler, order, "a", client="a", max_queued=1)
        with pytest.raises(QueueFull, match="Client a has 1 waiting jobs"):
            submit_named(scheduler, order, "x", client="a", max_queued=1)
        with pytest.raises(QueueFull, match="Client a has 1 waiting jobs"):
            share(scheduler, job, client="a", max_queued=1)
        submit_named(scheduler, order, "b", client="b", max_queued=1)
        scheduler.withdraw(waiting)
        scheduler.withdraw(share(scheduler, job, client="a", max_queued=1))
        submit_named(scheduler, order, "again", client="a", max_queued=1)
        release.set()
        await result(job)

    with_scheduler(slots(0), 10, body)


def test_identical_job_does_not_join_a_cancelled_one() -> None:
    async def body(scheduler: Scheduler) -> None:
        running = submit(scheduler, lambda slot, cancelled: cancelled.wait(10))
        await running.started.wait()
        waiting = submit(scheduler, lambda slot, cancelled: None)
        assert scheduler.withdraw(running) is True
        assert scheduler.withdraw(waiting) is False
        assert await result(running) is True  # it was told of the cancellation
        for gone in (running, waiting):
            again = submit(scheduler, lambda slot, cancelled: 7, identical=gone)
            assert again.leader is again
            assert await result(again) == 7

    with_scheduler(slots(0), 10, body)


def test_identical_job_does_not_join_a_finished_one() -> None:
    async def body(scheduler: Scheduler) -> None:
        first = submit(scheduler, lambda slot, cancelled: 1)
        assert await result(first) == 1
        again = submit(scheduler, lambda slot, cancelled: 2, identical=first)
        assert await result(again) == 2

    with_scheduler(slots(0), 10, body)


def test_job_with_different_best_so_far_runs_separately() -> None:
    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()

        def work(slot: FakeSlot, cancelled: threading.Event) -> None:
            release.wait(10)

        first = submit(scheduler, work)
        same, other = (
            Job("candidate", first.request, question=first.question),
            Job("candidate", first.request.model_copy(update={"best_so_far": 2.0}), question=first.question),
        )
        for job in (same, other):
            scheduler.submit(job)
        assert (same.leader is first, other.leader is other) == (True, True)
        release.set()
        await result(other)

    with_scheduler(slots(0), 10, body)


def test_compile_jobs_wait_for_their_own_slots() -> None:
    async def serve() -> None:
        compile_slot, device_slot = slots(0, 0)
        scheduler = Scheduler([device_slot], 1, run, compile_slots=[compile_slot])
        release = threading.Event()

        def work(slot: FakeSlot, cancelled: threading.Event) -> FakeSlot:
            release.wait(10)
            return slot

        compiles = [Job("compile", Asked(work=work)) for _ in range(2)]
        for job in compiles:
            scheduler.submit(job)
        assert (scheduler.status().total_queued, scheduler.status().total_processing) == (0, 0)
        assert scheduler.oldest_s() == 0
        with pytest.raises(QueueFull):
            scheduler.submit(Job("compile", Asked(work=work)))
        evaluated = submit(scheduler, work)
        assert scheduler.oldest_s() > 0
        scheduler.start()
        release.set()
        assert [await result(job) for job in compiles] == [compile_slot, compile_slot]
        assert await result(evaluated) is device_slot
        await scheduler.close()

    asyncio.run(serve())


def test_idle_gpus_of_another_model_start_nothing() -> None:
    fleet = [
        FakeSlot(SimpleNamespace(id=n, hardware="NVIDIA H200" if n else "NVIDIA H100")) for n in range(3)
    ]

    def ask(scheduler: Scheduler, gpu: str, work: Work) -> Job:
        job = Job("candidate", Asked(work=work, gpu=gpu), Caller("", ""))
        job.question = Question(job.id)
        scheduler.submit(job)
        return job

    async def body(scheduler: Scheduler) -> None:
        release = threading.Event()
        work: Work = lambda slot, cancelled: release.wait(30)  # noqa: E731
        first = ask(scheduler, "H100", work)
        await first.started.wait()
        waiting = [ask(scheduler, "H100", work) for _ in range(3)]
        assert [scheduler.position(job) for job in waiting] == [0, 1, 2]
        status = scheduler.status()
        assert (status.total_queued, status.total_processing) == (3, 1)
        with pytest.raises(QueueFull):
            ask(scheduler, "H100", work)
        other = ask(scheduler, "H200", work)  # its GPU is idle
        await other.started.wait()
        release.set()

    with_scheduler(fleet, 1, body)
