"""The gateway's side of the fork server: start it, ask it for processes, replace it when it dies."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import JudgeError
from online_judge.processes import temporary_folders
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, is_readable
from online_judge.sandbox import read_back
from online_judge.sandbox.process_spec import ProcessSpec, fork_server_environment

log = logging.getLogger(__name__)

_START_S = 180.0
_ANSWER_S = 10.0
_STOP_S = 10.0
_FACTS_S = 120.0


class ForkServerLost(Exception):
    """The fork server died while something was asked of it."""


class ForkClient:
    """Owner of the fork server process and of the judge's temporary folder; safe to call from threads."""

    def __init__(self, required: read_back.Level = "none") -> None:
        """Start nothing yet; ``required`` is the least sandbox in which anything runs."""
        self._required = required
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._closed = False
        self._starts = 0
        self._home_lock: int | None = None
        self._weaknesses: set[tuple[str, ...]] = set()
        self._noting = threading.Lock()  # apart: an evaluation that ends does not wait for the fork server
        self.home = Path()
        self.versions: dict[str, str] = {}
        self.sandbox: dict[str, Any] | None = None
        self.evaluator_level: read_back.Level = "none"

    def start(self) -> None:
        """Start the fork server and wait until it is ready.

        Raises:
            JudgeError: it does not come up.
        """
        with self._lock:
            self._ensure()

    def close(self) -> None:
        """End the fork server and everything below it, and remove the temporary folder."""
        with self._lock:
            self._closed = True
            if self._channel is not None:
                self._channel.close()
            if self._process is not None:
                try:
                    self._process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    log.error("the fork server did not end within %s s: it is killed", _STOP_S)
                    self._process.kill()
                    self._process.wait()
            if self.home != Path():
                shutil.rmtree(self.home, ignore_errors=True)
            self._release_home()

    def fork_process(self, process_end: int, lifeline: int, spec: ProcessSpec) -> int:
        """A new supervisor with its process; gives the supervisor's process id."""
        return self._fork({"op": "candidate", "spec": spec.to_json()}, [process_end, lifeline])

    def note_sandbox(self, sandbox: dict[str, Any], role: Literal["candidate", "evaluator"]) -> None:
        """Keep what is in force around processes of this role; warn, once, of what is not.

        Raises:
            JudgeError: it is less than what is required.
        """
        level, weak = read_back.level(sandbox), read_back.weaknesses(sandbox)
        if read_back.LEVELS.index(level) < read_back.LEVELS.index(self._required):
            raise JudgeError(
                f"JUDGE_REQUIRE_SANDBOX is {self._required}, but the sandbox of the {role} is {level} here "
                f"({', '.join(weak)}): see SECURITY.md for what it needs, or set it to {level}"
            )
        if role == "evaluator":
            self.evaluator_level = level
            return
        self.sandbox = sandbox | {"uid": sandbox.get("uid") is not None}
        with self._noting:
            known = weak in self._weaknesses
            self._weaknesses.add(weak)
        if weak and not known:
            log.warning("the sandbox of candidates is incomplete on this machine: %s", ", ".join(weak))

    @property
    def generation(self) -> int:
        """Return a number that grows when the fork server dies, and with it all processes below it."""
        process = self._process
        return self._starts + (process is not None and process.poll() is not None)

    @property
    def in_force(self) -> dict[str, Any] | None:
        """Return the sandbox of candidates, with the level of the evaluators'; None before the first."""
        return None if self.sandbox is None else self.sandbox | {"evaluator": self.evaluator_level}

    def gpus(self) -> list[tuple[str, str]]:
        """Name and architecture (``sm_NN``) of the CUDA devices, asked of a child that may touch CUDA.

        Raises:
            JudgeError: the child does not answer.
        """
        read, write = os.pipe()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        try:
            self._fork({"op": "facts", "environment": environment}, [write])
        except ForkServerLost as error:
            raise JudgeError(f"the judge's fork server died while it looked for GPUs: {error}") from error
        finally:
            os.close(write)
        with os.fdopen(read, "rb") as pipe:
            if not is_readable(_FACTS_S, pipe):
                raise JudgeError(f"CUDA did not start within {_FACTS_S:.0f} s; look at nvidia-smi")
            text = pipe.read()
        if not text:
            log.warning("CUDA could not be started: the judge goes on without it")
            return []
        return [(name, target) for name, target in json.loads(text)["gpus"]]

    def kill(self, pid: int) -> None:
        """Kill a process that this fork client's fork server forked."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _fork(self, order: dict[str, Any], fds: list[int]) -> int:
        with self._lock:
            self._ensure()
            assert self._channel is not None
            try:
                self._channel.send_json(order, fds)
                if not is_readable(_ANSWER_S, self._channel):
                    raise ChannelClosed(f"no answer within {_ANSWER_S:.0f} s")
                answer, _ = self._channel.receive_json()
            except ChannelClosed as error:
                if self._process is not None:
                    self._process.kill()
                    self._process.wait()
                raise ForkServerLost(str(error)) from error
            return int(answer["pid"])

    def _release_home(self) -> None:
        if self._home_lock is not None:
            os.close(self._home_lock)
            self._home_lock = None

    def _ensure(self) -> None:
        if self._closed:
            raise ForkServerLost("the judge is closing")
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            log.error("the fork server died (exit status %s): starting another", self._process.returncode)
        if self._channel is not None:
            self._channel.close()
        if self.home == Path() or not self.home.is_dir():
            self._release_home()
            temporary_folders.sweep()
            self.home, self._home_lock = temporary_folders.make()
        assert self._home_lock is not None
        ours, theirs = channel.pair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "online_judge.processes.fork_server",
                    str(theirs.fileno()),
                    str(self.home),
                ],
                pass_fds=[theirs.fileno(), self._home_lock],
                env=fork_server_environment(os.environ, self.home),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._channel = Channel(ours)
        self._starts += 1
        try:
            if not is_readable(_START_S, ours):
                raise ChannelClosed(f"no answer within {_START_S:.0f} s")
            self.versions = self._channel.receive_json()[0]["versions"]
        except ChannelClosed as error:
            self._process.kill()
            self._process.wait()
            raise JudgeError(
                f"the judge's worker process did not start ({error}); its message is above, often "
                "torch or triton is missing: pip install 'adaexplore[judge]'"
            ) from error
