"""A candidate process with scripted answers."""

import contextlib
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

from online_judge.evaluator.dialogue import Dialogue
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed

ANSWER_BYTES = 2**20
Reply = Callable[[Any, list[int]], list[bytes]]
"""From an order, or the bytes of a message that is none, and its descriptors to messages."""


class Scripted:
    """A dialogue with a candidate process that is a thread of this process."""

    def __init__(self, reply: Reply) -> None:
        self.clock: list[tuple[str, str]] = []
        self.asked: list[Any] = []
        ours, theirs = channel.pair()
        self._reply = reply
        self._evaluator, self._candidate = Channel(ours, ANSWER_BYTES, max_fds=0), Channel(theirs)
        self.dialogue = Dialogue(self._evaluator, lambda whose, stage: self.clock.append((whose, stage)))
        self._thread = threading.Thread(target=self._obey)
        self._thread.start()

    def end(self) -> None:
        self._evaluator.close()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _obey(self) -> None:
        try:
            while True:
                body, fds = self._candidate.receive()
                try:
                    order = pickle.loads(body)
                except pickle.UnpicklingError:
                    order = body
                self.asked.append(order)
                files = [os.fstat(fd).st_ino for fd in fds]
                for message in self._reply(order, fds):
                    self._candidate.send(message)
                for fd, file in zip(fds, files, strict=True):
                    with contextlib.suppress(OSError):  # a window closes its own: the number may be another
                        if os.fstat(fd).st_ino == file:
                            os.close(fd)
        except ChannelClosed:
            pass
        finally:
            self._candidate.close()


@contextlib.contextmanager
def scripted(reply: Reply) -> Iterator[Scripted]:
    candidate = Scripted(reply)
    try:
        yield candidate
    finally:
        candidate.end()
