"""The lock between evaluators of one device, with real processes."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from online_judge.processes.gpu_lease import GpuLeases

from .live import wait_until

SPAWN = multiprocessing.get_context("spawn")
PATIENCE_S = 30.0


def hold_until(path: str, exclusive: bool, held: Event, release: Event) -> None:
    with GpuLeases(path).take("exclusive" if exclusive else "shared"):
        held.set()
        release.wait(PATIENCE_S)


def hold_again_and_again(path: str, started: Event, stop: Event) -> None:
    """Shared use after shared use, with hardly a gap."""
    lock = GpuLeases(path)
    while not stop.is_set():
        with lock.take("shared", [os.getpid()]):
            started.set()


def count_up(path: str, counter: str, rounds: int) -> None:
    """Return a read and a write that lose updates unless they exclude each other."""
    lock = GpuLeases(path)
    for _ in range(rounds):
        with lock.take("exclusive"):
            value = int(Path(counter).read_text())
            time.sleep(0.001)
            Path(counter).write_text(str(value + 1))


@contextmanager
def processes(*calls: tuple[Callable[..., None], tuple[object, ...]]) -> Iterator[list[SpawnProcess]]:
    started = [SPAWN.Process(target=target, args=arguments, daemon=True) for target, arguments in calls]
    for process in started:
        process.start()
    try:
        yield started
    finally:
        for process in started:
            process.join(PATIENCE_S)
            assert process.exitcode is not None
            process.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "gpu.lock")


def in_thread(lock: GpuLeases, *, exclusive: bool, got: list[str], name: str) -> threading.Thread:
    def use() -> None:
        with lock.take("exclusive" if exclusive else "shared"):
            got.append(name)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    return thread


def test_exclusive_user_waits_for_no_shared_one(path: str) -> None:
    held, release = SPAWN.Event(), SPAWN.Event()
    lock = GpuLeases(path)
    with processes((hold_until, (path, False, held, release))):
        assert held.wait(PATIENCE_S)
        with lock.take("shared") as waited_s:
            assert waited_s < 1.0
        with lock.take("exclusive") as waited_s:
            assert waited_s < 1.0
        release.set()


def test_exclusive_users_lose_no_update(path: str, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    with processes(*[(count_up, (path, str(counter), 40))] * 3):
        pass
    assert counter.read_text() == "120"


def test_shared_users_do_not_starve_an_exclusive_one(path: str) -> None:
    stop = SPAWN.Event()
    started = [SPAWN.Event() for _ in range(3)]
    with processes(*[(hold_again_and_again, (path, each, stop)) for each in started]):
        try:
            assert all(each.wait(PATIENCE_S) for each in started)
            waits = []
            for _ in range(5):
                with GpuLeases(path).take("exclusive") as waited_s:
                    waits.append(waited_s)
        finally:
            stop.set()
    assert max(waits) < 5.0  # a plain flock waits here until the stream ends


def test_waiting_exclusive_user_comes_before_later_shared_ones(path: str) -> None:
    lock = GpuLeases(path)
    got: list[str] = []
    with lock.take("exclusive"):
        timer = in_thread(lock, exclusive=True, got=got, name="timer")
        turnstile = os.stat(f"{path}.turn").st_ino
        wait_until(lambda: f":{turnstile} " in Path("/proc/locks").read_text())
        late = in_thread(lock, exclusive=False, got=got, name="late")
        late.join(0.2)
        assert got == []
    timer.join(PATIENCE_S)
    late.join(PATIENCE_S)
    assert got == ["timer", "late"]


def test_killed_holder_frees_the_device(path: str) -> None:
    held, release = SPAWN.Event(), SPAWN.Event()
    with processes((hold_until, (path, True, held, release))) as (holder,):
        assert held.wait(PATIENCE_S)
        got: list[str] = []
        waiting = in_thread(GpuLeases(path), exclusive=True, got=got, name="timer")
        waiting.join(0.1)
        assert got == []
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        waiting.join(PATIENCE_S)
        assert got == ["timer"]


def test_killed_waiter_leaves_the_turnstile(path: str) -> None:
    lock = GpuLeases(path)
    held, release = SPAWN.Event(), SPAWN.Event()
    with lock.take("exclusive"), processes((hold_until, (path, True, held, release))) as (waiter,):
        turnstile = os.stat(f"{path}.turn").st_ino
        wait_until(lambda: f":{turnstile} " in Path("/proc/locks").read_text())
        assert waiter.pid is not None
        os.kill(waiter.pid, signal.SIGKILL)
    with GpuLeases(path).take("shared") as waited_s:
        assert waited_s < 5.0


def test_take_yields_the_waiting_time(path: str) -> None:
    lock = GpuLeases(path)
    waits = []

    def wait_for_it() -> None:
        with lock.take("exclusive") as waited_s:
            waits.append(waited_s)

    with lock.take("exclusive"):
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        turnstile = os.stat(f"{path}.turn").st_ino
        wait_until(lambda: f":{turnstile} " in Path("/proc/locks").read_text())
        time.sleep(0.1)
    thread.join(PATIENCE_S)
    assert waits[0] >= 0.1


def test_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "gpu.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"gpu\.lock"):
        GpuLeases(tmp_path / "gpu.lock")
