"""Leases of a device: an evaluator's requests over its channel, and the gateway's answers."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from online_judge.common.cores import ANY_CORE, Cores, run_on
from online_judge.evaluator.leases import Leases
from online_judge.processes.gpu_lease import GpuLeases, LeaseServer
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel

from .live import wait_until

PATIENCE_S = 20.0
NOBODY = 2**22 + 1
"""No process has this id."""


KILLED = """
import sys, time
from online_judge.processes.gpu_lease import GpuLeases
with GpuLeases(sys.argv[1]).take("exclusive"):
    time.sleep(60)
"""


class Evaluator:
    """One side asks, the other obeys in a thread until the first is closed."""

    def __init__(self, leases: GpuLeases, cores: Cores = ANY_CORE, supervisor: int = 0) -> None:
        theirs, ours = channel.pair()
        self.control = Channel(theirs)
        self.finished = 0
        self.quiet = [True]  # answers of the device; the last one goes on
        self.waited_for_quiet = 0
        self.leases = Leases(self.control, cores, self._finish, self._wait_for_quiet)
        self._ours = Channel(ours)
        self.desk = LeaseServer(leases, self._ours.send_json, supervisor)
        self._thread = threading.Thread(target=self._obey, daemon=True)
        self._thread.start()

    def _finish(self) -> None:
        self.finished += 1

    def _wait_for_quiet(self) -> bool:
        self.waited_for_quiet += 1
        return self.quiet.pop(0) if len(self.quiet) > 1 else self.quiet[0]

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


def ask(evaluator: Evaluator, kind: str, **fields: float) -> None:
    evaluator.control.send_json({"lease": "take", "kind": kind, **fields})


def is_granted(evaluator: Evaluator, timeout_s: float = PATIENCE_S) -> bool:
    if not channel.is_readable(timeout_s, evaluator.control):
        return False
    return "granted" in evaluator.control.receive_json()[0]


@pytest.fixture
def leases(tmp_path: Path) -> GpuLeases:
    return GpuLeases(tmp_path / "gpu.lock")


@pytest.fixture
def evaluator(leases: GpuLeases) -> Iterator[Evaluator]:
    made = Evaluator(leases)
    yield made
    made.die()


@contextmanager
def child() -> Iterator[int]:
    """Start a process with a child that sleeps, and yield its id, not the child's."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as process:
        wait_until(lambda: bool(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()))
        try:
            yield process.pid
        finally:
            subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=False)
            process.kill()


def state_of_child(pid: int) -> str:
    grandchild = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
    return Path(f"/proc/{grandchild}/stat").read_text().rpartition(")")[2].split()[0]


def test_exclusive_lease_keeps_others_out(leases: GpuLeases, evaluator: Evaluator) -> None:
    other = Evaluator(leases)
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
    assert other.desk.waited_s() >= 0.2  # also when the wait is over
    assert list(other.desk.waits) == ["shared"]
    assert other.desk.waits["shared"] == other.desk.waited_s()
    other.die()


def test_device_work_finishes_before_lease_is_released(evaluator: Evaluator) -> None:
    with evaluator.leases.hold(exclusive=False), evaluator.leases.hold(exclusive=False):
        assert evaluator.finished == 0
    assert evaluator.finished == 1
    with evaluator.leases.hold(exclusive=True):
        assert evaluator.finished == 1
    assert evaluator.finished == 2


@pytest.mark.parametrize(
    ("answers", "looks", "quiet"), [([True], 1, True), ([False, True], 2, True), ([False], 2, False)]
)
def test_exclusive_use_begins_when_the_device_is_quiet(
    evaluator: Evaluator, answers: list[bool], looks: int, quiet: bool
) -> None:
    evaluator.quiet = answers
    with evaluator.leases.hold(exclusive=False) as hold:
        assert hold.quiet
    assert evaluator.waited_for_quiet == 0
    with evaluator.leases.hold(exclusive=True) as hold:
        assert (evaluator.waited_for_quiet, hold.quiet) == (looks, quiet)
        with evaluator.leases.hold(exclusive=True) as inner:
            assert (evaluator.waited_for_quiet, inner.quiet) == (looks + 1, quiet)


