import contextlib
import os
import socket
import struct
import threading
import time

import pytest

from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError


@pytest.fixture
def ends():
    left, right = channel.pair()
    with left, right:
        yield Channel(left), Channel(right, max_bytes=2**21)


def test_large_message_and_descriptors_arrive(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    read, write = os.pipe()
    body = b"x" * 2**20
    sender = threading.Thread(target=left.send, args=(body, [write]))
    sender.start()
    received, fds = right.receive()
    sender.join()
    assert received == body
    os.write(fds[0], b"hello")
    assert os.read(read, 5) == b"hello"
    for fd in (read, write, *fds):
        os.close(fd)


def test_closed_end_is_noticed_on_both_ways(ends: tuple[Channel, Channel]) -> None:
    left, right = ends
    left.close()
    with pytest.raises(ChannelClosed):
        right.receive()
    with pytest.raises(ChannelClosed):
        right.send(b"x")


def test_too_long_or_malformed_messages_are_refused() -> None:
    for raw in (b"\xff\xff\xff\xff", b"\0\0\0\x02[]", b"\0\0\0\x03abc"):
        left, right = socket.socketpair()
        with left, right:
            left.sendall(raw)
            with pytest.raises(FrameError):
                Channel(right, max_bytes=100).receive_json()


def test_message_that_trickles_ends_the_connection() -> None:
    ours, theirs = channel.pair()
    with theirs:
        slow = Channel(ours, limit_s=0.3)
        stop = threading.Event()

        def trickle() -> None:
            theirs.send(struct.pack(">I", 1000))
            while not stop.wait(0.05):
                with contextlib.suppress(OSError):
                    theirs.send(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()
        begin = time.monotonic()
        with pytest.raises(ChannelClosed):
            slow.receive()
        assert time.monotonic() - begin < 5
        stop.set()
        thread.join()
        slow.close()
