"""The supervisor of one process: adopts all its descendants, and kills them before it exits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.sandbox import confinement, linux, read_back
from online_judge.sandbox.cgroups import Group
from online_judge.sandbox.confinement import Plan, Wanted

MAX_PROCESSES = 256
LOG_BYTES = 4096
INIT = "judge-init"
_LOOK_S = 0.25
_DEATH_S = 1.0
_LOCKED, _OPEN, _GO = b"L", b"o", b"g"
_LAST_NUMBER = "/proc/sys/kernel/ns_last_pid"
_CREDENTIALS = struct.Struct("iII")


def supervise(
    main: Callable[[socket.socket], NoReturn], process_end: int, lifeline: int, wanted: Wanted
) -> NoReturn:
    """Fork a process into its sandbox, wait for its end or the order to end it, kill its tree, report, exit.

    Where permitted, the supervisor has a higher priority than ordinary processes, so that a fork bomb does
    not delay it. The candidate keeps the priority of the reference: both are timed.

    Runs in a fresh child of the fork server. ``main`` is the process's main function, ``process_end`` its
    socket. Closing the lifeline, or sending anything over it, is the order to end the process. Two messages
    go back over it:

    - before ``main`` is called, ``{"sandbox": {...}}``, see :mod:`online_judge.sandbox.read_back`;
    - when all processes are gone, ``{"exit": code | null, "signal": number | null, "crowded": bool,
      "out_of_memory": bool, "orphans": number, "log": text}``; exit and signal are null if the process was
      ended by order.
    """
    linux.set_process_name("judge-supervise")
    linux.become_subreaper()
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, frame: stop.append(signum))
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    linux.die_with_parent(signal.SIGTERM, os.getppid())
    me = os.getpid()
    plan = confinement.prepare(wanted)
    if plan.group is not None and plan.group.counts_tasks:  # then it can count tasks at little cost
        linux.run_first()
    init = _fork_init(me) if "pids" not in wanted.without else None
    log_read, log_write = os.pipe()
    if plan.uid is not None:
        os.fchown(log_write, plan.uid, plan.uid)  # so that it can open /dev/stdout
    gate, theirs = socket.socketpair()
    gate.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    pid = os.fork()
    if pid == 0:
        _become_process(main, process_end, log_write, theirs.detach(), plan, me)
    if plan.group is not None:
        plan.group.take(pid)  # about 10 ms; the process enters its other layers meanwhile
    theirs.close()
    os.close(log_write)
    os.close(process_end)
    os.set_blocking(log_read, False)
    tail = bytearray()
    channel = Channel.from_fd(lifeline)
    waiting = [lifeline, wake_read, log_read, gate.fileno()]
    status: int | None = None
    crowded = False
    while not stop:
        ready, _, _ = select.select(waiting, [], [], _LOOK_S)
        if gate.fileno() in ready:
            waiting.remove(gate.fileno())
            _open_gate(gate, plan, channel)
        if log_read in ready and not _read_log(log_read, tail):
            waiting.remove(log_read)
        if wake_read in ready:
            status = dict(reap(wake_read)).get(pid)
            if status is not None:
                break
        if lifeline in ready:
            break
        if _is_crowded(me, plan.group):
            crowded = True
            break
    linux.run_first()
    # killed first: what still runs then are orphans
    ended = status is not None or (not crowded and _kill(pid))
    orphans = _orphans(me, pid) if ended else 0
    if init is not None:
        _kill(init)  # the kernel then kills its whole namespace at once
    if plan.group is not None:
        plan.group.kill()
    if plan.own_pids:
        linux.reap_children()
    else:
        linux.kill_descendants()
    while log_read in select.select([log_read], [], [], 0)[0] and _read_log(log_read, tail):
        pass
    report = {
        "exit": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
        "crowded": crowded,
        "out_of_memory": plan.group is not None and plan.group.ran_out_of_memory(),
        "orphans": orphans,
        "log": tail.decode("utf-8", "replace"),
    }
    if plan.group is not None:
        plan.group.remove()
    with contextlib.suppress(ChannelClosed):
        channel.send_json(report)
    os._exit(0)


def _read_log(fd: int, tail: bytearray) -> bool:
    """Keep the last bytes of the output in ``tail``; return False at the end of the stream."""
    try:
        part = os.read(fd, 65536)
    except BlockingIOError:
        return True
    tail += part
    del tail[:-LOG_BYTES]
    return bool(part)


def _kill(child: int) -> bool:
    """Kill a child, at a raised priority; return whether it ended within ``_DEATH_S``.

    Beside a fork bomb a process of ordinary priority may take seconds to die.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    linux.run_first(child)
    deadline = time.monotonic() + _DEATH_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
    return True


