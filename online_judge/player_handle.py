"""A player under its keeper, as the gateway sees it."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
from dataclasses import dataclass

from online_judge.channel import Channel, ChannelClosed
from online_judge.nursery import Nursery

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0
_OBITUARY_S = 1.0


@dataclass(frozen=True)
class Report:
    """How a player ended, by its keeper's word; ``died``: by a signal, or together with its keeper."""

    died: bool
    how: str
    log: str


class PlayerHandle:
    """Ends one player."""

    def __init__(self, lifeline: socket.socket, keeper_pid: int) -> None:
        self._lifeline = lifeline
        self._keeper_pid = keeper_pid

    def end(self, nursery: Nursery, *, seems_dead: bool = False) -> Report:
        """Have the player and all that it started killed; return when nothing of it is left.

        With ``seems_dead`` the keeper is first given time to notice how the player died by itself.
        """
        with self._lifeline:
            if seems_dead:
                select.select([self._lifeline], [], [], _OBITUARY_S)
            with contextlib.suppress(OSError):
                self._lifeline.shutdown(socket.SHUT_WR)
            if not select.select([self._lifeline], [], [], _PATIENCE_S)[0]:
                log.error("a keeper did not end within %s s: it is killed", _PATIENCE_S)
                nursery.kill(self._keeper_pid)
            try:
                report, _ = Channel(self._lifeline).receive_json()
            except ChannelClosed:
                return Report(died=True, how="by signal 9", log="")
        text = str(report["log"])
        if report["crowded"]:
            return Report(died=False, how="because it started too many processes", log=text)
        if report["signal"] is not None:
            return Report(died=True, how=f"by signal {report['signal']}", log=text)
        if report["exit"] is not None:
            return Report(died=False, how=f"with exit status {report['exit']}", log=text)
        return Report(died=False, how="its connection to the judge", log=text)
