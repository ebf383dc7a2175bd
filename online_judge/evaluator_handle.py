"""A slot's evaluator, as the gateway sees it: started when needed, replaced when it breaks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adaexplore.core.errors import JudgeError
from online_judge import channel
from online_judge.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.device_lock import DeviceLock
from online_judge.lease_desk import LeaseDesk
from online_judge.nursery import Nursery, ZygoteLost
from online_judge.player_handle import PlayerHandle
from online_judge.sandbox import PlayerSpec

_PATIENCE_S = 30.0
_WHOLE_MESSAGE_S = 10.0
_MAX_MESSAGE_BYTES = 64 * 2**20


class EvaluatorHandle:
    """Used from one thread at a time."""

    def __init__(
        self,
        nursery: Nursery,
        lock: DeviceLock,
        spec: Callable[[], PlayerSpec],
        config: Callable[[], dict[str, Any]],
    ) -> None:
        """Start nothing yet.

        Args:
            nursery: makes the processes.
            lock: the device's; leases are taken from it at the evaluator's word.
            spec: gives a new private folder and what an evaluator in it is forked with.
            config: gives what it is to be told first.
        """
        self._nursery = nursery
        self._lock = lock
        self._spec = spec
        self._config = config
        self._running: _Running | None = None

    def start(self) -> None:
        """Start one where there is none, or it died while idle.

        Raises:
            ZygoteLost: none can be started.
            JudgeError: its sandbox is less than what is required.
        """
        if self._running is not None and is_readable(0, self._running.channel):
            self.drop()  # an idle evaluator says nothing: this is the end of its stream
        if self._running is None:
            self._running = _Running(self._nursery, self._lock, self._spec(), self._config())

    def order(self, order: dict[str, Any], fds: list[int], keeper: int) -> None:
        """Give an order to an evaluator that was started; ``keeper`` is the process id above its candidate's.

        Raises:
            ChannelClosed: it is gone.
        """
        if self._running is None:
            raise ChannelClosed("there is no evaluator")
        self._running.desk.keeper = keeper
        self._running.channel.send_json(order, fds)

    def waited_s(self) -> float:
        """Seconds for which it has waited for leases so far."""
        return 0.0 if self._running is None else self._running.desk.waited_s()

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """What it says next; None where it says nothing in time, or asks for leases, which it gets here.

        Raises:
            ChannelClosed: it is gone, or says what is no message.
        """
        if self._running is None:
            raise ChannelClosed("there is no evaluator")
        if not is_readable(timeout_s, self._running.channel):
            return None
        try:
            message, _ = self._running.channel.receive_json()
        except FrameError as error:
            raise ChannelClosed(str(error)) from error
        if "lease" not in message:
            return message
        self._running.desk.obey(message)
        return None

    def drop(self) -> None:
        """End it, if there is one; its leases are returned when nothing of it is left."""
        if self._running is not None:
            running, self._running = self._running, None
            running.end(self._nursery)

    def settle(self) -> dict[str, Any] | None:
        """After a conversation that was broken off: its result after all; if none comes, it is dropped."""
        message = self._await("result")
        return None if message is None else message["result"]

    def release(self, *, problems: bool = False) -> None:
        """Have it free what it shared with a player that is gone, and what it keeps of ``problems``."""
        if self._running is None:
            return
        try:
            self._running.channel.send_json({"op": "release", "problems": problems})
        except ChannelClosed:
            self.drop()
            return
        self._await("released")

    def _await(self, key: str) -> dict[str, Any] | None:
        """Read until a message with ``key``; one that does not send it in time is dropped."""
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while self._running is not None:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    self.drop()
                    break
                message = self.hear(remaining_s)
                if message is not None and key in message:
                    return message
        except ChannelClosed:
            self.drop()
        return None


class _Running:
    """One evaluator process with its keeper, its folder and its leases."""

    def __init__(self, nursery: Nursery, lock: DeviceLock, spec: PlayerSpec, config: dict[str, Any]) -> None:
        """Start it, and wait until its sandbox stands.

        Raises:
            ZygoteLost: it cannot be started.
            JudgeError: its sandbox is less than what is required.
        """
        ours, theirs = channel.pair()
        lifeline, other_end = channel.pair()
        self._folder = Path(spec.folder)
        ours.settimeout(_WHOLE_MESSAGE_S)  # of a message that has begun: what runs there is not trusted
        self.channel = Channel(ours, _MAX_MESSAGE_BYTES, max_fds=0)
        self.desk = LeaseDesk(lock, self.channel.send_json)
        self._process: PlayerHandle | None = None
        try:
            with theirs, other_end:
                keeper = nursery.fork_referee(theirs.fileno(), other_end.fileno(), spec)
            self._process = PlayerHandle(lifeline, keeper)
            self.channel.send_json(config)
            sandbox = self._process.sandbox()
            if sandbox is None:
                raise ZygoteLost("an evaluator did not start")
            nursery.note_sandbox(sandbox, "evaluator")
        except (ZygoteLost, ChannelClosed) as error:
            self.end(nursery)
            raise ZygoteLost(str(error)) from error
        except JudgeError:
            self.end(nursery)
            raise

    def end(self, nursery: Nursery) -> None:
        """Kill it; returns when nothing of it is left."""
        if self._process is not None:
            self._process.end(nursery)
        self.desk.close()
        self.channel.close()
        shutil.rmtree(self._folder, ignore_errors=True)
