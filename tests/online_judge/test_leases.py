"""Leases of a device: what an evaluator asks for over its channel, and what the gateway does."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from online_judge.common.cores import ANY_CORE, Cores, run_on
from online_judge.evaluator.leases import Leases
from online_judge.processes.device_lock import DeviceLock
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel
from online_judge.slots.leases import EvaluatorLeases

from .live import wait_until

PATIENCE_S = 20.0


class Evaluator:
    """One side asks, the other obeys in a thread until the first is closed."""

    def __init__(self, lock: DeviceLock, cores: Cores = ANY_CORE) -> None:
        theirs, ours = channel.pair()
        self.control = Channel(theirs)
        self.leases = Leases(self.control, cores)
        self._ours = Channel(ours)
        self.desk = EvaluatorLeases(lock, self._ours.send_json)
        self._thread = threading.Thread(target=self._obey, daemon=True)
        self._thread.start()

    def _obey(self) -> None:
        try:
            while True:
                self.desk.obey(self._ours.receive_json()[0])
        except channel.ChannelClosed:
            self.desk.close()
            self._ours.close()

    def die(self) -> None:
        self.control.close()
        self._thread.join(PATIENCE_S)


@pytest.fixture
def lock(tmp_path: Path) -> DeviceLock:
    return DeviceLock(tmp_path / "gpu.lock")


@pytest.fixture
def evaluator(lock: DeviceLock) -> Iterator[Evaluator]:
    made = Evaluator(lock)
    yield made
    made.die()


@contextmanager
def child() -> Iterator[int]:
    """A process with a child that sleeps; gives the id of the former."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as process:
        wait_until(lambda: bool(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()))
        yield process.pid
        subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=False)
        process.kill()


def state_of_child(pid: int) -> str:
    grandchild = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
    return Path(f"/proc/{grandchild}/stat").read_text().rpartition(")")[2].split()[0]


def test_exclusive_lease_keeps_others_out(lock: DeviceLock, evaluator: Evaluator) -> None:
    other = Evaluator(lock)
    got: list[str] = []

    def use() -> None:
        with other.leases.hold(exclusive=False) as hold:
            got.append("other")
            assert hold.waited_s >= 0.1

    with evaluator.leases.hold(exclusive=True) as hold:
        thread = threading.Thread(target=use)
        thread.start()
        thread.join(0.2)
        assert got == []
        assert other.desk.waited_s() >= 0.1
    thread.join(PATIENCE_S)
    assert got == ["other"]
    assert hold.held_s >= 0.2
    other.die()


def test_shared_leases_are_there_together(lock: DeviceLock, evaluator: Evaluator) -> None:
    other = Evaluator(lock)
    with evaluator.leases.hold(exclusive=False), other.leases.hold(exclusive=False) as hold:
        assert hold.waited_s < 5
    other.die()


@pytest.mark.parametrize("kind", ["exclusive", "shared", "timing_memory"])
def test_leases_of_a_dead_evaluator_are_returned(lock: DeviceLock, evaluator: Evaluator, kind: str) -> None:
    dead = Evaluator(lock)
    dead.control.send_json({"lease": "take", "kind": kind})
    assert "granted" in dead.control.receive_json()[0]
    dead.die()
    with evaluator.leases.timing_memory(), evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5


def test_evaluator_that_dies_while_it_waits_leaves_nothing(lock: DeviceLock, evaluator: Evaluator) -> None:
    with evaluator.leases.hold(exclusive=True):
        dead = Evaluator(lock)
        dead.control.send_json({"lease": "take", "kind": "exclusive"})
        wait_until(lambda: dead.desk.waited_s() > 0)
        dead.die()
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5


def test_inner_use_is_nothing_new(evaluator: Evaluator) -> None:
    with evaluator.leases.hold(exclusive=True), evaluator.leases.hold(exclusive=False) as inner:
        assert inner.waited_s == 0
    with (
        evaluator.leases.hold(exclusive=False),
        pytest.raises(RuntimeError),
        evaluator.leases.hold(exclusive=True),
    ):
        pass
    with evaluator.leases.timing_memory(), evaluator.leases.timing_memory():
        pass


def test_exclusive_users_stop_the_candidates_that_may_be_stopped(
    lock: DeviceLock, evaluator: Evaluator
) -> None:
    with child() as pid:
        tuning = Evaluator(lock)
        tuning.desk.supervisor = pid
        with tuning.leases.stoppable():
            with evaluator.leases.hold(exclusive=True):
                wait_until(lambda: state_of_child(pid) == "T")
                time.sleep(0.1)
            wait_until(lambda: state_of_child(pid) == "S")
        assert evaluator.leases.stopped_s() >= 0.1
        tuning.die()


def test_candidate_of_ones_own_is_stopped_at_will(evaluator: Evaluator) -> None:
    with child() as pid:
        evaluator.desk.supervisor = pid
        with evaluator.leases.stopped():
            assert state_of_child(pid) == "T"
        wait_until(lambda: state_of_child(pid) == "S")


@pytest.mark.parametrize(
    "message",
    [
        {"lease": "take", "kind": "everything"},
        {"lease": "take"},
        {"lease": "return"},
        {"lease": ["take"]},
        {"lease": "give"},
    ],
)
def test_nonsense_ends_all_leases(lock: DeviceLock, evaluator: Evaluator, message: dict[str, object]) -> None:
    broken = Evaluator(lock)
    with broken.leases.hold(exclusive=True):
        pass
    broken.control.send_json({"lease": "take", "kind": "exclusive"})
    broken.control.receive_json()
    if message == {"lease": "return"}:
        broken.control.send_json(message)
    broken.control.send_json(message)
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5
    assert broken.desk.waited_s() < 5
    broken.die()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_exclusive_use_runs_on_the_cores_for_timing(lock: DeviceLock) -> None:
    before = sorted(os.sched_getaffinity(0))
    made = Evaluator(lock, Cores((before[0],), tuple(before[1:])))
    try:
        with made.leases.hold(exclusive=True):
            inside = os.sched_getaffinity(0)
        after = os.sched_getaffinity(0)
        with made.leases.hold(exclusive=False):
            shared = os.sched_getaffinity(0)
    finally:
        run_on(before)
        made.die()
    assert inside == {before[0]}
    assert after == shared == set(before[1:])
