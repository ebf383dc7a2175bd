"""Framed messages, with file descriptors, over a unix stream socket."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

_HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 256 * 2**20
MAX_FDS = 8


pair = socket.socketpair
"""Returns two connected sockets, closed on exec."""


class ChannelClosed(Exception):
    """The other side is gone."""


class FrameError(Exception):
    """The other side sent something that is not a message."""


class Channel:
    """One end of a connection; a message is four bytes of length and a body.

    Received bodies above ``max_bytes`` raise :class:`FrameError`. The kernel closes descriptors beyond
    ``max_fds``. If a message takes longer than ``limit_s`` to arrive or to be sent, the other side counts as
    gone.
    """

    def __init__(
        self,
        sock: socket.socket,
        max_bytes: int = MAX_FRAME_BYTES,
        max_fds: int = MAX_FDS,
        limit_s: float | None = None,
    ) -> None:
        self._limit_s = limit_s
        sock.settimeout(limit_s)
        self._sock = sock
        self._max_bytes = max_bytes
        self._max_fds = max_fds

    @classmethod
    def from_fd(cls, fd: int, max_bytes: int = MAX_FRAME_BYTES, max_fds: int = MAX_FDS) -> Channel:
        """Take over the socket behind ``fd``."""
        return cls(socket.socket(fileno=fd), max_bytes, max_fds)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def send(self, body: bytes, fds: Sequence[int] = ()) -> None:
        """Send one message; raises ChannelClosed if it has no reader."""
        head = _HEADER.pack(len(body))
        try:
            if fds:
                socket.send_fds(self._sock, [head], list(fds))
                self._sock.sendall(body)
            else:
                self._sock.sendall(head + body)  # at once: this process may be stopped after it
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> tuple[bytes, list[int]]:
        """Wait for one message and its descriptors; raises ChannelClosed, FrameError for one too long."""
        fds: list[int] = []
        head, body = b"", bytearray()
        deadline = None if self._limit_s is None else time.monotonic() + self._limit_s
        try:
            while len(head) < _HEADER.size:
                head += self._read(_HEADER.size - len(head), deadline, fds)
            (size,) = _HEADER.unpack(head)
            if size > self._max_bytes:
                raise FrameError(f"a message of {size} bytes, the limit is {self._max_bytes}")
            while len(body) < size:
                body += self._read(min(size - len(body), 2**20), deadline)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        finally:
            if deadline is not None:
                self._sock.settimeout(self._limit_s)
        return bytes(body), fds

    def _read(self, most: int, deadline: float | None, fds: list[int] | None = None) -> bytes:
        """Return the next bytes; add received descriptors to ``fds``, if given."""
        if deadline is not None:
            self._sock.settimeout(max(deadline - time.monotonic(), 0.001))
        if fds is not None and self._max_fds:
            part, extra, _, _ = socket.recv_fds(self._sock, most, self._max_fds)
            fds.extend(extra)
        else:
            part = self._sock.recv(most)
        if not part:
            raise ChannelClosed("end of stream")
        return part

    def send_json(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        self.send(json.dumps(message).encode(), fds)

    def receive_json(self) -> tuple[dict[str, Any], list[int]]:
        """Receive one JSON object; raises as :meth:`receive`, and FrameError if it is not one."""
        body, fds = self.receive()
        return json_object(body), fds


def is_readable(timeout_s: float, *sources: Channel | socket.socket | BinaryIO) -> bool:
    """Wait until one of ``sources`` is readable or closed at the other end; False after ``timeout_s``.

    ``poll`` is used because ``select`` takes no descriptor above 1023 and the gateway may have more.
    """
    waiting = select.poll()
    for source in sources:
        waiting.register(source, select.POLLIN)
    return bool(waiting.poll(max(timeout_s, 0.0) * 1000))


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a message as a JSON object; raises FrameError if it is not one."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("not a JSON object")
    return message
