"""The process above one player: it adopts every descendant, and none of them outlives it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from online_judge import linux
from online_judge.channel import Channel, ChannelClosed

MAX_PROCESSES = 256
LOG_BYTES = 4096
_LOOK_S = 0.25


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, size: int) -> None:
        self._bytes: deque[int] = deque(maxlen=size)

    def read(self, fd: int) -> bool:
        """Take in what is there; False at the end of the stream."""
        try:
            part = os.read(fd, 65536)
        except BlockingIOError:
            return True
        self._bytes.extend(part[-LOG_BYTES:])
        return bool(part)

    def text(self) -> str:
        return bytes(self._bytes).decode("utf-8", "replace")


def keep(play: Callable[[socket.socket], NoReturn], player_end: int, lifeline: int) -> NoReturn:
    """Fork a player, wait for its end or for the order to end it, kill its tree, report, exit.

    Runs in a fresh child of the zygote. The report, sent when nothing of the player is left, is
    ``{"exit": code | null, "signal": number | null, "crowded": bool, "log": text}``; exit and
    signal are null when the player was ended by order.

    Args:
        play: the player's main function, given its socket.
        player_end: descriptor of the player's socket.
        lifeline: descriptor over which the report goes; its closing, or any message, is the order.
    """
    linux.set_process_name("judge-keeper")
    linux.become_subreaper()
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, frame: stop.append(signum))
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    linux.die_with_parent(signal.SIGTERM, os.getppid())
    log_read, log_write = os.pipe()
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_player(play, player_end, log_write, me)
    os.close(log_write)
    os.close(player_end)
    os.set_blocking(log_read, False)
    tail = _Tail(LOG_BYTES)
    waiting = [lifeline, wake_read, log_read]
    status: int | None = None
    crowded = False
    while not stop:
        ready, _, _ = select.select(waiting, [], [], _LOOK_S)
        if log_read in ready and not tail.read(log_read):
            waiting.remove(log_read)
        if wake_read in ready:
            status = _reap(wake_read, pid)
            if status is not None:
                break
        if lifeline in ready:
            break
        if len(linux.descendants(me)) > MAX_PROCESSES:
            crowded = True
            break
    linux.kill_descendants()
    while log_read in select.select([log_read], [], [], 0)[0] and tail.read(log_read):
        pass
    report = {
        "exit": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
        "crowded": crowded,
        "log": tail.text(),
    }
    with contextlib.suppress(ChannelClosed):
        Channel.from_fd(lifeline).send_json(report)
    os._exit(0)


def _reap(wake_read: int, player: int) -> int | None:
    """Collect the dead, adopted ones included; the player's wait status if it is among them."""
    status = None
    with contextlib.suppress(BlockingIOError):
        os.read(wake_read, 4096)
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == player:
                status = found
    return status


def _become_player(
    play: Callable[[socket.socket], NoReturn], player_end: int, log_write: int, parent: int
) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    linux.die_with_parent(signal.SIGKILL, parent)
    linux.set_process_name("judge-player")
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log_write, 1)
    os.dup2(log_write, 2)
    linux.close_descriptors({player_end})
    play(socket.socket(fileno=player_end))
