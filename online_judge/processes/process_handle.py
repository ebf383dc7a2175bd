"""A process under its supervisor, as the gateway sees it."""

from __future__ import annotations

import contextlib
import logging
import socket
from dataclasses import dataclass
from typing import Any

from online_judge.processes.fork_client import ForkClient
from online_judge.protocol.channel import Channel, ChannelClosed, is_readable

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0
_END_S = 15.0
_OBITUARY_S = 1.0


@dataclass(frozen=True)
class Report:
    """How a process ended, by its supervisor's word.

    Attributes:
        died: by a signal, or together with its supervisor.
        how: in words that follow "the process ended".
        log: the end of what it printed.
        out_of_memory: the kernel killed one of its processes for want of memory.
        orphans: processes of it that still ran although what started them had ended.
        started: it got as far as the candidate; else its end is the judge's trouble.
        sandbox: what was in force around it, see :mod:`online_judge.sandbox.read_back`; None if not started.
    """

    died: bool
    how: str
    log: str
    out_of_memory: bool = False
    orphans: int = 0
    started: bool = True
    sandbox: dict[str, Any] | None = None


class ProcessHandle:
    """Ends one process."""

    def __init__(self, lifeline: socket.socket, supervisor_pid: int) -> None:
        self._lifeline = lifeline
        self._channel = Channel(lifeline)
        self._supervisor_pid = supervisor_pid
        self._sandbox: dict[str, Any] | None = None
        self._obituary: dict[str, Any] | None = None
        self._lost = False

    def sandbox(self, timeout_s: float = _PATIENCE_S) -> dict[str, Any] | None:
        """What is in force around the process; None if it does not come to stand in it in time."""
        if self._sandbox is None and self._obituary is None:
            self._hear(timeout_s)
        return self._sandbox

    def end(self, fork_client: ForkClient, *, seems_dead: bool = False) -> Report:
        """Have the process and all that it started killed; return when nothing of it is left.

        With ``seems_dead`` the supervisor is first given time to notice how the process died by itself.
        """
        with self._lifeline:
            if seems_dead:
                self._hear_obituary(_OBITUARY_S)
            with contextlib.suppress(OSError):
                self._lifeline.shutdown(socket.SHUT_WR)
            self._hear_obituary(_END_S)
            if self._obituary is None and not self._lost:
                log.error("a supervisor did not end within %s s: it is killed", _END_S)
                fork_client.kill(self._supervisor_pid)
                self._hear_obituary(_END_S)
        return self._report()

    def _hear_obituary(self, timeout_s: float) -> None:
        while self._obituary is None and self._hear(timeout_s):
            pass

    def _hear(self, timeout_s: float) -> bool:
        """Take in one message; False if none came."""
        if self._lost or not is_readable(timeout_s, self._lifeline):
            return False
        try:
            message, _ = self._channel.receive_json()
        except ChannelClosed:
            self._lost = True
            return False
        if "sandbox" in message:
            self._sandbox = message["sandbox"]
        else:
            self._obituary = message
        return True

    def _report(self) -> Report:
        found = self._obituary
        if found is None:
            return Report(died=True, how="by signal 9", log="", sandbox=self._sandbox)
        died = False
        if found["crowded"]:
            how = "because it started too many processes"
        elif found["signal"] is not None:
            died, how = True, f"by signal {found['signal']}"
        elif found["exit"] is not None:
            how = f"with exit status {found['exit']}"
        else:
            how = "its connection to the judge"
        if found["out_of_memory"]:
            died, how = False, "because it ran out of memory"
        return Report(
            died,
            how,
            str(found["log"]),
            out_of_memory=bool(found["out_of_memory"]),
            orphans=int(found["orphans"]),
            started=bool(found["started"]),
            sandbox=self._sandbox,
        )