def _is_crowded(supervisor: int, group: Group | None) -> bool:
    """Return whether there are too many processes; ask the control group first, ``/proc`` is slower."""
    tasks = group.tasks() if group is not None else None
    if tasks is not None and tasks <= MAX_PROCESSES:
        return False
    return len(linux.descendants(supervisor)) > MAX_PROCESSES


def _fork_init(supervisor: int) -> int:
    """Fork the init process of the process namespace, which adopts orphans; its end kills everything there.

    It ends with the supervisor, even one that is killed: then the pipe between them closes. The next process
    there gets a number that is unique among namespaces: CUDA takes memory of a process with the same number
    for its own, and refuses to open it. Without a namespace it does nothing.
    """
    watch, held = os.pipe()
    numbered, done = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(watch)
        os.close(done)
        os.set_inheritable(held, False)  # stays open as long as the supervisor lives
        os.read(numbered, 1)
        os.close(numbered)
        return pid
    try:
        if os.getpid() == 1:
            with contextlib.suppress(OSError):
                Path(_LAST_NUMBER).write_text(str(supervisor))
        os.close(done)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps its children
        linux.set_process_name(INIT)
        linux.close_descriptors({watch})
        linux.die_with_parent(signal.SIGKILL, supervisor)
        os.read(watch, 1)
    finally:
        os._exit(0)


def _open_gate(gate: socket.socket, plan: Plan, lifeline: Channel) -> None:
    """Read back and report the sandbox of a process that says it is ready, and let it go on."""
    with gate:
        word, extra, _, _ = gate.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        if not word:
            return
        pid, _, _ = _CREDENTIALS.unpack(extra[0][2][: _CREDENTIALS.size])
        with contextlib.suppress(OSError, ChannelClosed):  # it was just killed, or nobody waits for it
            sandbox = read_back.read_back(plan, pid, landlocked=word == _LOCKED)
            lifeline.send_json({"sandbox": sandbox})
            gate.sendall(_GO)


def _orphans(supervisor: int, process: int) -> int:
    """Count processes that still run although the one that started them has ended."""
    tree = linux.process_tree()
    own = [child for child in tree.get(supervisor, ()) if child != process]
    inits = [child for child in own if linux.process_name(child) == INIT]
    adopted = [child for child in own if child not in inits]
    adopted += [child for init in inits for child in tree.get(init, ()) if child != process]
    return sum(linux.is_running(child) for child in adopted)


def reap(wake_read: int) -> Iterator[tuple[int, int]]:
    """Reap dead children, adopted ones included; yield process id and wait status of each."""
    with contextlib.suppress(BlockingIOError):
        os.read(wake_read, 4096)
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _become_process(
    main: Callable[[socket.socket], NoReturn],
    process_end: int,
    log_write: int,
    gate: int,
    plan: Plan,
    parent: int,
) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    linux.die_with_parent(signal.SIGKILL, parent)
    linux.set_process_name("judge-candidate")
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log_write, 1)
    os.dup2(log_write, 2)
    linux.close_descriptors({process_end, gate})
    try:
        entered = confinement.enter(plan)
        linux.die_with_parent(signal.SIGKILL, parent)  # a change of user clears it
        os.write(gate, _LOCKED if entered.landlocked else _OPEN)
        if os.read(gate, 1) != _GO:
            os._exit(1)
        os.close(gate)
        if not entered.unseen:
            linux.forbid_inspection()
    except BaseException:  # noqa: BLE001 - the supervisor logs it
        traceback.print_exc()
        os._exit(1)
    main(socket.socket(fileno=process_end))
