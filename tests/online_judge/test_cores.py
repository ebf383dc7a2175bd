import os
import threading

import pytest

from online_judge.common.cores import ANY_CORE, run_on, share_out, time_on


def test_each_device_gets_two_cores_of_its_own() -> None:
    first, second = share_out(range(16), [0, 1])
    assert (first.timing, second.timing) == ((0, 1), (2, 3))
    assert first.others == second.others == tuple(range(4, 16))


def test_judges_of_different_devices_choose_different_cores() -> None:
    (one,), (other,) = share_out(range(32), [0]), share_out(range(32), [3])
    assert (one.timing, other.timing) == ((0, 1), (6, 7))
    assert len(one.others) == len(other.others) == 30


@pytest.mark.parametrize(("cores", "devices"), [(2, [0]), (7, [0]), (15, [0, 1]), (16, [2])])
def test_small_machines_set_no_cores_apart(cores: int, devices: list[int]) -> None:
    assert share_out(range(cores), devices) == (ANY_CORE,) * len(devices)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_first_core_is_reserved_for_launching_calls() -> None:
    before = sorted(os.sched_getaffinity(0))
    seen: set[int] = set()
    wake, end = threading.Event(), threading.Event()

    def other_thread() -> None:
        wake.wait()
        seen.update(os.sched_getaffinity(0))
        end.set()

    threading.Thread(target=other_thread).start()
    try:
        time_on(before[:2])
        mine = os.sched_getaffinity(0)
    finally:
        run_on([])  # changes nothing
        wake.set()
        end.wait()
        run_on(before)
    assert mine == {before[0]}
    assert seen == {before[1]}
