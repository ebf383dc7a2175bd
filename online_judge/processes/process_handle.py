"""The gateway's handle of a process under its supervisor."""

import contextlib
import logging
import os
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from online_judge.checks.facts.endings import ProcessEnd
from online_judge.protocol.channel import Channel, ChannelClosed, is_readable
from online_judge.sandbox import linux

log = logging.getLogger(__name__)

_END_S = 15.0
_NOTICE_S = 1.0


_LOST: Final = {"how": "by signal 9", "printed": "", "died": True}
"""Report on a process whose supervisor died."""


@dataclass(eq=False)
class ProcessHandle:
    """One process under its supervisor; the owner of the handle ends it."""

    connection: socket.socket  # the gateway's end of its socket
    lifeline: socket.socket  # readable once its supervisor has reported its end
    supervisor: int  # process id of its supervisor
    folder: Path  # its private folder
    generation: int = 0  # of the fork server, see :attr:`ForkClient.generation`
    _sandbox: dict[str, object] | None = field(default=None, init=False)
    _report: dict[str, Any] | None = field(default=None, init=False)

    @property
    def alive(self) -> bool:
        """Return True if it waits for an order: it has not ended, sends nothing and is not stopped.

        Its end closes the connection at once; its supervisor's report follows later.
        """
        return not is_readable(0, self.lifeline, self.connection) and not self.stopped

    @property
    def stopped(self) -> bool:
        return any(linux.is_stopped(child) for child in linux.children(self.supervisor))

    def sandbox(self, timeout_s: float = 0.0) -> dict[str, object] | None:
        """Return the sandbox that is in force; None if it is not ready before the timeout."""
        if self._sandbox is None and self._report is None:
            self._hear(timeout_s)
        return self._sandbox

    def end(self, *, seems_dead: bool = False) -> ProcessEnd:
        """Kill it and all that it started, remove its folder, and return its report.

        With ``seems_dead`` the supervisor first gets time to find out how the process died.
        """
        self.connection.close()
        with self.lifeline:
            if seems_dead:
                self._await_report(_NOTICE_S)
            with contextlib.suppress(OSError):
                self.lifeline.shutdown(socket.SHUT_WR)
            self._await_report(_END_S)
            if self._report is None:
                log.error("a supervisor did not exit within %s s: it is killed", _END_S)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.supervisor, signal.SIGKILL)
                self._await_report(_END_S)
        shutil.rmtree(self.folder, ignore_errors=True)
        return ProcessEnd(str(self.folder), **(self._report or _LOST))

    def _await_report(self, timeout_s: float) -> None:
        while self._report is None and self._hear(timeout_s):
            pass

    def _hear(self, timeout_s: float) -> bool:
        """Receive one message of the supervisor; return False if none came."""
        if not is_readable(timeout_s, self.lifeline):
            return False
        try:
            message, _ = Channel(self.lifeline).receive_json()
        except ChannelClosed:
            message = _LOST
        if "sandbox" in message:
            self._sandbox = message["sandbox"]
        else:
            self._report = message
        return True
