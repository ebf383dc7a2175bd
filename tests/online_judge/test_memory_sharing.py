"""Jobs beside each other on a device, and those that need more of its memory."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import FEW, Cancelled, GpuLeases, NotEnoughMemory
from online_judge.slots.conversation import Attempts

NEVER = threading.Event()
FORK_SERVER = cast(ForkClient, SimpleNamespace(generation=1))
Result = TypeVar("Result")


@pytest.fixture
def leases(tmp_path: Path) -> GpuLeases:
    return GpuLeases(tmp_path / "gpu.lock")


def use(
    leases: GpuLeases, problem: str, cancelled: threading.Event, work: Callable[[bool], Result]
) -> Result:
    """Do a job in as many attempts as needed."""
    attempts = Attempts(FORK_SERVER, leases, problem, cancelled)
    while attempts.another():
        with attempts.attempt() as alone:
            return work(alone)
    raise AssertionError("no attempt gave a result")


def small(alone: bool) -> str:
    return "alone" if alone else "beside"


def large(alone: bool) -> str:
    if not alone:
        raise NotEnoughMemory("2 GiB are free")
    return "alone"


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_jobs_run_side_by_side(leases: GpuLeases) -> None:
    together = threading.Barrier(3)

    def meet(alone: bool) -> bool:
        together.wait(10)
        return alone

    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(use, leases, "p", NEVER, meet) for _ in range(3)]
    assert [job.result() for job in jobs] == [False] * 3


def test_log_says_what_lacked_memory(leases: GpuLeases, caplog: pytest.LogCaptureFixture) -> None:
    use(leases, "p", NEVER, large)
    said = "too little memory: the job is tried again beside 0 others (2 GiB are free)"
    assert caplog.messages == [said]


def test_scarcity_frees_idle_evaluators_first(leases: GpuLeases) -> None:
    order: list[str] = []
    leases.on_scarcity += [lambda: order.append("first slot"), lambda: order.append("second slot")]

    def needing(alone: bool) -> str:
        order.append(small(alone))
        return large(alone)

    assert use(leases, "p", NEVER, small) == "beside"
    assert order == []
    assert use(leases, "p", NEVER, needing) == "alone"
    assert order == ["beside", "first slot", "second slot", "alone"]


def test_waiting_processes_end_before_a_job_runs_alone(leases: GpuLeases) -> None:
    ended: list[int] = []
    leases.on_alone.append(lambda: ended.append(0))
    seen = []
    for others in (FEW, 0):
        with leases.claim("p", NEVER, others=others):
            seen.append((len(ended), leases.runs_alone))
    assert seen == [(0, False), (1, True)]
    assert not leases.runs_alone


def test_jobs_that_lacked_memory_run_beside_few(leases: GpuLeases) -> None:
    together, lock = 3 * FEW, threading.Lock()
    met, running, most = threading.Barrier(together), [0], [0]

    def work(failing: list[bool]) -> str:
        if failing.pop():
            met.wait(10)  # all run at once before the first of them fails
            raise NotEnoughMemory
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.05)
        with lock:
            running[0] -= 1
        return "done"

    def job(number: int) -> str:
        failing = [False, True]
        return use(leases, f"p{number}", NEVER, lambda alone: work(failing))

    with ThreadPoolExecutor(together) as threads:
        assert list(threads.map(job, range(together))) == ["done"] * together
    assert most == [FEW + 1]


def test_job_without_memory_waits_alone(leases: GpuLeases) -> None:
    end, inside, order = threading.Event(), threading.Event(), []

    def long(alone: bool) -> None:
        inside.set()
        end.wait(10)
        order.append("long")

    attempts: list[bool] = []

    def needing(alone: bool) -> None:
        attempts.append(alone)
        large(alone)
        order.append("large")

    def late(alone: bool) -> None:
        order.append("late")

    with ThreadPoolExecutor(3) as threads:
        threads.submit(use, leases, "a", NEVER, long)
        assert inside.wait(10)
        threads.submit(use, leases, "b", NEVER, needing)
        wait_for(lambda: len(attempts) == 1 and leases.waiting == 1)
        threads.submit(use, leases, "c", NEVER, late)
        end.set()
    assert (order, attempts) == (["long", "large", "late"], [False, True])
    assert use(leases, "c", NEVER, small) == "beside"


def test_too_large_problem_runs_alone_for_a_while(leases: GpuLeases) -> None:
    assert use(leases, "p", NEVER, large) == "alone"
    seen = [use(leases, "p", NEVER, small) for _ in range(10)]
    assert seen == ["alone"] * 8 + ["beside"] * 2
    assert use(leases, "q", NEVER, small) == "beside"


def test_least_number_of_others_is_remembered(leases: GpuLeases) -> None:
    leases.most_running = 2 * FEW
    attempts: list[bool] = []

    def needing(alone: bool) -> str:
        attempts.append(alone)
        return large(alone)

    assert use(leases, "p", NEVER, needing) == "alone"  # as usual, beside few, alone
    assert attempts == [False, False, True]
    leases.remember("p", FEW)  # by a job that began earlier
    assert use(leases, "p", NEVER, needing) == "alone"
    assert attempts[3:] == [True]


@pytest.mark.parametrize("error", [NotEnoughMemory, ValueError])
def test_failing_job_does_not_block_others(leases: GpuLeases, error: type[Exception]) -> None:

    def fail(alone: bool) -> None:
        raise error

    with pytest.raises(error):
        use(leases, "p", NEVER, fail)
    assert use(leases, "q", NEVER, small) == "beside"


@pytest.mark.parametrize("waits_to_be_alone", [True, False])
def test_waiting_ends_when_nobody_wants_the_result(leases: GpuLeases, waits_to_be_alone: bool) -> None:
    end, inside, cancelled = threading.Event(), threading.Event(), threading.Event()

    def long(alone: bool) -> None:
        if alone is not waits_to_be_alone:
            inside.set()
            end.wait(10)
        else:
            large(alone)

    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(use, leases, "a", NEVER, long)
        assert inside.wait(10)
        waiting = threads.submit(use, leases, "b", cancelled, large if waits_to_be_alone else small)
        cancelled.set()
        with pytest.raises(Cancelled):
            waiting.result(10)
        end.set()
        held.result(10)
    assert use(leases, "c", NEVER, small) == "beside"


def test_forgotten_large_problem_runs_beside_others_again(leases: GpuLeases) -> None:
    assert use(leases, "p", NEVER, large) == "alone"
    leases.forget("p")
    assert use(leases, "p", NEVER, small) == "beside"
