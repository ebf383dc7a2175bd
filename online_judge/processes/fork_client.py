"""The gateway's side of the fork server: start it, ask it for processes, replace it when it dies."""

import itertools
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaexplore.core.environment import DeviceFacts, SoftwareFacts
from adaexplore.core.errors import JudgeError
from online_judge.processes import temporary_folders
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, is_readable
from online_judge.sandbox import read_back
from online_judge.sandbox.process_spec import ProcessSpec, Role, fork_server_environment

log = logging.getLogger(__name__)

_START_S = 180.0
_ANSWER_S = 10.0
_STOP_S = 10.0
_GPUS_S = 120.0


class ForkServerLost(Exception):
    """The fork server died before it answered."""


class ForkClient:
    """Owner of the fork server process and of the judge's temporary folder; thread-safe."""

    def __init__(self, required: read_back.Level = "none") -> None:
        """Start nothing yet; ``required`` is the lowest accepted sandbox level."""
        self.home = Path()  # the temporary folder
        self.software = SoftwareFacts()
        self._required = required
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._closed = False
        self._starts = 0
        self._home_lock = -1
        self._numbers = itertools.count(1)
        self._weaknesses: set[tuple[str, ...]] = set()
        self._sandbox: dict[str, object] | None = None  # of the latest candidate
        self._evaluator_level: read_back.Level = "none"

    def start(self) -> None:
        """Start the fork server and wait until it is ready; raises JudgeError if it does not start."""
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
                    self._kill(self._process)
            if self.home != Path():
                shutil.rmtree(self.home, ignore_errors=True)
            self._release_home()

    def make_folder(self) -> str:
        folder = self.home / f"job-{next(self._numbers)}"
        folder.mkdir(mode=0o700, parents=True)  # the judge's temporary folder may have been removed
        return str(folder)

    def fork_process(self, process_end: int, lifeline: int, spec: ProcessSpec) -> int:
        """Fork a supervisor with its process; return the supervisor's process id."""
        return self._fork({"op": "candidate", "spec": asdict(spec)}, [process_end, lifeline])

    def note_sandbox(self, sandbox: dict[str, object], role: Role) -> None:
        """Remember the sandbox of a process; raises JudgeError if it is weaker than required."""
        level, weak = read_back.level(sandbox), read_back.weaknesses(sandbox)
        if read_back.LEVELS.index(level) < read_back.LEVELS.index(self._required):
            name = "evaluator" if role == "evaluator" else "candidate"
            raise JudgeError(
                f"JUDGE_REQUIRE_SANDBOX is {self._required}, but the sandbox of the {name} is {level} here "
                f"({', '.join(weak)}): see SECURITY.md for what it needs, or set it to {level}"
            )
        if role == "evaluator":
            self._evaluator_level = level
            return
        self._sandbox = sandbox
        if weak and weak not in self._weaknesses:
            self._weaknesses.add(weak)  # logged once
            log.warning("the sandbox of candidates is incomplete on this machine: %s", ", ".join(weak))

    @property
    def in_force(self) -> dict[str, object] | None:
        """Return the sandbox of the latest candidate as :meth:`around` does; None before the first."""
        return self.around(self._sandbox)

    def around(self, sandbox: dict[str, object] | None) -> dict[str, object] | None:
        """Return a candidate's sandbox as verdicts show it, with the evaluators' level."""
        if sandbox is None:
            return None
        return sandbox | {"uid": sandbox.get("uid") is not None, "evaluator": self._evaluator_level}

    @property
    def generation(self) -> int:
        """Return the number of the present or next fork server; it grows when one dies."""
        process = self._process
        return self._starts + (process is None or process.poll() is not None)

    def gpus(self) -> list[DeviceFacts]:
        """Find the CUDA devices in a child process that may touch CUDA."""
        read, write = os.pipe()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        try:
            self._fork({"op": "gpus", "environment": environment}, [write])
        except ForkServerLost as error:
            raise JudgeError(f"the judge's fork server died while it looked for GPUs: {error}") from error
        finally:
            os.close(write)
        with os.fdopen(read, "rb") as pipe:
            if not is_readable(_GPUS_S, pipe):
                raise JudgeError(f"CUDA did not start within {_GPUS_S:.0f} s; look at nvidia-smi")
            text = pipe.read()
        if not text:
            log.warning("CUDA could not be started: the judge goes on without it")
            return []
        return [DeviceFacts.model_validate(gpu) for gpu in json.loads(text)["gpus"]]

    def _fork(self, order: dict[str, object], fds: list[int]) -> int:
        with self._lock:
            process, control = self._ensure()
            try:
                control.send_json(order, fds)
                return int(_answer(control, _ANSWER_S)["pid"])
            except ChannelClosed as error:
                self._kill(process)
                raise ForkServerLost(str(error)) from error

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    def _release_home(self) -> None:
        if self._home_lock >= 0:
            os.close(self._home_lock)
            self._home_lock = -1

    def _ensure(self) -> tuple[subprocess.Popen[bytes], Channel]:
        """Return the fork server and its channel; start a new one if it is dead."""
        if self._closed:
            raise ForkServerLost("the judge is closing")
        if self._process is not None and self._channel is not None:
            if self._process.poll() is None:
                return self._process, self._channel
            log.error("the fork server died (exit status %s): starting another", self._process.returncode)
            self._channel.close()
        if self.home == Path() or not self.home.is_dir():
            self._release_home()
            temporary_folders.sweep()
            self.home, self._home_lock = temporary_folders.make()
        ours, theirs = channel.pair()
        with theirs:
            module, control = "online_judge.processes.fork_server", theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(control), str(self.home)],
                pass_fds=[control, self._home_lock],
                env=fork_server_environment(os.environ, self.home),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._channel = Channel(ours)
        self._starts += 1
        try:
            self.software = SoftwareFacts.model_validate(_answer(self._channel, _START_S)["software"])
        except ChannelClosed as error:
            self._kill(self._process)
            raise JudgeError(
                f"the judge's worker process did not start ({error}); its message is above, often "
                "torch or triton is missing: pip install 'adaexplore[judge]'"
            ) from error
        return self._process, self._channel


def _answer(control: Channel, limit_s: float) -> dict[str, Any]:
    if not is_readable(limit_s, control):
        raise ChannelClosed(f"no answer within {limit_s:.0f} s")
    return control.receive_json()[0]