def test_work_that_goes_on_ends_before_exclusive_use(leases: GpuLeases, evaluator: Evaluator) -> None:
    evaluator.quiet = [False, True]
    got: list[float] = []

    def use() -> None:
        with evaluator.leases.hold(exclusive=True) as hold:
            got.append(hold.waited_s)
            assert hold.quiet

    with child() as pid:
        other = Evaluator(leases, supervisor=pid)
        thread = threading.Thread(target=use)
        with other.leases.hold(exclusive=False):
            thread.start()
            wait_until(lambda: evaluator.waited_for_quiet > 0)
            thread.join(0.3)
            assert got == []
            assert state_of_child(pid) == "S"  # so it can end, and its time limit runs
            stopped_s = other.desk.stopped_s()
            time.sleep(0.05)
            assert other.desk.stopped_s() == stopped_s
        thread.join(PATIENCE_S)
        assert got[0] >= 0.2
        assert evaluator.desk.waited_s() >= 0.2
        other.die()


def test_waiting_for_shared_users_ends_with_the_evaluator(leases: GpuLeases, evaluator: Evaluator) -> None:
    with child() as pid:
        other, dead = Evaluator(leases, supervisor=pid), Evaluator(leases)
        with other.leases.hold(exclusive=False):
            dead.control.send_json({"lease": "take", "kind": "exclusive", "drained": True})
            assert not is_granted(dead, 0.2)
            dead.die()
            with evaluator.leases.hold(exclusive=True) as hold:
                assert hold.waited_s < 5
        other.die()


def test_shared_leases_are_there_together(leases: GpuLeases, evaluator: Evaluator) -> None:
    other = Evaluator(leases)
    with evaluator.leases.hold(exclusive=False), other.leases.hold(exclusive=False) as hold:
        assert hold.waited_s < 5
    other.die()


def test_three_evaluators_at_a_time_have_timing_memory(leases: GpuLeases, evaluator: Evaluator) -> None:
    others = [Evaluator(leases) for _ in range(3)]
    got: list[str] = []

    def use() -> None:
        with evaluator.leases.timing_memory():
            got.append("fourth")

    for other in others:
        with other.leases.timing_memory():  # again, once it was returned
            pass
    for other in others:
        ask(other, "timing_memory")
        assert is_granted(other)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join(0.2)
    assert got == []
    others[1].die()
    thread.join(PATIENCE_S)
    assert got == ["fourth"]
    for other in others:
        other.die()


def test_memory_is_granted_in_order_while_it_lasts(leases: GpuLeases) -> None:
    shares = [0.5, 0.25, 0.5, 0.25]
    evaluators = [Evaluator(leases) for _ in shares]
    for number, (each, share) in enumerate(zip(evaluators, shares, strict=True)):
        ask(each, "memory", share=share)
        assert is_granted(each, 0.2 if number > 1 else PATIENCE_S) is (number < 2)
    evaluators[0].die()
    assert [is_granted(each) for each in evaluators[2:]] == [True, True]
    for each in evaluators[1:]:
        each.die()


@pytest.mark.parametrize("share", [1.0, 7.0, -1.0])
def test_whole_memory_is_for_one(leases: GpuLeases, evaluator: Evaluator, share: float) -> None:
    other = Evaluator(leases)
    ask(other, "memory", share=share)
    assert is_granted(other)
    ask(evaluator, "memory", share=0.1)
    assert not is_granted(evaluator, 0.2)
    other.die()
    assert is_granted(evaluator)


def test_dead_evaluator_leaves_the_queue_for_memory(leases: GpuLeases, evaluator: Evaluator) -> None:
    holder, dead = Evaluator(leases), Evaluator(leases)
    ask(holder, "memory", share=0.5)
    assert is_granted(holder)
    ask(dead, "memory", share=1.0)
    wait_until(lambda: dead.desk.waited_s() > 0.05)
    dead.die()
    ask(evaluator, "memory", share=0.1)
    assert is_granted(evaluator)
    holder.die()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("exclusive", "memory"),
        ("timing_memory", "memory"),
        ("shared", "timing_memory"),
        ("shared", "compiling"),
    ],
)
def test_memory_is_refused_after_the_device(
    leases: GpuLeases, evaluator: Evaluator, first: str, second: str
) -> None:
    hostile = Evaluator(leases)
    for kind in (first, second):
        ask(hostile, kind, share=1.0)
    assert is_granted(hostile)
    wait_until(lambda: hostile.desk.failed)
    ask(evaluator, "memory", share=1.0)
    assert is_granted(evaluator)
    with evaluator.leases.hold(exclusive=True):
        pass
    hostile.die()


