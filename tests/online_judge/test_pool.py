"""The pool of armed players, with threads in the place of keepers."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from adaexplore.core.errors import ConfigError
from online_judge.processes.device_lock import DeviceLock
from online_judge.processes.fork_client import Nursery, ZygoteLost
from online_judge.processes.pool import Armed, ArmingFailed, Pool
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.sandbox.process_spec import PlayerSpec
from online_judge.settings import Settings

from .live import wait_until

NEVER = threading.Event()
REPORT = {
    "exit": None,
    "signal": None,
    "crowded": False,
    "out_of_memory": False,
    "orphans": 0,
    "started": True,
    "log": "last words",
}


class FakeNursery:
    """Starts a thread for each player: it says that it is armed and waits for the end."""

    def __init__(self) -> None:
        self.lost = 0  # so many of the next forks fail
        self.stillborn = 0  # so many of the next players die before they are armed
        self.may_arm = threading.Event()
        self.may_arm.set()
        self.started: list[str] = []
        self.living: set[str] = set()
        self.lifelines: dict[str, Channel] = {}
        self._threads: list[threading.Thread] = []

    def fork_player(self, player_end: int, lifeline: int, spec: PlayerSpec) -> int:
        if self.lost:
            self.lost -= 1
            raise ZygoteLost("by hand")
        stillborn = self.stillborn > 0
        self.stillborn -= stillborn
        self.started.append(spec.folder)
        ends = Channel.from_fd(os.dup(player_end)), Channel.from_fd(os.dup(lifeline))
        thread = threading.Thread(target=self._play, args=(spec.folder, *ends, stillborn))
        self._threads.append(thread)
        thread.start()
        return 0

    def note_sandbox(self, sandbox: dict[str, object], role: str) -> None:
        """Nothing stands around a thread."""

    def die(self, folder: Path) -> None:
        """End a player from outside, as the kernel would."""
        self.lifelines[str(folder)].send_json(REPORT | {"signal": 9})

    def join(self) -> None:
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _play(self, folder: str, player: Channel, lifeline: Channel, stillborn: bool) -> None:
        self.living.add(folder)
        self.lifelines[folder] = lifeline
        self.may_arm.wait(10)
        with contextlib.suppress(ChannelClosed):
            lifeline.send_json({"sandbox": {}})
            if not stillborn:
                player.send_json({"armed": {"folder": folder}})
                lifeline.receive()
        self.living.discard(folder)
        player.close()
        with contextlib.suppress(ChannelClosed):
            lifeline.send_json(REPORT | {"exit": 1})
        lifeline.close()


@pytest.fixture
def nursery() -> Iterator[FakeNursery]:
    fake = FakeNursery()
    yield fake
    fake.may_arm.set()
    fake.join()
    assert fake.living == set()


@pytest.fixture
def make(nursery: FakeNursery, tmp_path: Path) -> Iterator[Callable[..., Pool]]:
    with contextlib.ExitStack() as stack:
        numbers = iter(range(10**6))

        def fresh() -> PlayerSpec:
            folder = tmp_path / f"job-{next(numbers)}"
            folder.mkdir()
            return PlayerSpec(str(folder), "cpu", "", "sm_90", "paper")

        def pool(target: int, lock: DeviceLock | None = None) -> Pool:
            made = Pool(cast(Nursery, nursery), fresh, target, lock)
            stack.callback(made.close)
            return made

        yield pool


def taken(pool: Pool) -> Armed:
    player = pool.take(NEVER)
    assert player is not None
    return player


def release(player: Armed, nursery: FakeNursery) -> None:
    player.discard(cast(Nursery, nursery))


def test_nothing_starts_before_somebody_asks(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    pool = make(2)
    assert pool.armed == 0
    assert nursery.started == []
    pool.fill()
    wait_until(lambda: pool.armed == 2)


def test_taken_player_is_replaced_by_a_thread(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    pool = make(2)
    pool.fill()
    wait_until(lambda: pool.armed == 2)
    nursery.may_arm.clear()  # whoever waits for a start now, waits for long
    first, second = taken(pool), taken(pool)
    assert first.folder != second.folder
    assert first.facts == {"folder": str(first.folder)}
    assert pool.armed == 0
    nursery.may_arm.set()
    wait_until(lambda: pool.armed == 2)
    assert len(nursery.started) == 4
    release(first, nursery)
    release(second, nursery)
    assert not first.folder.exists()


def test_empty_pool_serves_as_many_as_ask_at_once(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    pool = make(0)
    players: list[Armed] = []
    threads = [threading.Thread(target=lambda: players.append(taken(pool))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len({player.folder for player in players}) == 5
    for player in players:
        release(player, nursery)


def test_player_that_died_while_it_waited_is_not_handed_out(
    make: Callable[..., Pool], nursery: FakeNursery
) -> None:
    pool = make(1)
    pool.fill()
    wait_until(lambda: pool.armed == 1)
    dead = Path(nursery.started[0])
    nursery.die(dead)
    wait_until(lambda: pool.armed == 0)
    player = taken(pool)
    assert player.folder != dead
    assert not dead.exists()
    release(player, nursery)


def test_lost_zygote_is_asked_again(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    nursery.lost = 1
    player = taken(make(0))
    assert nursery.lost == 0
    release(player, nursery)


@pytest.mark.parametrize(("trouble", "error"), [("lost", ZygoteLost), ("stillborn", ArmingFailed)])
def test_trouble_that_stays_reaches_the_taker_and_the_next_one_tries_again(
    make: Callable[..., Pool], nursery: FakeNursery, tmp_path: Path, trouble: str, error: type[Exception]
) -> None:
    pool = make(0)
    setattr(nursery, trouble, 2)
    with pytest.raises(error):
        pool.take(NEVER)
    assert list(tmp_path.iterdir()) == []
    release(taken(pool), nursery)


def test_old_trouble_is_not_told_to_a_new_taker(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    pool = make(1)
    nursery.lost = 2
    pool.fill()
    wait_until(lambda: nursery.lost == 0)
    release(taken(pool), nursery)


def test_last_words_of_a_player_that_could_not_arm_are_told(
    make: Callable[..., Pool], nursery: FakeNursery
) -> None:
    pool = make(0)
    nursery.stillborn = 2
    with pytest.raises(ArmingFailed, match=r"before it was ready.*exit status 1.*last words"):
        pool.take(NEVER)


def test_cancelled_taker_gets_nothing(make: Callable[..., Pool], nursery: FakeNursery) -> None:
    pool = make(0)
    nursery.may_arm.clear()
    cancelled = threading.Event()
    got: list[Armed | None] = []
    thread = threading.Thread(target=lambda: got.append(pool.take(cancelled)))
    thread.start()
    wait_until(lambda: nursery.living)
    cancelled.set()
    thread.join(10)
    assert got == [None]
    nursery.may_arm.set()


def test_closing_ends_those_that_wait_and_those_on_their_way(
    make: Callable[..., Pool], nursery: FakeNursery, tmp_path: Path
) -> None:
    pool = make(1)
    pool.fill()
    wait_until(lambda: pool.armed == 1)
    nursery.may_arm.clear()
    player = taken(pool)
    wait_until(lambda: len(nursery.started) == 2)
    threading.Timer(0.1, nursery.may_arm.set).start()
    pool.close()
    assert [entry.name for entry in tmp_path.iterdir()] == [player.folder.name]
    with pytest.raises(ZygoteLost, match="closing"):
        pool.take(NEVER)
    release(player, nursery)


def test_nothing_is_armed_while_something_is_timed(
    make: Callable[..., Pool], nursery: FakeNursery, tmp_path: Path
) -> None:
    lock = DeviceLock(tmp_path / "gpu.lock")
    pool = make(1, lock)
    with lock.hold(exclusive=True):
        pool.fill()
        time.sleep(0.1)
        assert nursery.started == []
    wait_until(lambda: pool.armed == 1)
    with lock.hold(exclusive=True) as waited_s:  # an armed player holds nothing
        assert waited_s < 5.0


def test_player_of_a_job_with_a_spec_of_its_own_bypasses_the_pool(
    make: Callable[..., Pool], nursery: FakeNursery, tmp_path: Path
) -> None:
    pool = make(0)
    folder = tmp_path / "own"

    def own() -> PlayerSpec:
        folder.mkdir(exist_ok=True)
        return PlayerSpec(str(folder), "cpu", "", "sm_90", "off", build_dir="build")

    nursery.lost = 1
    player = pool.start_now(own)
    assert player.folder == folder
    assert player.connection.fileno() >= 0
    release(player, nursery)


def test_number_of_armed_players_is_a_setting() -> None:
    assert Settings.from_environment({}).armed_players is None
    assert Settings.from_environment({"ARMED_PLAYERS": "0"}).armed_players == 0
    with pytest.raises(ConfigError, match="ARMED_PLAYERS"):
        Settings.from_environment({"ARMED_PLAYERS": "many"})
