"""Every role is killed or stopped with jobs in flight: each accepted job gets its one right verdict."""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from .live import LiveJudge, alive, comm, judge_environment, parent, start_command, wait_until
from .sources import HONEST, with_forward
from .test_v2_access import free_port
from .test_v2_jobs import look, submit

log = logging.getLogger(__name__)

LIMIT_S = 15
"""Time limit of each job."""
RECOVERY_S = 30.0
STOPPED_S = 3.0
"""How long a stopped gateway stays stopped; no other role is continued."""
START_S = 60.0
PLAIN_USER = 65534
IN_FLIGHT = "in-flight-"
CANDIDATE, SUPERVISOR, EVALUATOR = "judge-candidate", "judge-supervise", "judge-evaluator"
FORK_SERVER, GATEWAY = "judge-fork", "gateway"
ROLES = (CANDIDATE, SUPERVISOR, EVALUATOR, FORK_SERVER, GATEWAY)
AS_PLAIN_USER = """
set -e
if [ -n "$1" ]; then
    mount --make-rprivate /
    aside=$(mktemp -d)
    mount --bind "$1/$2" "$aside"
    mount -t tmpfs -o mode=755 tmpfs "$1"
    mkdir "$1/$2"
    mount --move "$aside" "$1/$2"
    rmdir "$aside"
fi
user=$3
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"""
"""Runs a command as user ``$3``, for whom entry ``$2`` of the closed folder ``$1`` is opened first."""


@dataclass(frozen=True)
class Setup:
    """How a judge is started."""

    slots: int
    plain_user: bool = False

    def __str__(self) -> str:
        return f"{self.slots} slots{' as a plain user' if self.plain_user else ''}"


class FrailJudge:
    """A judge with its state on disk, started again on the same port when it was killed."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.slots = setup.slots
        self._folder = folder
        self._log = folder / "judge.log"
        self._port = free_port()
        self._prefix = as_plain_user() if setup.plain_user else []
        self.live = self._start()

    def _start(self) -> LiveJudge:
        environment = judge_environment(
            MAX_CONCURRENT_EVALS=str(self.slots),
            JUDGE_STATE=str(self._folder / "state.sqlite"),
            HOME=str(self._folder),
            TMPDIR=str(self._folder),
            LOG_FORMAT="json",
        )
        command = [*self._prefix, *start_command("--port", str(self._port), "--die-with-parent")]
        with self._log.open("ab") as log:
            live = LiveJudge(subprocess.Popen(command, env=environment, stdout=log, stderr=log), self._port)
        try:
            wait_until(lambda: self._is_ready(live), START_S)
        except BaseException:
            _end(live)
            raise
        return live

    def _is_ready(self, live: LiveJudge) -> bool:
        assert live.process.poll() is None, self._log.read_text()[-2000:]
        with contextlib.suppress(httpx.TransportError):
            return live.client.get("/readyz").status_code == 200
        return False

    def start_again(self) -> None:
        self.live.process.wait(30)
        self.live.close()
        self.live = self._start()

    def close(self) -> None:
        _end(self.live)

    def submit(self, candidate: str, key: str) -> str:
        answer = submit(self.live, candidate, key, force=True, request={"timeout": LIMIT_S})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def finding(self, job: str, deadline: float) -> str:
        """Return the status of a job's verdict, its error, or at the deadline its state."""
        while True:
            remaining = deadline - time.monotonic()
            answer = look(self.live, job, wait=max(min(remaining, LIMIT_S), 0))
            if answer["state"] == "done":
                return str(answer["verdict"]["status"])
            if answer["state"] != "running" and answer["state"] != "queued":
                return str(answer["error"])
            if remaining <= 0:
                return str(answer["state"])

    def candidates(self) -> dict[int, int]:
        """Return the processes of candidates by the number of their job."""
        named = {comm(pid): pid for pid in self.live.processes()}
        return {
            int(name.removeprefix(IN_FLIGHT)): pid
            for name, pid in named.items()
            if name.startswith(IN_FLIGHT)
        }

    def process_of(self, role: str, candidate_pid: int) -> int:
        """Return a process of that role, if possible the one that serves ``candidate_pid``."""
        if role == GATEWAY:
            return self.live.process.pid
        if role == CANDIDATE:
            return candidate_pid
        if role == SUPERVISOR:
            return parent(candidate_pid)
        return max(self.live.processes(role), key=_cpu_ticks)  # a spare evaluator has done nothing yet

    def events(self) -> Counter[tuple[str, str]]:
        """Count the events of the log by job and name."""
        found: Counter[tuple[str, str]] = Counter()
        for line in self._log.read_text().splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if "job" in event:
                found[event["job"], event["event"]] += 1
        return found

    def evaluations(self) -> int:
        """Count the candidates that this gateway has judged."""
        name = 'adaexplore_judge_evaluations_total{kind="candidate"'
        lines = self.live.client.get("/metrics").text.splitlines()
        return sum(int(float(line.split()[1])) for line in lines if line.startswith(name))


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _end(live: LiveJudge) -> None:
    live.close()
    live.process.terminate()
    live.process.wait(30)


UseJudge = Callable[[Setup], contextlib.AbstractContextManager[FrailJudge]]


