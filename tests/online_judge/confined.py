"""Run a few lines of Python in a candidate's place, without a judge."""

import codecs
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from online_judge.processes import supervisor
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.sandbox import linux, process_spec
from online_judge.sandbox.confinement import Limits

from .live import comm

PATIENCE_S = 20.0
ADD_KEY = (248, 217)
SESSION = -3


@dataclass(frozen=True)
class Outcome:
    """The value of ``result``, null without one, and the supervisor's messages."""

    result: Any
    sandbox: dict[str, Any]
    report: dict[str, Any]
    start_ms: float
    supervisor: int


def confined(body: str, **wish: Any) -> Outcome:
    """Run ``body`` in a process's sandbox.

    ``wish`` may have ``without`` and ``limits`` as fields of ``Wanted``, ``build_dir``, ``user`` for a
    judge that is no root, and ``key`` for the name of a key in the judge's session keyring. Lines that
    use ``channel`` send ``{"result": ...}`` themselves and go on; then the process that ``kill`` names
    is killed, or gets the signal ``signum``.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.online_judge.confined"],
        input=json.dumps({"body": body} | wish),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return Outcome(**json.loads(done.stdout))


def main() -> None:
    """Act as device slot and fork server: the subprocess of :func:`confined`."""
    wish = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="judge-") as home:
        folder = Path(home).resolve() / "job-1"
        folder.mkdir(mode=0o700)
        (folder / "candidate.py").write_text("# handed over")
        if "user" in wish:
            process_spec.wanted(_spec(wish, folder))  # imports what that user may not be able to read,
            codecs.lookup("ascii")  # and so does this
            for path in (folder.parent, folder, folder / "candidate.py"):
                os.chown(path, wish["user"], wish["user"])
            os.setgroups([])
            os.setresgid(wish["user"], wish["user"], wish["user"])
            os.setresuid(wish["user"], wish["user"], wish["user"])
        if "key" in wish:
            linux.join_new_keyring()
            linux.call("syscall", linux.number(ADD_KEY), b"user", wish["key"].encode(), b"secret", 6, SESSION)
        linux.forbid_inspection()
        linux.become_subreaper()
        sys.stdout.write(json.dumps(_run(wish, folder)))


def _spec(wish: dict[str, Any], folder: Path) -> process_spec.ProcessSpec:
    return process_spec.ProcessSpec(
        folder=str(folder),
        device="cpu",
        visible_devices="",
        compile_target="sm_90",
        build_dir=wish.get("build_dir"),
    )


def _run(wish: dict[str, Any], folder: Path) -> dict[str, Any]:
    spec = _spec(wish, folder)
    wanted = process_spec.wanted(spec)
    wanted = replace(
        wanted,
        without=frozenset(wish.get("without", ())),
        limits=Limits(**(asdict(wanted.limits) | wish.get("limits", {}))),
    )

    def main_of_role(sock: socket.socket) -> NoReturn:
        process_spec.enter(spec)
        process_spec.assign(tf32="paper", build_dir=spec.build_dir)
        names: dict[str, Any] = {"channel": Channel(sock)}
        try:
            exec(wish["body"], names)
            Channel(sock).send_json({"result": names.get("result")})
        finally:
            os._exit(0)

    ours, theirs = channel.pair()
    lifeline, supervisors = channel.pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        lifeline.close()
        try:
            supervisor.supervise(main_of_role, theirs.fileno(), supervisors.fileno(), wanted)
        finally:
            os._exit(1)
    theirs.close()
    supervisors.close()
    begin = time.perf_counter()
    handle = ProcessHandle(ours, lifeline, pid, folder)
    facts = handle.sandbox(PATIENCE_S)
    start_ms = 1e3 * (time.perf_counter() - begin)
    result = None
    try:
        if select.select([ours], [], [], wish.get("patience_s", PATIENCE_S))[0]:
            result = Channel(ours).receive_json()[0]["result"]
    except ChannelClosed:
        pass
    for victim in [pid, *linux.descendants(pid)]:
        if comm(victim) == wish.get("kill"):
            os.kill(victim, wish.get("signum", signal.SIGKILL))
    report = handle.end(seems_dead=result is None or "kill" in wish)
    os.waitpid(pid, 0)
    linux.kill_descendants()  # as a fork server does with what a killed supervisor leaves behind
    return {
        "result": result,
        "sandbox": facts,
        "report": asdict(report),
        "start_ms": start_ms,
        "supervisor": pid,
    }


if __name__ == "__main__":
    main()
