"""A slot's referee, as the gateway sees it: started when needed, replaced when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from online_judge import channel
from online_judge.channel import Channel, ChannelClosed, is_readable
from online_judge.device_lock import DeviceLock
from online_judge.nursery import Nursery, ZygoteLost

_PATIENCE_S = 30.0


class RefereeHandle:
    """Used from one thread at a time."""

    def __init__(self, nursery: Nursery, lock: DeviceLock, config: Callable[[], dict[str, Any]]) -> None:
        """Start nothing yet; ``config`` gives what it is to be told first, ``lock`` is the device's."""
        self._nursery = nursery
        self._lock = lock
        self._config = config
        self._channel: Channel | None = None
        self._pid = 0

    def ready(self) -> Channel:
        """Its channel; that of a new one where there is none or it died while idle.

        Raises:
            ZygoteLost: none can be started.
        """
        if self._channel is not None and is_readable(0, self._channel):
            self.drop()  # an idle referee says nothing: this is the end of its stream
        if self._channel is None:
            ours, theirs = channel.pair()
            try:
                with theirs:
                    self._pid = self._nursery.fork_referee(theirs.fileno())
                self._channel = Channel(ours)
                self._channel.send_json(self._config())
            except (ZygoteLost, ChannelClosed) as error:
                ours.close()
                self._channel = None
                raise ZygoteLost(str(error)) from error
        return self._channel

    def drop(self) -> None:
        """End it, if there is one."""
        if self._channel is not None:
            self._nursery.kill(self._pid)
            self._lock.release_stopped()
            self._channel.close()
            self._channel = None

    def settle(self) -> dict[str, Any] | None:
        """After a conversation that was broken off: its result after all; if none comes, it is dropped."""
        message = self._await("result")
        return None if message is None else message["result"]

    def release(self, *, problems: bool = False) -> None:
        """Have it free what it shared with a player that is gone, and what it keeps of ``problems``."""
        if self._channel is None:
            return
        try:
            self._channel.send_json({"op": "release", "problems": problems})
        except ChannelClosed:
            self.drop()
            return
        self._await("released")

    def _await(self, key: str) -> dict[str, Any] | None:
        """Read until a message with ``key``; one that does not send it in time is dropped."""
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while self._channel is not None:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not is_readable(remaining, self._channel):
                    self.drop()
                elif key in (message := self._channel.receive_json()[0]):
                    return message
        except ChannelClosed:
            self.drop()
        return None
