"""Many connections at a time, and connections on which nothing is asked."""

import asyncio
import contextlib
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.types import Message, Receive, Scope, Send

from online_judge.api import auth
from online_judge.api.connections import HEAD_S
from online_judge.protocol import channel
from online_judge.settings import Settings

from .live import LiveJudge
from .sources import HONEST, PASSING, with_forward

IDLE = 1100


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * IDLE:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(judge: LiveJudge) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(judge.url.rpartition(":")[2])), timeout=30)


def is_closed(connection: socket.socket) -> bool:
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0)) and connection.recv(1) == b""


def test_soft_limit_of_files_is_raised(judge: LiveJudge) -> None:
    limits = Path(f"/proc/{judge.process.pid}/limits").read_text().splitlines()
    (line,) = [line for line in limits if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_idle_connections_stop_nobody_and_are_closed(own_judge: Callable[..., LiveJudge]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))  # the judge begins with this one
    try:
        judge = own_judge()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with many_files(), contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(judge)) for _ in range(IDLE)]
        assert judge.client.get("/livez").status_code == 200
        assert judge.evaluate(PASSING)["correctness"] is True
        time.sleep(HEAD_S + 1)
        assert all(map(is_closed, idle))
    assert judge.client.get("/livez").status_code == 200


def test_head_that_trickles_in_is_not_waited_for(judge: LiveJudge) -> None:
    begin = time.monotonic()
    with connect(judge) as connection:
        while not is_closed(connection):
            assert time.monotonic() - begin < HEAD_S + 5
            with contextlib.suppress(OSError):
                connection.sendall(b"G" if time.monotonic() - begin < 0.2 else b"E")
            time.sleep(0.5)
    assert time.monotonic() - begin > HEAD_S - 1


@pytest.mark.slow
def test_answer_may_take_longer_than_a_head(judge: LiveJudge) -> None:
    answer = judge.evaluate(with_forward(HONEST, top=f"time.sleep({HEAD_S + 1})"))
    assert answer["correctness"] is True


def test_body_that_stops_arriving_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Message] = []
    parts: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        return parts.pop() if parts else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("a body that is not whole went on")

    monkeypatch.setattr(auth, "PAUSE_S", 0.1)
    application = SimpleNamespace(state=SimpleNamespace(settings=Settings()))
    scope = {"type": "http", "path": "/evaluate", "client": None, "headers": [], "app": application}
    asyncio.run(auth.AccessControl(app)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_waiting_works_beyond_1024_descriptors() -> None:
    with many_files(), contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(open("/dev/null"))
        ours, theirs = map(stack.enter_context, channel.pair())
        assert ours.fileno() > 1024
        assert channel.is_readable(0, ours) is False
        theirs.send(b"x")
        assert channel.is_readable(5, ours) is True