def test_sweeps_of_all_devices_share_the_cores(
    leases: GpuLeases, evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("online_judge.processes.gpu_lease._compiling", threading.Semaphore(1))
    elsewhere = Evaluator(GpuLeases(tmp_path / "second-device"))
    ask(elsewhere, "compiling")
    assert is_granted(elsewhere)
    got: list[float] = []

    def compile_kernels() -> None:
        with evaluator.leases.compiling() as waited_s, evaluator.leases.hold(exclusive=False):
            got.append(waited_s)

    thread = threading.Thread(target=compile_kernels)
    thread.start()
    thread.join(0.2)
    assert got == []
    elsewhere.die()
    thread.join(PATIENCE_S)
    assert got[0] > 0.1


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_leases_of_a_dead_evaluator_are_returned(leases: GpuLeases, evaluator: Evaluator, kind: str) -> None:
    dead = Evaluator(leases)
    ask(dead, kind)
    assert is_granted(dead)
    dead.die()
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5


def test_evaluator_that_dies_while_it_waits_leaves_nothing(leases: GpuLeases, evaluator: Evaluator) -> None:
    with evaluator.leases.hold(exclusive=True):
        dead = Evaluator(leases)
        ask(dead, "exclusive")
        wait_until(lambda: dead.desk.waited_s() > 0)
        dead.die()
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5


def test_inner_use_is_nothing_new(evaluator: Evaluator) -> None:
    with evaluator.leases.hold(exclusive=True), evaluator.leases.hold(exclusive=False) as inner:
        time.sleep(0.01)
    assert inner.waited_s == 0
    assert inner.held_s >= 0.01
    with (
        evaluator.leases.hold(exclusive=False),
        pytest.raises(RuntimeError),
        evaluator.leases.hold(exclusive=True),
    ):
        pass
    with evaluator.leases.timing_memory(), evaluator.leases.timing_memory():
        pass


def test_evaluator_that_asks_twice_waits_for_nothing(leases: GpuLeases, evaluator: Evaluator) -> None:
    greedy = Evaluator(leases)
    for kind in ("exclusive", "exclusive", "shared"):
        ask(greedy, kind)
        assert is_granted(greedy)
    greedy.die()
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5


def test_evaluator_cannot_have_all_memory_for_timing(leases: GpuLeases, evaluator: Evaluator) -> None:
    greedy = Evaluator(leases)
    for _ in range(4):
        ask(greedy, "timing_memory")
    assert is_granted(greedy)
    others = [evaluator, *(Evaluator(leases) for _ in range(2))]
    for other in others:  # the greedy one has lost what it had
        ask(other, "timing_memory")
        assert is_granted(other)
    for other in (greedy, *others[1:]):
        other.die()


def test_exclusive_user_stops_shared_ones(leases: GpuLeases, evaluator: Evaluator) -> None:
    with child() as own, child() as candidate:
        other = Evaluator(leases, supervisor=own)
        other.desk.candidate = candidate
        with other.leases.hold(exclusive=False):
            with evaluator.leases.hold(exclusive=True) as hold:
                assert hold.waited_s < 5  # without waiting for them
                wait_until(lambda: [state_of_child(pid) for pid in (own, candidate)] == ["T", "T"])
                time.sleep(0.1)
                assert other.desk.stopped_s() >= 0.1
            wait_until(lambda: [state_of_child(pid) for pid in (own, candidate)] == ["S", "S"])
            assert other.leases.stopped_s() >= 0.1
        stopped_s = other.leases.stopped_s()
        with evaluator.leases.hold(exclusive=True):
            assert [state_of_child(pid) for pid in (own, candidate)] == ["S", "S"]
            time.sleep(0.05)
        assert other.leases.stopped_s() == stopped_s
        assert evaluator.leases.stopped_s() == 0
        other.die()


def test_processes_resume_once_they_have_returned_the_device(leases: GpuLeases, evaluator: Evaluator) -> None:
    with child() as pid:
        other = Evaluator(leases, supervisor=pid)
        ask(other, "shared")
        assert is_granted(other)
        with evaluator.leases.hold(exclusive=True):
            wait_until(lambda: state_of_child(pid) == "T")
            other.control.send_json({"lease": "return"})  # on its way when the process was stopped
            wait_until(lambda: state_of_child(pid) == "S")
            stopped_s = other.desk.stopped_s()
            time.sleep(0.05)
            assert other.desk.stopped_s() == stopped_s
        other.die()


def test_stops_by_another_judge_count_at_once(
    leases: GpuLeases, evaluator: Evaluator, tmp_path: Path
) -> None:
    with (
        evaluator.leases.hold(exclusive=False),
        subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "gpu.lock")]) as other,
    ):
        wait_until(lambda: leases.stopped_s() > 0.1)
        stopped_s = evaluator.desk.stopped_s()
        assert stopped_s > 0.05
        other.kill()
        other.wait()
        assert leases.stopped_s() == 0
        assert evaluator.desk.stopped_s() == stopped_s  # its processes were stopped


