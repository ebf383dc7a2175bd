"""Use any program as a model: prompt on standard input, reply on standard output."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import PurePath

from adaexplore.core.errors import ConfigError, Interrupted, ModelRequestError
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest
from adaexplore.llm.retry import RetryPolicy, ServiceTrouble
from adaexplore.llm.vendors.vendor import Opening, Vendor

_POLL_S = 0.2
_STDERR_LIMIT = 300


class CommandClient:
    """Runs ``command``, split as in a POSIX shell, once per request, in its own process group.

    A run ends after ``timeout_s``, or when ``stop`` is set.

    Raises:
        ConfigError: the command line is empty or cannot be split.
    """

    def __init__(
        self,
        command: str,
        *,
        timeout_s: float,
        stop: threading.Event | None = None,
    ) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"command cannot be read: {error}; check its quotes") from None
        if not self._arguments:
            raise ConfigError("command is empty; set it to a program that reads a prompt and writes a reply")
        self._name = PurePath(self._arguments[0]).name
        self._timeout_s = timeout_s
        self._stop = stop or threading.Event()

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request; tokens and price are unknown.

        Raises:
            ModelRequestError: the program cannot be started.
            ServiceTrouble: it failed or took too long.
            Interrupted: ``stop`` was set.
        """
        start = time.monotonic()
        text = self._run(request.transcript)
        usage = Usage(seconds=time.monotonic() - start, usd=None)
        return ModelReply(text, Finish.COMPLETE, usage, self._name)

    def _run(self, prompt: str) -> str:
        # Files instead of pipes: a program may read late or never, and its background
        # processes cannot delay the reply.
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stdin.write(prompt.encode("utf-8", errors="surrogatepass"))
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    self._arguments, stdin=stdin, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise ModelRequestError(
                    f"cannot run '{self._arguments[0]}': {error.strerror}; install it or change command"
                ) from None
            try:
                code = self._wait(process)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            err.seek(0)
            if code != 0:
                raise ServiceTrouble(f"{self._name} {_ending(code)}{_last_line(err.read())}")
            return out.read().decode("utf-8", errors="replace")

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                if self._stop.is_set():
                    raise Interrupted(
                        f"stopped while {self._name} was writing; run the same command to continue"
                    ) from None
                if time.monotonic() > deadline:
                    raise ServiceTrouble(f"{self._name} took longer than {self._timeout_s:g} s") from None


def _ending(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:_STDERR_LIMIT]}" if last else ""


def _open(opening: Opening) -> CommandClient:
    return CommandClient(opening.config.command or "", timeout_s=opening.timeout_s, stop=opening.stop)


VENDOR = Vendor(
    names=("command",),
    about="any program",
    needs="`command`",
    open=_open,
    cost="unknown",
    setting=("command", "the program to run"),
    retries=RetryPolicy(max_attempts=3, max_wait_s=60.0),  # a program usually has its own
)
