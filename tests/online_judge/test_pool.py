"""The pool of armed processes, with threads in the place of supervisors."""

import contextlib
import errno
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from adaexplore.core.errors import ConfigError, JudgeError
from online_judge.processes.fork_client import ForkClient, ForkServerLost
from online_judge.processes.gpu_lease import Cancelled, GpuLeases
from online_judge.processes.pool import Pool, StartFailed
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.sandbox import linux
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings

from .live import wait_until
from .test_leases import child, state_of_child

NEVER = threading.Event()
NO_PROCESS = 2**30
"""Above all process ids: what is below it can be stopped without harm, unlike what is below 0."""
REPORT = {
    "died": False,
    "how": "its connection to the judge",
    "printed": "last words",
    "out_of_memory": False,
    "orphans": 0,
}


class FakeForkClient:
    """Starts a thread for each process: it says that it is armed and waits for the end."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._numbers = itertools.count()
        self.generation = 0
        self.lost = 0  # so many of the next forks fail
        self.stillborn = 0  # so many of the next processes die before they are armed
        self.may_arm = threading.Event()
        self.may_arm.set()
        self.supervisor = NO_PROCESS  # process id of the next ones
        self.refusal: JudgeError | None = None  # of the sandbox around the next ones
        self.noted: list[str] = []
        self.started: list[str] = []
        self.build_folders: list[str | None] = []
        self.living: set[str] = set()
        self.lifelines: dict[str, Channel] = {}
        self.processes: dict[str, Channel] = {}
        self._threads: list[threading.Thread] = []

    def make_folder(self) -> str:
        folder = self._home / f"job-{next(self._numbers)}"
        folder.mkdir()
        return str(folder)

    def fork_process(self, process_end: int, lifeline: int, spec: ProcessSpec) -> int:
        if self.lost:
            self.lost -= 1
            raise ForkServerLost("by hand")
        stillborn = self.stillborn > 0
        self.stillborn -= stillborn
        self.started.append(spec.folder)
        self.build_folders.append(spec.build_dir)
        ends = Channel.from_fd(os.dup(process_end)), Channel.from_fd(os.dup(lifeline))
        thread = threading.Thread(target=self._serve, args=(spec.folder, *ends, stillborn))
        self._threads.append(thread)
        thread.start()
        return self.supervisor

    def note_sandbox(self, sandbox: dict[str, object], role: str) -> None:
        self.noted.append(role)
        if self.refusal is not None:
            raise self.refusal

    def die(self, folder: Path, *, reported: bool = True) -> None:
        """End a process from outside, as the kernel would; its supervisor reports that now or later."""
        if reported:
            self.lifelines[str(folder)].send_json(REPORT | {"died": True, "how": "by signal 9"})
        else:
            self.processes[str(folder)].close()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _serve(self, folder: str, process: Channel, lifeline: Channel, stillborn: bool) -> None:
        self.living.add(folder)
        self.lifelines[folder], self.processes[folder] = lifeline, process
        self.may_arm.wait(10)
        with contextlib.suppress(ChannelClosed):
            lifeline.send_json({"sandbox": {}})
            if not stillborn:
                process.send_json({"ready": {"folder": folder}})
                lifeline.receive()
        self.living.discard(folder)
        process.close()
        with contextlib.suppress(ChannelClosed):
            lifeline.send_json(REPORT | {"how": "with exit status 1"})
        lifeline.close()


@pytest.fixture
def fork_client(tmp_path: Path) -> Iterator[FakeForkClient]:
    fake = FakeForkClient(tmp_path)
    yield fake
    fake.may_arm.set()
    fake.join()
    assert fake.living == set()


@pytest.fixture
def make(fork_client: FakeForkClient) -> Iterator[Callable[..., Pool]]:
    with contextlib.ExitStack() as stack:

        def pool(target: int, leases: GpuLeases | None = None, role: Any = "candidate") -> Pool:
            spec = ProcessSpec("", "cpu", "", "sm_90", role=role)
            made = Pool(cast(ForkClient, fork_client), spec, target, leases)
            stack.callback(made.close)
            return made

        yield pool


def test_nothing_starts_before_somebody_asks(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    pool = make(2)
    assert pool.ready == 0
    assert fork_client.started == []
    pool.fill()
    wait_until(lambda: pool.ready == 2)


def test_process_of_dead_fork_server_is_discarded(
    make: Callable[..., Pool], fork_client: FakeForkClient
) -> None:
    pool = make(2)
    pool.fill()
    wait_until(lambda: pool.ready == 2)
    fork_client.generation += 1  # it has died; what it started has not noticed yet
    assert pool.ready == 0
    taken = pool.take(NEVER)
    assert taken.generation == 1
    assert str(taken.folder) not in fork_client.started[:2]
    taken.end()


def test_taken_candidate_process_is_replaced_by_a_thread(
    make: Callable[..., Pool], fork_client: FakeForkClient
) -> None:
    pool = make(2)
    pool.fill()
    wait_until(lambda: pool.ready == 2)
    fork_client.may_arm.clear()  # a start that is asked for now waits for long
    first, second = pool.take(NEVER), pool.take(NEVER)
    assert first.folder != second.folder
    assert {str(each.folder) for each in (first, second)} == set(fork_client.started[:2])
    assert pool.ready == 0
    fork_client.may_arm.set()
    wait_until(lambda: pool.ready == 2)
    assert len(fork_client.started) == 4
    first.end()
    second.end()
    assert not first.folder.exists()


def test_empty_pool_serves_concurrent_takers(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    pool = make(0)
    fork_client.may_arm.clear()
    processes: list[ProcessHandle] = []
    threads = [threading.Thread(target=lambda: processes.append(pool.take(NEVER))) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(fork_client.started) == 5)
    fork_client.may_arm.set()
    for thread in threads:
        thread.join(10)
    assert len({process.folder for process in processes}) == 5
    for process in processes:
        process.end()


@pytest.mark.parametrize("reported", [True, False])
def test_process_that_died_waiting_is_not_handed_out(
    make: Callable[..., Pool], fork_client: FakeForkClient, reported: bool
) -> None:
    pool = make(1)
    pool.fill()
    wait_until(lambda: pool.ready == 1)
    dead = Path(fork_client.started[0])
    fork_client.die(dead, reported=reported)
    wait_until(lambda: pool.ready == 0)
    process = pool.take(NEVER)
    assert process.folder != dead
    assert not dead.exists()
    process.end()


def test_stopped_process_is_not_handed_out(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    pool = make(1)
    with child() as fork_client.supervisor:
        pool.fill()
        wait_until(lambda: pool.ready == 1)
        (sleeping,) = linux.children(fork_client.supervisor)
        os.kill(sleeping, signal.SIGSTOP)
        wait_until(lambda: pool.ready == 0)
        stopped, fork_client.supervisor = fork_client.started[0], NO_PROCESS
        one = pool.take(NEVER)
        assert str(one.folder) != stopped
        one.end()


@pytest.mark.parametrize("role", ["candidate", "evaluator"])
def test_sandbox_that_does_not_suffice_reaches_the_taker(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path, role: str
) -> None:
    fork_client.refusal = JudgeError("the sandbox is too weak")
    with pytest.raises(JudgeError, match="too weak"):
        make(0, role=role).take(NEVER)
    assert fork_client.noted == [role]
    assert list(tmp_path.iterdir()) == []


def test_lost_fork_server_is_retried(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    fork_client.lost = 1
    process = make(0).take(NEVER)
    assert fork_client.lost == 0
    process.end()


@pytest.mark.parametrize(("trouble", "error"), [("lost", ForkServerLost), ("stillborn", StartFailed)])
def test_persistent_failure_reaches_taker_and_next_taker_retries(
    make: Callable[..., Pool],
    fork_client: FakeForkClient,
    tmp_path: Path,
    trouble: str,
    error: type[Exception],
) -> None:
    pool = make(0)
    setattr(fork_client, trouble, 2)
    with pytest.raises(error):
        pool.take(NEVER)
    assert list(tmp_path.iterdir()) == []
    pool.take(NEVER).end()


def test_old_failure_does_not_reach_new_taker(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    pool = make(1)
    fork_client.lost = 2
    before = threading.active_count()
    pool.fill()
    wait_until(lambda: fork_client.lost == 0 and threading.active_count() <= before)  # the trouble is known
    pool.take(NEVER).end()


def test_start_failure_quotes_the_process_output(
    make: Callable[..., Pool], fork_client: FakeForkClient
) -> None:
    pool = make(0)
    fork_client.stillborn = 2
    with pytest.raises(StartFailed, match=r"before it was ready.*exit status 1.*last words"):
        pool.take(NEVER)


def test_cancelled_taker_gets_nothing(make: Callable[..., Pool], fork_client: FakeForkClient) -> None:
    pool = make(0)
    fork_client.may_arm.clear()
    cancelled = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        taking = threads.submit(pool.take, cancelled)
        wait_until(lambda: fork_client.living)
        cancelled.set()
        with pytest.raises(Cancelled):
            taking.result(10)
    fork_client.may_arm.set()


def test_closing_ends_ready_and_starting_processes(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path
) -> None:
    pool = make(1)
    pool.fill()
    wait_until(lambda: pool.ready == 1)
    fork_client.may_arm.clear()
    process = pool.take(NEVER)
    wait_until(lambda: len(fork_client.started) == 2)
    threading.Timer(0.1, fork_client.may_arm.set).start()
    pool.close()
    assert [entry.name for entry in tmp_path.iterdir()] == [process.folder.name]
    with pytest.raises(ForkServerLost, match="closing"):
        pool.take(NEVER)
    process.end()


def test_nothing_is_armed_while_something_is_timed(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path
) -> None:
    leases = GpuLeases(tmp_path / "gpu.lock")
    pool = make(1, leases)
    with leases.take("exclusive"):
        pool.fill()
        time.sleep(0.1)
        assert fork_client.started == []
    wait_until(lambda: pool.ready == 1)
    with leases.take("exclusive") as waited_s:  # an armed process holds nothing
        assert waited_s < 5.0


def test_starting_process_is_stopped_during_timing(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path
) -> None:
    leases = GpuLeases(tmp_path / "gpu.lock")
    pool = make(1, leases)

    def is_stopped() -> bool:
        with leases.take("exclusive"):
            return state_of_child(fork_client.supervisor) == "T"

    with child() as fork_client.supervisor:
        fork_client.may_arm.clear()
        pool.fill()
        wait_until(is_stopped)
        fork_client.may_arm.set()
        wait_until(lambda: pool.ready == 1)
        assert not is_stopped()


def test_no_process_waits_while_a_job_runs_alone(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path
) -> None:
    leases = GpuLeases(tmp_path / "gpu.lock")
    pool = make(2, leases)
    leases.on_alone.append(pool.free_idle)
    fork_client.may_arm.clear()
    pool.fill()
    wait_until(lambda: len(fork_client.started) == 2)
    threading.Timer(0.1, fork_client.may_arm.set).start()
    with leases.claim("p", NEVER, others=0):
        assert fork_client.living == set()
        pool.take(NEVER).end()
        assert (pool.ready, len(fork_client.started), fork_client.living) == (0, 3, set())
    pool.take(NEVER).end()  # the next taker fills the pool again
    wait_until(lambda: pool.ready == 2)
    with leases.claim("p", NEVER, others=0):
        assert (pool.ready, fork_client.living) == (0, set())


def test_job_with_its_own_spec_bypasses_pool(
    make: Callable[..., Pool], fork_client: FakeForkClient, tmp_path: Path
) -> None:
    pool = make(1)
    pool.fill()
    wait_until(lambda: pool.ready == 1)
    fork_client.lost = 1
    process = pool.take(NEVER, str(tmp_path / "build"))
    assert fork_client.build_folders == [None, str(tmp_path / "build")]
    assert str(process.folder) == fork_client.started[1]
    assert process.connection.fileno() >= 0
    assert pool.ready == 1
    process.end()


def test_number_of_ready_processes_is_a_setting() -> None:
    assert Settings.from_environment({}).ready_processes is None
    assert Settings.from_environment({"ARMED_PLAYERS": "0"}).ready_processes == 0
    with pytest.raises(ConfigError, match="ARMED_PLAYERS"):
        Settings.from_environment({"ARMED_PLAYERS": "many"})


def test_full_disk_is_named_when_a_process_starts(
    make: Callable[..., Pool], fork_client: FakeForkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folders = fork_client.make_folder
    pool = make(0)
    for first in (fail, folders):  # the disk may also be full when the start is tried again
        attempts = iter([first, fail])
        fork_client.stillborn = int(first is folders)
        monkeypatch.setattr(fork_client, "make_folder", lambda attempts=attempts: next(attempts)())
        with pytest.raises(JudgeError, match=r"cannot start a process: .*No space left on device"):
            pool.take(NEVER)


def test_slow_end_of_dead_process_blocks_no_other(
    make: Callable[..., Pool], fork_client: FakeForkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, release, ending = make(1), threading.Event(), threading.Event()
    pool.fill()
    wait_until(lambda: pool.ready == 1)
    fork_client.die(Path(fork_client.started[0]), reported=True)
    wait_until(lambda: pool.ready == 0)
    end = ProcessHandle.end

    def end_slowly(process: ProcessHandle, **options: Any) -> Any:
        ending.set()
        release.wait(30)
        return end(process, **options)

    monkeypatch.setattr(ProcessHandle, "end", end_slowly)
    with ThreadPoolExecutor(1) as executor:
        taken = executor.submit(pool.take, NEVER)
        assert ending.wait(30)
        ready = ThreadPoolExecutor(1).submit(lambda: pool.ready)
        assert ready.result(5) >= 0  # asked for by /metrics
        release.set()
        taken.result(30).end()
