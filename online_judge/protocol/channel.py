"""Framed messages, with file descriptors, over a unix stream socket."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Protocol

_HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 256 * 2**20
MAX_FDS = 8


class HasDescriptor(Protocol):
    """What can be waited for."""

    def fileno(self) -> int:
        """Return its descriptor."""
        ...


class ChannelClosed(Exception):
    """The other side is gone."""


class FrameError(Exception):
    """The other side sent something that is no message."""


class Channel:
    """One end of a connection; a message is four bytes of length and a body."""

    def __init__(
        self,
        sock: socket.socket,
        max_bytes: int = MAX_FRAME_BYTES,
        max_fds: int = MAX_FDS,
        limit_s: float | None = None,
    ) -> None:
        """Take over ``sock``; received bodies above ``max_bytes`` raise :class:`FrameError`.

        Descriptors beyond ``max_fds`` are closed by the kernel and never seen. Where a message takes longer
        than ``limit_s``, received or sent, the other side counts as gone.
        """
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
        """The descriptor, for select."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close this end."""
        self._sock.close()

    def send(self, body: bytes, fds: Sequence[int] = ()) -> None:
        """Send one message.

        Raises:
            ChannelClosed: nobody is there to read it.
        """
        try:
            if fds:
                socket.send_fds(self._sock, [_HEADER.pack(len(body))], list(fds))
            else:
                self._sock.sendall(_HEADER.pack(len(body)))
            self._sock.sendall(body)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> tuple[bytes, list[int]]:
        """Wait for one message and the descriptors that came with it.

        Raises:
            ChannelClosed: the other side closed or died.
            FrameError: the announced length is above the limit.
        """
        fds: list[int] = []
        head = b""
        deadline = None if self._limit_s is None else time.monotonic() + self._limit_s
        try:
            while len(head) < _HEADER.size:
                self._wait_until(deadline)
                missing = _HEADER.size - len(head)
                if self._max_fds:
                    part, extra, _, _ = socket.recv_fds(self._sock, missing, self._max_fds)
                    fds.extend(extra)
                else:
                    part = self._sock.recv(missing)
                if not part:
                    raise ChannelClosed("end of stream")
                head += part
            (size,) = _HEADER.unpack(head)
            if size > self._max_bytes:
                raise FrameError(f"a message of {size} bytes, the limit is {self._max_bytes}")
            body = bytearray()
            while len(body) < size:
                self._wait_until(deadline)
                part = self._sock.recv(min(size - len(body), 2**20))
                if not part:
                    raise ChannelClosed("end of stream within a message")
                body += part
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        finally:
            if deadline is not None:
                self._sock.settimeout(self._limit_s)
        return bytes(body), fds

    def _wait_until(self, deadline: float | None) -> None:
        """Let the next read end by then, with an :class:`OSError`."""
        if deadline is not None:
            self._sock.settimeout(max(deadline - time.monotonic(), 0.001))

    def send_json(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send ``message`` as JSON."""
        self.send(json.dumps(message).encode(), fds)

    def receive_json(self) -> tuple[dict[str, Any], list[int]]:
        """Wait for one JSON object.

        Raises:
            ChannelClosed, FrameError: as :meth:`receive`; also when the body is no JSON object.
        """
        body, fds = self.receive()
        return json_object(body), fds


def is_readable(timeout_s: float, *sources: HasDescriptor) -> bool:
    """Wait until one of ``sources`` can be read or is closed at the other end; False after ``timeout_s``.

    ``select`` takes no descriptor above 1023, and each connection of the gateway has one.
    """
    waiting = select.poll()
    for source in sources:
        waiting.register(source, select.POLLIN)
    return bool(waiting.poll(max(timeout_s, 0.0) * 1000))


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a message is.

    Raises:
        FrameError: it is none.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise FrameError("not a JSON object")
    return message


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, closed on exec."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
