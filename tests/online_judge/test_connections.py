"""Many connections at a time, and idle ones."""

import asyncio
import contextlib
import resource
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from online_judge.api import auth, connections
from online_judge.api.connections import PunctualProtocol
from online_judge.protocol import channel
from online_judge.settings import Settings

from .live import LiveJudge
from .sources import PASSING

IDLE = 1100
HEAD_S = 1.0


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


def connect(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=30)


def is_closed(connection: socket.socket) -> bool:
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0)) and connection.recv(1) == b""


def test_soft_limit_of_files_is_raised(judge: LiveJudge) -> None:
    limits = Path(f"/proc/{judge.process.pid}/limits").read_text().splitlines()
    (line,) = [line for line in limits if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_idle_connections_stop_nobody(judge: LiveJudge) -> None:
    with many_files(), contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(connect(judge.url))
        assert judge.client.get("/livez").status_code == 200
        assert judge.evaluate(PASSING)["correctness"] is True
    assert judge.client.get("/livez").status_code == 200


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a server with one endpoint, which answers after twice HEAD_S."""
    monkeypatch.setattr(connections, "HEAD_S", HEAD_S)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(2 * HEAD_S)
        await PlainTextResponse("done")(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(slow, http=PunctualProtocol, lifespan="off", log_level="error")
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        running.should_exit = True
        thread.join()


def test_connection_without_a_request_is_closed(server: str) -> None:
    begin = time.monotonic()
    with connect(server) as connection:
        assert connection.recv(1) == b""
    assert HEAD_S - 0.1 < time.monotonic() - begin < HEAD_S + 5


def test_head_that_trickles_in_is_not_waited_for(server: str) -> None:
    begin = time.monotonic()
    with connect(server) as connection:
        while not is_closed(connection):
            assert time.monotonic() - begin < HEAD_S + 5
            with contextlib.suppress(OSError):
                connection.sendall(b"G" if time.monotonic() - begin < 0.2 else b"E")
            time.sleep(0.05)
    assert time.monotonic() - begin > HEAD_S - 0.1


def test_answer_may_take_longer_than_a_head(server: str) -> None:
    assert httpx.get(server, trust_env=False).text == "done"


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
