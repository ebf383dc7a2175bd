"""Hostile problem files: none escapes its sandbox, and later jobs are judged as before.

Each attack leaves evidence where it succeeds: it raises an exception that says ``breached``, or it leaves
something that :class:`Outside` finds. The judge has one slot, so that the same evaluator serves each job.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.online_judge.live import LiveJudge, alive, parent, running_judge
from tests.online_judge.sources import BAD, HONEST, REFERENCE, with_forward

from .sources import problem

HERE = Path(__file__).parent / "references"
REPOSITORY = Path(__file__).parents[2]
LIMIT_S = 60.0
"""Most that an answer may take."""
LOG_BYTES = 8 * 2**20
"""Most that one reference may add to the judge's log."""
KEY = "planted-246810"
MARK = "left-behind"
FIELDS = {"num_correct_trials": 1, "measure_performance": False}
RELU = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
_GIVEN = re.compile(r"^(?P<name>[A-Z_]+) = .*  # given$", re.MULTILINE)
_DIED = re.compile(r"ends its process|process that ran the reference died|has ended|was killed|died")

PASSED = frozenset({"passed"})
FAILED = frozenset({"problem"})
DIED = frozenset({"died"})
DIED_OR_FAILED = DIED | FAILED
ANY = PASSED | FAILED | DIED
OWN = ANY | {"judge", "wrong_value", "crash", "timeout"}
"""Of a reference that changes its own process: about its own problem such a process may say anything."""

ENDLESS = (
    "sleeps_at_import",
    "sleeps_in_inputs",
    "sleeps_in_forward",
    "stops_its_clock",
    "stops_its_parent",
    "iterates_without_end",
)
OUTCOMES = {
    "bombs_memory": ANY,
    "bombs_processes": ANY,
    "calls_deep_into_the_kernel": PASSED,
    "changes_modes": PASSED,
    "changes_other_models": PASSED,
    "closes_descriptors": DIED_OR_FAILED,
    "connects_abstract_socket": PASSED,
    "connects_tcp": PASSED,
    "connects_unix_socket": PASSED,
    "enters_namespaces": PASSED,
    "exits_at_import": DIED,
    "fills_folder": PASSED,
    "floods_log": ANY,
    "forges_results": OWN,
    "garbles_channel": OWN,
    "kills_itself": DIED,
    "kills_judge": PASSED,
    "leaves_exit_handlers": ANY,
    "leaves_key": PASSED,
    "leaves_process": ANY,
    "leaves_thread": ANY,
    "lists_processes": PASSED,
    "opens_kernel_files": PASSED,
    "patches_judge": OWN,
    "patches_judge_later": OWN,
    "patches_python": OWN,
    "patches_torch": OWN,
    "raises_base_exception": DIED_OR_FAILED,
    "raises_huge_text": FAILED,
    "raises_surrogates": FAILED,
    "raises_unprintable": FAILED,
    "reads_other_folders": PASSED,
    "reads_shared_memory": PASSED,
    "recurses": DIED_OR_FAILED,
    "segfaults": DIED,
    "sends_udp": PASSED,
    "signals_processes": PASSED,
    "smuggles_code": ANY,
    "spoils_interpreter": OWN,
    "spoils_process": OWN,
    "spoils_state": PASSED,
    "steals_key_from_environment": PASSED,
    "steals_key_of_other_process": PASSED,
    "steals_secret_from_memory": PASSED,
    "steals_secret_from_objects": PASSED,
    "steals_source": PASSED,
    "steals_state": PASSED,
    "swells_output": DIED_OR_FAILED,
    "takes_locks": PASSED,
    "traces_processes": PASSED,
    "uses_privileges": PASSED,
    "writes_markers": PASSED,
    "writes_other_folders": PASSED,
    "writes_packages": PASSED,
}
NEED_MOUNTS = frozenset({"changes_modes", "connects_unix_socket", "lists_processes", "opens_kernel_files"})
"""Contained only where the machine permits a file system and a user of the sandbox's own."""


def outcome(answer: dict[str, Any]) -> str:
    """Return the candidate's status; ``died`` or ``problem`` for an error of the problem, else ``judge``."""
    status = answer["metadata"].get("status")
    if status is not None:
        return str(status)
    if not answer["error"].startswith("Reference failed: "):
        return "judge"
    return "died" if _DIED.search(answer["error"]) else "problem"


