"""The supervisor of one process: adopts all its descendants, and kills them before it exits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

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


def supervise(
    main: Callable[[socket.socket], NoReturn], process_end: int, lifeline: int, wanted: Wanted
) -> NoReturn:
    """Fork a process into its sandbox, wait for its end or an order to end it, kill its tree, report, exit.

    If permitted, the supervisor has a higher priority than ordinary processes, so that a fork bomb does not
    delay it. The candidate keeps the reference's priority, because both are timed.

    Runs in a fresh child of the fork server. ``main`` is the process's main function, ``process_end`` its
    socket. To end the process, the gateway closes the lifeline or sends anything over it. The supervisor
    sends two messages over it:

    - before ``main`` is called, ``{"sandbox": {...}}``, see :mod:`online_judge.sandbox.read_back`;
    - when all processes are gone, ``{"how", "printed", "out_of_memory", "orphans", "died"}``, see
      :class:`online_judge.checks.facts.endings.ProcessEnd`.
    """
    linux.set_process_name("judge-supervise")
    linux.become_subreaper()
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, frame: stop.append(signum))
    wake_read = wake_on_child_end()
    linux.die_with_parent(signal.SIGTERM, os.getppid())
    me = os.getpid()
    plan = confinement.prepare(wanted)
    if plan.group is not None and plan.group.counts_tasks:  # so that it can count tasks cheaply
        linux.run_first()
    init = _fork_init(me) if "pids" not in wanted.without else None
    log_read, log_write = os.pipe()
    if plan.uid is not None:
        os.fchown(log_write, plan.uid, plan.uid)  # so that it can open /dev/stdout
    gate, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _become_process(main, process_end, log_write, theirs.detach(), plan, me)
    if plan.group is not None:
        plan.group.take(pid)  # about 10 ms, while the process enters its other layers
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
            _open_gate(gate, plan, pid, channel)
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
    # killed first: processes that still run are orphans
    ended = status is not None or (not crowded and _kill(pid))
    orphans = _orphans(me, pid) if ended else 0
    if init is not None:
        _end_init(init)
    if plan.own_pids:
        linux.reap_children()
    else:
        linux.kill_descendants()
    while log_read in select.select([log_read], [], [], 0)[0] and _read_log(log_read, tail):
        pass
    died, out_of_memory = False, plan.group is not None and plan.group.ran_out_of_memory()
    if out_of_memory:
        how = "because it ran out of memory"
    elif crowded:
        how = "because it started too many processes"
    elif status is None and stop:  # mostly because the fork server died
        died, how = True, f"together with its supervisor, by signal {stop[0]}"
    elif status is None:  # by order
        how = "its connection to the judge"
    elif (code := os.waitstatus_to_exitcode(status)) < 0:
        died, how = True, f"by signal {-code}"
    else:
        how = f"with exit status {code}"
    if plan.group is not None:
        plan.group.remove()
    report = {
        "how": how,
        "printed": tail.decode("utf-8", "replace"),
        "out_of_memory": out_of_memory,
        "orphans": orphans,
        "died": died,
    }
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

    Beside a fork bomb, a process of ordinary priority may take seconds to die.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    linux.run_first(child)
    return _ended(child)


def _end_init(init: _Init) -> None:
    """Let the init process kill all others of its namespace, and end.

    If it were killed itself, it would free its memory first and wait for locks that all forks share. Beside
    hundreds of forks this takes a minute, in which they go on forking.
    """
    linux.run_first(init.pid)
    os.close(init.held)
    with contextlib.suppress(ProcessLookupError):
        os.kill(init.pid, signal.SIGCONT)
    if not _ended(init.pid):
        _kill(init.pid)


def _ended(child: int) -> bool:
    """Wait at most ``_DEATH_S`` for the end of a child; return True if it ended."""
    deadline = time.monotonic() + _DEATH_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
    return True


def _is_crowded(supervisor: int, group: Group | None) -> bool:
    """Return True if there are too many processes; ``/proc`` is slower than the control group."""
    tasks = group.tasks() if group is not None else None
    if tasks is not None and tasks <= MAX_PROCESSES:
        return False
    return len(linux.descendants(supervisor)) > MAX_PROCESSES


class _Init(NamedTuple):
    pid: int
    held: int  # pipe end that stays open for the life of the namespace


def _fork_init(supervisor: int) -> _Init:
    """Fork the init process of the process namespace; it adopts orphans, and its end kills all others.

    It ends with the supervisor, even a killed one, because the pipe between them closes. The next process
    there gets a number that is unique among namespaces: if a process with the same number exported memory,
    CUDA would take that memory for its own and refuse to open it. Without a namespace nothing happens.
    """
    watch, held = os.pipe()
    numbered, done = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(watch)
        os.close(done)
        os.read(numbered, 1)
        os.close(numbered)
        return _Init(pid, held)
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
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)  # kills all others of its namespace, also those being forked
    finally:
        os._exit(0)


def _open_gate(gate: socket.socket, plan: Plan, pid: int, lifeline: Channel) -> None:
    """Read back and report the sandbox of a process that says it is ready, and let it continue."""
    with gate:
        word = gate.recv(1)
        if not word:
            return
        with contextlib.suppress(OSError, ChannelClosed):  # killed just now, or nobody waits
            sandbox = read_back.read_back(plan, pid, landlocked=word == _LOCKED)
            lifeline.send_json({"sandbox": sandbox})
            gate.sendall(_GO)


def _orphans(supervisor: int, process: int) -> int:
    """Count running processes whose starter has ended."""
    tree = linux.process_tree()
    own = [child for child in tree.get(supervisor, ()) if child != process]
    inits = [child for child in own if linux.process_name(child) == INIT]
    adopted = [child for child in own if child not in inits]
    adopted += [child for init in inits for child in tree.get(init, ()) if child != process]
    return sum(linux.is_running(child) for child in adopted)


def wake_on_child_end() -> int:
    """Return a descriptor that becomes readable when a child of this process ends, see :func:`reap`."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda signum, frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    return wake_read


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
