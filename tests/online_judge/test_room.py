"""Jobs beside each other on a device, and the one that needs it alone."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from online_judge.slots.sharing import Cancelled, DeviceSharing, NotEnoughMemory

NEVER = threading.Event()


def small(alone: bool) -> str:
    return "alone" if alone else "beside"


def large(alone: bool) -> str:
    if not alone:
        raise NotEnoughMemory
    return "alone"


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_jobs_run_side_by_side() -> None:
    sharing, together = DeviceSharing(), threading.Barrier(3)

    def meet(alone: bool) -> bool:
        together.wait(10)
        return alone

    with ThreadPoolExecutor(3) as threads:
        jobs = [threads.submit(sharing.use, "p", NEVER, meet) for _ in range(3)]
    assert [job.result() for job in jobs] == [False] * 3


def test_slots_give_back_what_they_keep_before_a_job_begins_alone() -> None:
    device, order = DeviceSharing(), []
    device.on_alone += [lambda: order.append("first slot"), lambda: order.append("second slot")]

    def needing(alone: bool) -> str:
        order.append(small(alone))
        return large(alone)

    assert device.use("p", NEVER, small) == "beside"
    assert order == []
    assert device.use("p", NEVER, needing) == "alone"
    assert order == ["beside", "first slot", "second slot", "alone"]


def test_job_that_finds_no_room_waits_for_all_others_and_keeps_new_ones_out() -> None:
    sharing, end, inside, order = DeviceSharing(), threading.Event(), threading.Event(), []

    def long(alone: bool) -> None:
        inside.set()
        end.wait(10)
        order.append("long")

    def needing(alone: bool) -> None:
        large(alone)
        order.append("large")

    def late(alone: bool) -> None:
        order.append("late")

    with ThreadPoolExecutor(3) as threads:
        threads.submit(sharing.use, "a", NEVER, long)
        assert inside.wait(10)
        threads.submit(sharing.use, "b", NEVER, needing)
        wait_for(lambda: len(sharing._line) == 1)
        threads.submit(sharing.use, "c", NEVER, late)
        end.set()
    assert order == ["long", "large", "late"]
    assert sharing.use("c", NEVER, small) == "beside"


def test_problem_that_was_too_large_goes_in_alone_for_a_while() -> None:
    sharing = DeviceSharing()
    assert sharing.use("p", NEVER, large) == "alone"
    seen = [sharing.use("p", NEVER, small) for _ in range(10)]
    assert seen == ["alone"] * 8 + ["beside"] * 2
    assert sharing.use("q", NEVER, small) == "beside"


@pytest.mark.parametrize("error", [NotEnoughMemory, ValueError])
def test_failing_job_leaves_the_room_open(error: type[Exception]) -> None:
    sharing = DeviceSharing()

    def fail(alone: bool) -> None:
        raise error

    with pytest.raises(error):
        sharing.use("p", NEVER, fail)
    assert sharing.use("q", NEVER, small) == "beside"


@pytest.mark.parametrize("waits_to_be_alone", [True, False])
def test_waiting_ends_when_nobody_wants_the_result(waits_to_be_alone: bool) -> None:
    sharing, end, inside, cancelled = DeviceSharing(), threading.Event(), threading.Event(), threading.Event()

    def long(alone: bool) -> None:
        if alone is not waits_to_be_alone:
            inside.set()
            end.wait(10)
        else:
            large(alone)

    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(sharing.use, "a", NEVER, long)
        assert inside.wait(10)
        waiting = threads.submit(sharing.use, "b", cancelled, large if waits_to_be_alone else small)
        cancelled.set()
        with pytest.raises(Cancelled):
            waiting.result(10)
        end.set()
        held.result(10)
    assert sharing.use("c", NEVER, small) == "beside"


def test_job_that_needs_too_much_by_itself_leaves_its_problem_beside_others() -> None:
    sharing = DeviceSharing()
    assert sharing.use("p", NEVER, large) == "alone"
    sharing.forget("p")
    assert sharing.use("p", NEVER, small) == "beside"