@dataclass(frozen=True)
class Task:
    """A thread of any process of this machine that an attack has marked."""

    path: Path

    def ticks(self) -> int:
        """Return the CPU time so far; 0 once it has ended."""
        with contextlib.suppress(OSError):
            fields = (self.path / "stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        return 0


class Outside:
    """What an attack must not reach, and how to see that it has."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        """Prepare in ``folder``; ``stack`` undoes it at the end."""
        self.folder = folder
        self.temporary = folder / "judge"
        self.temporary.mkdir()
        self._stack = stack
        name = f"adaexplore-{os.getpid()}-{time.monotonic_ns()}"
        self.abstract = name
        self.socket = folder / "s"
        self.victim = folder / "victim"
        self.victim.write_text("mode 600")
        self.victim.chmod(0o600)
        self.state = folder / "state.sqlite"
        self.shared_file = Path("/dev/shm", name)
        folders = (Path.home(), REPOSITORY, Path(tempfile.gettempdir()), folder, self.temporary)
        shared = (Path("/var/tmp"), Path("/dev/shm"))
        self.places = [str(place / f".{name}.left") for place in (*folders, *shared)]
        self._listeners = [
            self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}"),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.socket)),
        ]
        self.shared_file.write_text("shared memory")
        stack.callback(self.shared_file.unlink)
        self.segment = 0x5EED0000 + os.getpid() % 0x10000
        libc = ctypes.CDLL(None)
        number = libc.shmget(self.segment, 4096, 0o1600)
        stack.callback(libc.shmctl, number, 0, None)
        stranger = subprocess.Popen(["sleep", "600"], env=os.environ | {"PLANTED_API_KEY": KEY})
        stack.callback(stranger.wait)
        stack.callback(stranger.kill)
        stack.callback(self.sweep)
        self.stranger = stranger.pid
        self.seconds = f"20.{os.getpid()}"

    def given(self, judge: LiveJudge) -> dict[str, Any]:
        """Return the values of the constants that references have to be given."""
        own = judge_processes(judge)
        tcp, udp = (listener.getsockname()[1] for listener in self._listeners[:2])
        files = [self.state, *self.folder.glob("state.sqlite-*"), self.folder / "tokens"]
        return {
            "ABSTRACT": self.abstract,
            "FILES": [str(path) for path in (*files, self.victim)],
            "FOLDER": str(self.temporary),
            "JUDGE": own,
            "MARK": MARK,
            "PLACES": self.places,
            "PORTS": [tcp, judge.client.base_url.port],
            "PROCESSES": [self.stranger, *own],
            "REPOSITORY": str(REPOSITORY),
            "SECONDS": self.seconds,
            "SEGMENT": self.segment,
            "SHARED_FILE": str(self.shared_file),
            "SOCKET": str(self.socket),
            "UDP_PORT": udp,
        }

    def evidence(self) -> list[str]:
        """Return the effects of an attack outside of the sandbox, and undo them."""
        found = [f"wrote {place}" for place in self.places if Path(place).exists()]
        self.sweep()
        if self.victim.stat().st_mode & 0o777 != 0o600:
            found.append("changed the mode of a file")
            self.victim.chmod(0o600)
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    listener.recv(64)
                else:
                    listener.accept()[0].close()
                found.append(f"reached {listener.family.name} {listener.type.name}")
        if not alive(self.stranger):
            found.append("ended another process")
        return found

    def remaining(self) -> list[str]:
        """Return what still runs: marked threads that use the CPU, and sleeping processes."""
        tasks = [task for task in marked() if (task.ticks())]
        before = {task: task.ticks() for task in tasks}
        time.sleep(0.3 if tasks else 0)
        found = [f"goes on as {task.path}" for task in tasks if task.ticks() > before[task]]
        sleeping = [pid for pid in pids() if self.seconds.encode() in command_line(pid)]
        return found + ([f"left {len(sleeping)} processes"] if sleeping else [])

    def end_leftovers(self) -> None:
        """Kill the processes that attacks have left asleep."""
        for pid in pids():
            if self.seconds.encode() in command_line(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def sweep(self) -> None:
        """Remove files of attacks."""
        for place in self.places:
            Path(place).unlink(missing_ok=True)

    def _listen(self, family: int, kind: int, address: Any) -> socket.socket:
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener


class Yard:
    """One judge at a time: a new one after an attack that harmed the last."""

    def __init__(self, outside: Outside, *, slots: int = 1) -> None:
        """Start nothing yet; ``slots`` jobs run at a time."""
        self.outside = outside
        self._slots = slots
        self._running = contextlib.ExitStack()
        self._judge: LiveJudge | None = None

    @property
    def log(self) -> Path:
        """Return the file with the output of all judges."""
        return self.outside.folder / "judge.log"

    @property
    def judge(self) -> LiveJudge:
        """Return the running judge."""
        if self._judge is None:
            self._judge = self._running.enter_context(
                running_judge(
                    self.outside.folder,
                    MAX_CONCURRENT_EVALS=str(self._slots),
                    JUDGE_STATE=str(self.outside.state),
                    TMPDIR=str(self.outside.temporary),
                    PLANTED_API_KEY=KEY,
                )
            )
            self._judge.client.timeout = LIMIT_S
            (self.outside.folder / "tokens").write_text("# nobody")
            assert self.harm() == []
        return self._judge

    def has_mounts(self) -> bool:
        """Return whether this machine permits a file system of the sandbox's own."""
        health = self.judge.client.get("/health").json()
        return bool(health["sandbox"]["filesystem"] == "mount")

    @contextlib.contextmanager
    def unharmed(self) -> Iterator[LiveJudge]:
        """Yield the running judge, and replace it if the block fails."""
        try:
            yield self.judge
        except BaseException:
            self.replace()
            raise

    def replace(self) -> None:
        """End the judge; the next use starts another."""
        self._judge = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._running.close()
        self.outside.end_leftovers()

    def attack(self, name: str) -> dict[str, Any]:
        """Return the answer to an honest candidate for a hostile reference."""
        given = self.outside.given(self.judge)
        source = _GIVEN.sub(
            lambda found: f"{found['name']} = {given[found['name']]!r}", (HERE / f"{name}.py").read_text()
        )
        body = {"custom_model_src": RELU, "original_model_src": source, "backend": "triton", "timeout": 10}
        response = self.judge.post("/evaluate", body | FIELDS)
        if response.status_code == 500:  # the judge's own code failed in the spoiled process
            return {"metadata": {}, "error": response.json()["detail"]}
        answer: dict[str, Any] = response.json()
        return answer

    def harm(self) -> list[str]:
        """Return which later jobs are judged differently than before."""
        found = []
        right = self.judge.evaluate(with_forward(HONEST), REFERENCE, **FIELDS)
        if outcome(right) != "passed":
            found.append(f"an honest candidate got {outcome(right)} {right['error']}")
        wrong = self.judge.evaluate(BAD["wrong_value"], REFERENCE, **FIELDS)
        if outcome(wrong) != "wrong_value":
            found.append(f"a wrong candidate got {outcome(wrong)} {wrong['error']}")
        return found


@dataclass(frozen=True)
class Endless:
    """A judge, and its answers to references that are never done."""

    yard: Yard
    answers: dict[str, Future[dict[str, Any]]]


def judge_processes(judge: LiveJudge) -> list[int]:
    """Return the ids of the gateway and of the processes that it starts itself."""
    own = judge.process.pid
    with contextlib.suppress(OSError):
        return [own, *(pid for pid in judge.processes() if parent(pid) == own)]
    return [own]


def pids() -> list[int]:
    """Return the ids of all processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def command_line(pid: int) -> bytes:
    """Return the words that a process was started with."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def marked() -> list[Task]:
    """Return all threads that attacks have marked."""
    found = []
    for pid in pids():
        with contextlib.suppress(OSError):
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            found += [Task(task) for task in tasks if (task / "comm").read_text().strip() == MARK]
    return found


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with contextlib.ExitStack() as stack:
        yield Outside(tmp_path_factory.mktemp("outside"), stack)


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endless]:
    """Ask for references that are never done, on a judge that works while another is attacked."""
    with contextlib.ExitStack() as stack:
        yard = Yard(Outside(tmp_path_factory.mktemp("endless"), stack), slots=len(ENDLESS))
        stack.callback(yard.replace)
        assert yard.judge
        pool = stack.enter_context(ThreadPoolExecutor(len(ENDLESS)))
        yield Endless(yard, {name: pool.submit(yard.attack, name) for name in ENDLESS})


