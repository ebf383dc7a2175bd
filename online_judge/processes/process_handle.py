"""A process under its supervisor, as the gateway sees it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from online_judge.protocol.channel import Channel, ChannelClosed, is_readable
from online_judge.sandbox import linux

log = logging.getLogger(__name__)

_END_S = 15.0
_NOTICE_S = 1.0


@dataclass(frozen=True)
class Report:
    """How a process ended, as its supervisor reports it."""

    died: bool  # by a signal, or together with its supervisor
    how: str  # in words that follow "the process ended"
    log: str  # the end of what it printed
    out_of_memory: bool = False  # the kernel killed one of its processes for want of memory
    orphans: int = 0  # processes of it that still ran although what started them had ended


@dataclass(eq=False)
class ProcessHandle:
    """One process under its supervisor; the owner of the handle ends it."""

    connection: socket.socket  # the gateway's end of its socket
    lifeline: socket.socket  # readable when its supervisor has reported its end
    supervisor: int  # process id of its supervisor
    folder: Path  # its private folder
    generation: int = 0  # of the fork server, see :attr:`ForkClient.generation`
    _sandbox: dict[str, object] | None = field(default=None, init=False)
    _end_report: dict[str, Any] | None = field(default=None, init=False)
    _lost: bool = field(default=False, init=False)

    @property
    def alive(self) -> bool:
        """Return whether its supervisor has not reported its end and no signal has stopped it."""
        return not is_readable(0, self.lifeline) and not self.stopped

    @property
    def stopped(self) -> bool:
        """Return whether a signal has stopped it."""
        return any(linux.is_stopped(child) for child in linux.children(self.supervisor))

    def sandbox(self, timeout_s: float = 0.0) -> dict[str, object] | None:
        """Return the sandbox that is in force; None if it is not ready before the timeout."""
        if self._sandbox is None and self._end_report is None:
            self._hear(timeout_s)
        return self._sandbox

    def end(self, *, seems_dead: bool = False) -> Report:
        """Kill it and all that it started, and remove its folder; return when that is done.

        With ``seems_dead`` the supervisor first gets time to notice how the process died.
        """
        self.connection.close()
        with self.lifeline:
            if seems_dead:
                self._await_report(_NOTICE_S)
            with contextlib.suppress(OSError):
                self.lifeline.shutdown(socket.SHUT_WR)
            self._await_report(_END_S)
            if self._end_report is None and not self._lost:
                log.error("a supervisor did not exit within %s s: it is killed", _END_S)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.supervisor, signal.SIGKILL)
                self._await_report(_END_S)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self._report()

    def _await_report(self, timeout_s: float) -> None:
        while self._end_report is None and self._hear(timeout_s):
            pass

    def _hear(self, timeout_s: float) -> bool:
        """Receive one message of the supervisor; return False if none came."""
        if self._lost or not is_readable(timeout_s, self.lifeline):
            return False
        try:
            message, _ = Channel(self.lifeline).receive_json()
        except ChannelClosed:
            self._lost = True
            return False
        if "sandbox" in message:
            self._sandbox = message["sandbox"]
        else:
            self._end_report = message
        return True

    def _report(self) -> Report:
        found = self._end_report
        if found is None:
            return Report(died=True, how="by signal 9", log="")
        died = False
        if found["out_of_memory"]:
            how = "because it ran out of memory"
        elif found["crowded"]:
            how = "because it started too many processes"
        elif found["signal"] is not None:
            died, how = True, f"by signal {found['signal']}"
        elif found["exit"] is not None:
            how = f"with exit status {found['exit']}"
        else:
            how = "its connection to the judge"
        return Report(died, how, str(found["log"]), bool(found["out_of_memory"]), int(found["orphans"]))
