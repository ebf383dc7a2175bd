from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError, Interrupted, ModelRequestError, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import Finish, ModelRequest, Turn
from adaexplore.llm.retry import Retry, RetryingClient, RetryPolicy
from adaexplore.llm.vendors.command_client import CommandClient
from tests.llm.conftest import ask, build_client


def program(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def client(
    command: str, timeout_s: float = 30.0, attempts: int = 1, stop: threading.Event | None = None
) -> RetryingClient:
    retry = Retry(RetryPolicy(max_attempts=attempts, base_s=0.0))
    return RetryingClient(CommandClient(command, timeout_s=timeout_s, stop=stop), retry)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def runs(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_prompt_goes_in_and_reply_comes_out() -> None:
    reply = build_client("command", "any", command="cat").complete(ask("a prompt\nwith ünïcode"))
    assert (reply.text, reply.finish, reply.model) == ("a prompt\nwith ünïcode", Finish.COMPLETE, "cat")
    assert reply.usage.usd is None
    assert reply.usage.seconds > 0


def test_conversation_reaches_the_program_as_one_text() -> None:
    turn = Turn("first", Purpose.LARGE, "my answer\n")
    request = ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,))
    reply = client("cat").complete(request)
    assert reply.text == "first\n\n## Your reply\nmy answer\n\nagain"


def test_large_prompt_and_reply_do_not_block() -> None:
    prompt = "x" * 3_000_000
    assert client("cat").complete(ask(prompt)).text == prompt


def test_program_need_not_read_the_prompt() -> None:
    assert client("echo 'two words'").complete(ask("x" * 3_000_000)).text == "two words\n"


def test_reply_need_not_be_text() -> None:
    assert client(r"printf '\377ok'").complete(ask()).text == "\ufffdok"


def test_words_are_not_given_to_a_shell() -> None:
    assert client("echo $HOME ; false").complete(ask()).text == "$HOME ; false\n"


def test_failure_shows_the_last_line_of_stderr() -> None:
    code = "import sys; print('noise\\nlog in first\\n', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ModelUnavailableError, match="ended with exit code 3: log in first; gave up after 2"):
        client(program(code), attempts=2).complete(ask())


def test_failure_may_pass(tmp_path: Path) -> None:
    flag = shlex.quote(str(tmp_path / "flag"))
    command = shlex.join(["sh", "-c", f"if [ -e {flag} ]; then echo fine; else touch {flag}; exit 1; fi"])
    assert client(command, attempts=2).complete(ask()).text == "fine\n"


def test_death_by_signal_is_named() -> None:
    with pytest.raises(ModelUnavailableError, match="sh was killed by signal 9"):
        client("sh -c 'kill -9 $$'").complete(ask())


def test_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = shlex.join(["sh", "-c", f"sleep 300 & echo $! > {pid_file}; wait"])
    with pytest.raises(ModelUnavailableError, match=r"sh took longer than 0.3 s"):
        client(command, timeout_s=0.3).complete(ask())
    pid = int(pid_file.read_text())
    assert eventually(lambda: not runs(pid))


def test_leftover_processes_neither_delay_reply_nor_survive(tmp_path: Path) -> None:
    start = time.monotonic()
    reply = client("sh -c 'sleep 300 & echo $!'").complete(ask())
    assert time.monotonic() - start < 20
    assert eventually(lambda: not runs(int(reply.text)))


def test_stop_ends_the_program(tmp_path: Path) -> None:
    stop = threading.Event()
    pid_file = tmp_path / "pid"
    command = shlex.join(["sh", "-c", f"echo $$ > {pid_file}; exec sleep 300"])

    def stop_when_started() -> None:
        eventually(pid_file.exists)
        stop.set()

    threading.Thread(target=stop_when_started).start()
    with pytest.raises(Interrupted, match="run the same command"):
        client(command, stop=stop).complete(ask())
    assert not runs(int(pid_file.read_text()))


def test_missing_program_is_named() -> None:
    with pytest.raises(ModelRequestError, match="cannot run 'no-such-program': No such file"):
        client("no-such-program --fast").complete(ask())


@pytest.mark.parametrize("command", ["", "   ", "echo 'open"])
def test_unusable_command_line_is_refused(command: str) -> None:
    with pytest.raises(ConfigError, match=r"^(server_type )?command"):
        build_client("command", "m", command=command)


def test_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_HOME", "here")
    assert client("sh -c 'echo $MODEL_HOME'").complete(ask()).text == "here\n"
    assert os.environ["MODEL_HOME"] == "here"