def as_plain_user() -> list[str]:
    """Return the prefix that runs a command as a plain user; skip if that is impossible."""
    if os.getuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("only root can start a judge as another user, with setpriv and unshare")
    python = Path(sys.executable).resolve()
    closed = [folder for folder in python.parents if not folder.stat().st_mode & 0o001]
    opened = [str(closed[-1]), python.relative_to(closed[-1]).parts[0]] if closed else ["", ""]
    prefix = ["unshare", "--mount", "sh", "-c", AS_PLAIN_USER, "sh", *opened, str(PLAIN_USER)]
    if subprocess.run([*prefix, sys.executable, "-c", "import online_judge"], check=False).returncode:
        pytest.skip("a plain user cannot run the judge from here")
    return prefix


@contextlib.contextmanager
def running(setup: Setup) -> Iterator[FrailJudge]:
    """Run a judge, outside of pytest's folder: a plain user may not enter that."""
    with tempfile.TemporaryDirectory(prefix="frail-") as name:
        if setup.plain_user:
            os.chown(name, PLAIN_USER, PLAIN_USER)
        with contextlib.closing(FrailJudge(setup, Path(name))) as judge:
            yield judge


@pytest.fixture(scope="module")
def use() -> Iterator[UseJudge]:
    """Share one judge between tests until one fails or needs another setup."""
    with contextlib.ExitStack() as stack:
        judges: dict[Setup, FrailJudge] = {}

        @contextlib.contextmanager
        def use(setup: Setup) -> Iterator[FrailJudge]:
            if setup not in judges:
                judges.clear()
                stack.close()
                judges[setup] = stack.enter_context(running(setup))
            try:
                yield judges[setup]
            except BaseException:
                judges.clear()
                stack.close()
                raise

        yield use


def in_flight(number: int) -> str:
    """Return a candidate that names its process by ``number`` and sleeps once; every third is wrong."""
    named = f"import ctypes\nctypes.CDLL(None).prctl(15, b'{IN_FLIGHT}{number}', 0, 0, 0)\n"
    slept = "if not os.path.exists('slept'):\n    open('slept', 'w').close()\n    time.sleep(2)\n"
    return with_forward(named + slept + (HONEST if _is_right(number) else "return self.linear(x)"))


def _is_right(number: int) -> bool:
    return number % 3 != 2


FOUR, PLAIN = Setup(4), Setup(4, plain_user=True)
QUICK = [
    (FOUR, GATEWAY, signal.SIGKILL),
    (PLAIN, EVALUATOR, signal.SIGKILL),
]


def cases() -> Iterator[object]:
    for setup in (FOUR, PLAIN, Setup(1), Setup(1, plain_user=True)):
        for signum in (signal.SIGKILL, signal.SIGSTOP):
            for role in ROLES:
                marks = [] if (setup, role, signum) in QUICK else [pytest.mark.long]
                yield pytest.param(setup, role, signum, marks=marks, id=f"{setup}-{role}-{signum.name}")


@pytest.mark.parametrize(("setup", "role", "signum"), list(cases()))
def test_every_job_gets_its_verdict_once(use: UseJudge, setup: Setup, role: str, signum: int) -> None:
    with use(setup) as frail:
        _strike(frail, role, signum)


def _strike(frail: FrailJudge, role: str, signum: int) -> None:
    run = uuid.uuid4().hex
    accepted = {number: in_flight(number) for number in range(frail.slots + 2)}
    expected = {number: "passed" if _is_right(number) else "wrong_value" for number in accepted}
    judged = frail.evaluations()
    jobs = {number: frail.submit(candidate, f"{run} {number}") for number, candidate in accepted.items()}
    candidates = wait_until(lambda: len(found := frail.candidates()) == frail.slots and found)
    struck, candidate_pid = min(candidates.items())
    pid = frail.process_of(role, candidate_pid)
    begin = time.monotonic()
    deadline = begin + RECOVERY_S + (LIMIT_S if signum == signal.SIGSTOP else 0)
    os.kill(pid, signum)
    if (role, signum) == (CANDIDATE, signal.SIGSTOP):
        expected[struck] = "passed"  # it is resumed, as if a judge that stopped it had been killed
    elif (role, signum) == (GATEWAY, signal.SIGSTOP):
        time.sleep(STOPPED_S)
        os.kill(pid, signal.SIGCONT)
    elif role == GATEWAY:
        frail.start_again()
    for number in range(len(accepted), len(accepted) + frail.slots):
        jobs[number] = frail.submit(with_forward(HONEST), f"{run} {number}")
        expected[number] = "passed"
    assert {number: frail.finding(job, deadline) for number, job in jobs.items()} == expected
    log.info("all answered %.1f s after the signal", time.monotonic() - begin)
    events = frail.events()
    for job in jobs.values():
        assert (events[job, "job.accepted"], events[job, "job.done"]) == (1, 1)
    started = {number: events[job, "job.started"] for number, job in jobs.items()}
    again = candidates if (role, signum) == (GATEWAY, signal.SIGKILL) else {}
    assert started == {number: 2 if number in again else 1 for number in jobs}
    assert {number: frail.submit(accepted[number], f"{run} {number}") for number in accepted} == {
        number: jobs[number] for number in accepted
    }
    if role == GATEWAY:
        return
    assert frail.evaluations() == judged + len(jobs)
    if (role, signum) != (EVALUATOR, signal.SIGSTOP):  # it is resumed, like a stopped candidate
        wait_until(lambda: not alive(pid))
    assert frail.candidates() == {}
