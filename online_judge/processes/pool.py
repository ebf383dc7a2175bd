"""Players that wait, armed, for a candidate: no evaluation waits for a process or for CUDA to start."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import JudgeError
from online_judge.processes.device_lock import DeviceLock
from online_judge.processes.fork_client import Nursery, ZygoteLost
from online_judge.processes.process_handle import PlayerHandle
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.sandbox import linux
from online_judge.sandbox.process_spec import PlayerSpec

log = logging.getLogger(__name__)

_LOOK_S = 0.25
_ARM_S = 120.0
_CLOSE_S = 5.0
_FIRST_WORD_BYTES = 2**16


class ArmingFailed(JudgeError):
    """Players die before they are ready for a candidate; more than one in a row did."""


@dataclass(frozen=True)
class Armed:
    """A player that waits for its first order.

    Attributes:
        player: ends it.
        connection: the referee's end; whoever takes the player closes it.
        folder: its private folder; whoever takes the player removes it.
        facts: what it said of itself before any candidate was in it.
        lifeline: tells when it dies; it belongs to ``player``.
        supervisor: process id of its supervisor.
    """

    player: PlayerHandle
    connection: socket.socket
    folder: Path
    facts: dict[str, Any]
    lifeline: socket.socket
    supervisor: int

    @property
    def alive(self) -> bool:
        """Whether its supervisor has not reported its end, and nobody has stopped it."""
        return not is_readable(0, self.lifeline) and not self.stopped

    @property
    def stopped(self) -> bool:
        """Return whether it is stopped, by whomever."""
        return any(linux.is_stopped(child) for child in linux.children(self.supervisor))

    def discard(self, nursery: Nursery) -> None:
        """End a player that nobody used."""
        self.connection.close()
        self.player.end(nursery)
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """Armed players of one device; safe to call from threads.

    A player's first message on its connection, sent before it has seen a candidate, is
    ``{"armed": {...}}``. It is started while nothing is timed, and stopped until then whenever something is,
    so that no CUDA start disturbs that.
    """

    def __init__(
        self,
        nursery: Nursery,
        fresh: Callable[[], PlayerSpec],
        target: int,
        lock: DeviceLock | None = None,
        role: Literal["candidate", "evaluator"] = "candidate",
    ) -> None:
        """Start nothing yet.

        Args:
            nursery: makes the processes.
            fresh: makes a private folder and the spec of a player in it; called from threads.
            target: how many are kept ready; with 0 each starts when it is asked for.
            lock: of the device; None where starting disturbs nobody.
            role: of all of them.
        """
        self._role = role
        self._forks = nursery
        self._fresh = fresh
        self._target = target
        self._lock = lock
        self._changed = threading.Condition()
        self._ready: deque[Armed] = deque()
        self._starting = 0
        self._takers = 0
        self._failure: Exception | None = None
        self._threads: set[threading.Thread] = set()
        self._closed = False

    @property
    def armed(self) -> int:
        """How many are ready now."""
        with self._changed:
            return sum(each.alive for each in self._ready)

    def fill(self) -> None:
        """Begin to make as many ready as should be, without waiting for them."""
        with self._changed:
            self._refill()

    def take(self, cancelled: threading.Event) -> Armed | None:
        """A ready player, which is the caller's from now on; its successor is started at once.

        Returns:
            None when ``cancelled`` was set before there was one.

        Raises:
            ZygoteLost: the zygote died twice while it was asked for one.
            ArmingFailed: two players in a row died before they were ready.
            JudgeError: the zygote does not come up.
        """
        with self._changed:
            if not self._takers:
                self._failure = None  # of a start that nobody waited for: time to try again
            self._takers += 1
            try:
                while not cancelled.is_set():
                    if (player := self._pop()) is not None:
                        return player
                    if self._closed:
                        raise ZygoteLost("the judge is closing")
                    if self._failure is not None:
                        failure, self._failure = self._failure, None
                        raise failure
                    self._refill()
                    self._changed.wait(_LOOK_S)
                return None
            finally:
                self._takers -= 1
                self._refill()

    def start_now(self, fresh: Callable[[], PlayerSpec]) -> Armed:
        """A player for one job that needs a spec of its own; blocks until it is armed.

        Raises:
            ZygoteLost, ArmingFailed, JudgeError: as :meth:`take`.
        """
        try:
            return self._start(fresh())
        except (ZygoteLost, ArmingFailed) as error:
            log.error("%s: a player is started once more", error)
            return self._start(fresh())

    def close(self) -> None:
        """End all that wait; those on their way end as soon as they are there."""
        with self._changed:
            self._closed = True
            threads = list(self._threads)
            players = list(self._ready)
            self._ready.clear()
            self._changed.notify_all()
        for player in players:
            player.discard(self._forks)
        deadline = time.monotonic() + _CLOSE_S
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _pop(self) -> Armed | None:
        """The first ready player that lives; the dead ones on the way are buried."""
        while self._ready:
            player = self._ready.popleft()
            if player.alive:
                return player
            log.warning("a player died while it waited for a candidate")
            player.discard(self._forks)
        return None

    def _refill(self) -> None:
        """Start what is missing, each in a thread of its own; the condition is held."""
        wanted = self._target + self._takers
        while not self._closed and len(self._ready) + self._starting < wanted:
            self._starting += 1
            thread = threading.Thread(target=self._add, name="arm-player", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _add(self) -> None:
        """Make one more ready, or leave word why not; only the next taker tries again."""
        player: Armed | None = None
        failure: Exception | None = None
        try:
            player = self.start_now(self._fresh)
        except (ZygoteLost, JudgeError, OSError) as error:
            failure = error
        with self._changed:
            self._starting -= 1
            self._threads.discard(threading.current_thread())
            keep = player is not None and not self._closed
            if player is not None and keep:
                self._ready.append(player)
                self._failure = None
            elif failure is not None and not self._closed:
                self._failure = failure
            self._changed.notify_all()
        if player is not None and not keep:
            player.discard(self._forks)

    def _start(self, spec: PlayerSpec) -> Armed:
        referee_end, player_end = channel.pair()
        ours, theirs = channel.pair()
        with contextlib.ExitStack() as while_it_arms:
            try:
                with self._shared(), player_end, theirs:  # it starts CUDA as soon as it is forked
                    pid = self._forks.fork_player(player_end.fileno(), theirs.fileno(), spec)
                    if self._lock is not None:
                        while_it_arms.enter_context(self._lock.stoppable(pid))
            except (ZygoteLost, JudgeError):
                referee_end.close()
                ours.close()
                shutil.rmtree(spec.folder, ignore_errors=True)
                raise
            player = PlayerHandle(ours, pid)
            # the supervisor's word before the last, so that the next is of the player's end
            facts = player.sandbox(_ARM_S)
            try:
                if facts is not None:
                    self._forks.note_sandbox(facts, self._role)
                word = _first_word(referee_end, ours)
            except JudgeError as error:
                referee_end.close()
                report = player.end(self._forks, seems_dead=True)
                shutil.rmtree(spec.folder, ignore_errors=True)
                if not isinstance(error, ArmingFailed):
                    raise
                raise ArmingFailed(f"{error} ({report.how}) {report.log[-500:]}".rstrip()) from None
        return Armed(player, referee_end, Path(spec.folder), word, ours, pid)

    def _shared(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._lock is None else self._lock.hold(exclusive=False)


def _first_word(sock: socket.socket, lifeline: socket.socket) -> dict[str, Any]:
    """What a player says of itself when it is armed."""
    ready = is_readable(_ARM_S, sock, lifeline)
    if not ready:
        raise ArmingFailed(f"a player was not ready for a candidate within {_ARM_S:.0f} s")
    try:
        message, _ = Channel(sock, _FIRST_WORD_BYTES).receive_json()
        facts: dict[str, Any] = message["armed"]
    except (ChannelClosed, FrameError, KeyError) as error:
        raise ArmingFailed("a player died before it was ready for a candidate") from error
    return facts