def test_processes_that_a_killed_judge_stopped_can_end(
    leases: GpuLeases, evaluator: Evaluator, tmp_path: Path
) -> None:
    with child() as pid:
        other = Evaluator(leases, supervisor=pid)
        with other.leases.hold(exclusive=False):
            command = [sys.executable, "-c", KILLED, str(tmp_path / "gpu.lock")]
            with subprocess.Popen(command) as killed:
                wait_until(lambda: state_of_child(pid) == "T")
                evaluator.control.send_json({"lease": "take", "kind": "exclusive", "drained": True})
                assert not is_granted(evaluator, 0.2)
                killed.kill()
            wait_until(lambda: state_of_child(pid) == "S")
            assert not is_granted(evaluator, 0.2)
            stopped_s = other.desk.stopped_s()
            time.sleep(0.05)
            assert other.desk.stopped_s() == stopped_s
        assert is_granted(evaluator)
        other.die()


def test_device_that_is_never_quiet_costs_one_wait(evaluator: Evaluator) -> None:
    evaluator.quiet = [False]
    for _ in range(3):
        with evaluator.leases.hold(exclusive=True) as hold:
            assert not hold.quiet
    assert evaluator.waited_for_quiet == 2


@pytest.mark.parametrize("lost", ["gpu.lock.stopped", "gpu.lock.since"])
def test_lost_account_leaves_nothing_stopped(
    leases: GpuLeases, evaluator: Evaluator, tmp_path: Path, lost: str
) -> None:
    with child() as pid:
        other = Evaluator(leases, supervisor=pid)
        with other.leases.hold(exclusive=False):
            with evaluator.leases.hold(exclusive=True):
                (tmp_path / lost).unlink()
            wait_until(lambda: state_of_child(pid) == "S")
            stopped_s = other.desk.stopped_s()
            time.sleep(0.05)
            assert other.desk.stopped_s() == stopped_s
        other.die()


def test_process_starts_while_nothing_is_timed(leases: GpuLeases, evaluator: Evaluator) -> None:
    started = threading.Event()
    with child() as pid, ExitStack() as starting:

        def fork() -> int:
            started.set()
            return pid

        thread = threading.Thread(target=lambda: starting.enter_context(leases.starting(fork)))
        with evaluator.leases.hold(exclusive=True):
            thread.start()
            assert not started.wait(0.2)
        thread.join(PATIENCE_S)
        with evaluator.leases.hold(exclusive=True):
            wait_until(lambda: state_of_child(pid) == "T")  # it stops as soon as it runs
        wait_until(lambda: state_of_child(pid) == "S")
        starting.close()
        with evaluator.leases.hold(exclusive=True):
            assert state_of_child(pid) == "S"


