"""What a person who starts the judge by hand gets to see."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.settings.config import RunConfig

from .live import judge_environment

COMMAND = [sys.executable, "-m", "adaexplore", "judge", "--port", "0"]


@pytest.mark.slow
def test_it_prints_its_address_and_ends_quietly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as errors:
        judge = subprocess.Popen(
            COMMAND,
            env=judge_environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert judge.stdout is not None
    with judge.stdout:
        url = judge.stdout.readline().removeprefix("Judge: ").strip()
        assert httpx.get(f"{url}/livez", trust_env=False).json() == {"status": "alive"}
        assert httpx.get(f"{url}/docs", trust_env=False).status_code == 404
        os.killpg(judge.pid, signal.SIGINT)
        assert judge.wait(60) == 130
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_swallowed_interrupt_has_its_exit_code() -> None:
    code = (
        "import signal, sys, online_judge.__main__ as judge\n"
        "def run(server, sockets):\n"
        "    server.started = True\n"
        "    server.handle_exit(signal.SIGINT, None)\n"
        "judge._Server.run = run\n"
        "sys.exit(judge.main(['--port', '0']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=judge_environment(), timeout=60, check=False)
    assert done.returncode == 130


@pytest.mark.slow
def test_unknown_log_settings_are_named(tmp_path: Path) -> None:
    settings = {"JUDGE_STATE": str(tmp_path), "LOG_LEVEL": "loud", "LOG_FORMAT": "xml"}
    done = subprocess.run(
        COMMAND, env=judge_environment(**settings), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2  # for its state, which is a folder
    assert "LOG_LEVEL=loud is unknown, it is info; choose among: critical" in done.stderr
    assert "LOG_FORMAT=xml is unknown, it is text; choose json or text" in done.stderr


@pytest.mark.slow
def test_impossible_port_is_wrong_input() -> None:
    command = [*COMMAND[:-1], "99999999"]
    done = subprocess.run(command, env=judge_environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith("--port is 99999999; set it to 0..65535")


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"no database", None])
def test_unusable_state_exits_with_one_error(content: bytes | None, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    if content is None:  # tables are missing
        with contextlib.closing(sqlite3.connect(state)) as connection, connection:
            connection.execute("PRAGMA user_version = 2")
    else:
        state.write_bytes(content * 100)
    done = subprocess.run(
        COMMAND,
        env=judge_environment(JUDGE_STATE=str(state)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert f"JUDGE_STATE {state} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("level", ["trace", "loud"])
def test_every_log_level_gives_one_error(level: str) -> None:
    environment = judge_environment(JUDGE_STATE="/dev/null", LOG_LEVEL=level)
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "JUDGE_STATE '/dev/null'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_gpu_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(JudgeUnavailableError, match=r"\(gpu_ids of a run\) names device 7"),
        embedded_judge(
            RunConfig(judge_device="cpu", gpu_ids=(7,), num_processes=1), tmp_path / "judge.log", "token"
        ),
    ):
        pass


LISTED_BEFORE_THE_SANDBOX = """
import pkgutil
from online_judge.processes.fork_server import import_everything
from online_judge.checks.registry import all_checks
from online_judge.evaluator.timing.baselines.baseline import all_baselines

import_everything()
pkgutil.iter_modules = pkgutil.walk_packages = lambda *_: ()  # as in a sandbox
assert all_baselines().keys() == {"eager", "compile", "max-autotune"}
assert len(all_checks()) > 10
"""


@pytest.mark.slow
def test_forked_processes_know_all_files_of_extensions() -> None:
    ended = subprocess.run([sys.executable, "-c", LISTED_BEFORE_THE_SANDBOX], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