@pytest.fixture(scope="module")
def yard(outside: Outside, endless: Endless) -> Iterator[Yard]:
    yard = Yard(outside)
    yield yard
    yard.replace()


def test_every_reference_is_tried() -> None:
    assert {path.stem for path in HERE.glob("*.py")} == {*OUTCOMES, *ENDLESS}


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTCOMES)
def test_attack_is_contained(yard: Yard, name: str) -> None:
    with yard.unharmed() as judge:
        before = judge_processes(judge)
        logged = yard.log.stat().st_size
        answer = yard.attack(name)
        breaches = [*re.findall(r"breached[^\"]*", answer["error"] or ""), *yard.outside.evidence()]
        harm = yard.harm()
        breaches += yard.outside.remaining() + yard.outside.evidence()
        if judge_processes(judge) != before:
            harm.append("a process of the judge ended")
        if yard.log.stat().st_size - logged > LOG_BYTES:
            breaches.append("flooded the log")
        assert harm == []
    if name in NEED_MOUNTS and not yard.has_mounts():
        pytest.skip("this machine permits no file system of the sandbox's own")
    assert breaches == []
    assert outcome(answer) in OUTCOMES[name], answer
    assert len(json.dumps(answer)) < 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spoils_process", "spoils_interpreter"])
def test_next_problem_runs_in_an_unchanged_process(yard: Yard, name: str) -> None:
    yard.attack(name)
    answer = yard.judge.evaluate(RELU, problem("untouched", "cpu"), **FIELDS)
    assert outcome(answer) == "passed", answer


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_endless_reference_is_answered(endless: Endless, name: str) -> None:
    answer = endless.answers[name].result(LIMIT_S + 10)
    assert outcome(answer) in (OWN if name == "stops_its_clock" else ANY), answer
    assert "breached" not in json.dumps(answer)


@pytest.mark.slow
def test_jobs_after_endless_references_are_judged_as_before(endless: Endless) -> None:
    wait(endless.answers.values(), LIMIT_S + 10)
    assert endless.yard.harm() == []
    assert endless.yard.outside.evidence() == []