@pytest.mark.parametrize("exclusive", [True, False])
def test_exclusive_use_is_known_and_kept_away(
    leases: GpuLeases, evaluator: Evaluator, exclusive: bool
) -> None:
    with evaluator.leases.hold(exclusive=exclusive), leases.unless_exclusive() as free:
        assert free is not exclusive
    wait_until(evaluator.desk.are_returned)
    with leases.unless_exclusive() as free:
        ask(evaluator, "exclusive")
        assert free
        assert not is_granted(evaluator, 0.2)
    assert is_granted(evaluator)


@pytest.mark.slow
def test_stopped_candidate_resumes_when_stopping_judge_is_killed(
    leases: GpuLeases, evaluator: Evaluator, tmp_path: Path
) -> None:
    with child() as pid:
        evaluator.desk.candidate = pid
        with evaluator.leases.hold(exclusive=False):
            with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "gpu.lock")]) as other:
                wait_until(lambda: state_of_child(pid) == "T")
                time.sleep(1.5)
                assert state_of_child(pid) == "T"  # as long as that judge lives
                other.kill()
            wait_until(lambda: state_of_child(pid) == "S")


def test_candidate_of_ones_own_is_stopped_at_will(evaluator: Evaluator) -> None:
    with child() as pid:
        evaluator.desk.candidate = pid
        with evaluator.leases.hold(exclusive=True), evaluator.leases.stopped():
            wait_until(lambda: state_of_child(pid) == "T")
        wait_until(lambda: state_of_child(pid) == "S")


@pytest.mark.parametrize(
    "message",
    [
        {"lease": "take", "kind": "stopped"},  # there is no candidate
        {"lease": "take", "kind": "everything"},
        {"lease": "take"},
        {"lease": "return"},
        {"lease": ["take"]},
        {"lease": "give"},
    ],
)
def test_nonsense_ends_all_leases(
    leases: GpuLeases, evaluator: Evaluator, message: dict[str, object]
) -> None:
    broken = Evaluator(leases)
    with broken.leases.hold(exclusive=True):
        pass
    ask(broken, "exclusive")
    broken.control.receive_json()
    if message == {"lease": "return"}:
        broken.control.send_json(message)
    broken.control.send_json(message)
    with evaluator.leases.hold(exclusive=True) as hold:
        assert hold.waited_s < 5
    wait_until(lambda: broken.desk.failed)
    ask(broken, "shared")  # nobody hears it, and nobody waits for it
    time.sleep(0.1)
    assert broken.desk.waited_s() < 5
    assert not broken.desk.are_returned()
    broken.die()


def test_lease_that_is_kept_is_known(leases: GpuLeases, evaluator: Evaluator) -> None:
    assert evaluator.desk.are_returned()
    with evaluator.leases.hold(exclusive=False):
        assert not evaluator.desk.are_returned()
    wait_until(evaluator.desk.are_returned)


def flood(desk: LeaseServer) -> None:
    for _ in range(1000):
        desk.obey({"lease": "stopped_s"})


def test_message_flood_closes_the_channel(leases: GpuLeases, evaluator: Evaluator) -> None:
    flooding = Evaluator(leases)
    with evaluator.leases.hold(exclusive=True):
        flooding.desk.obey({"lease": "take", "kind": "exclusive"})
        with pytest.raises(channel.ChannelClosed):
            flood(flooding.desk)
    flooding.die()


def test_registry_of_a_dead_judge_stops_no_process(tmp_path: Path) -> None:
    with child() as pid:
        left = tmp_path / "gpu.lock.stoppable" / str(os.getpid())
        left.parent.mkdir()
        left.touch()
        evaluator = Evaluator(GpuLeases(tmp_path / "gpu.lock"))
        with evaluator.leases.hold(exclusive=True):
            assert not left.exists()
            assert state_of_child(pid) != "T"
        evaluator.die()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_exclusive_use_runs_on_the_cores_for_timing(leases: GpuLeases) -> None:
    before = sorted(os.sched_getaffinity(0))
    made = Evaluator(leases, Cores((before[0],), tuple(before[1:])))
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


def test_removed_registry_is_made_again(leases: GpuLeases, evaluator: Evaluator) -> None:
    for exclusive in (True, False, True):
        with evaluator.leases.hold(exclusive=exclusive):
            pass
        wait_until(evaluator.desk.are_returned)
        os.rmdir(f"{leases._path}.stoppable")  # a cleaner of /tmp may do that
