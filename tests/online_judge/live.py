"""A real judge on a loopback port, and how tests talk to it."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import httpx

from adaexplore.judge_client.embedded import judge_process
from online_judge.sandbox import linux

from .sources import REFERENCE

ENVIRONMENT = {"ADAEXPLORE_JUDGE_SECRET": "zq7x-13579", "JUDGE_DEVICE": "cpu", "MAX_CONCURRENT_EVALS": "1"}
ON_RAY = "TESTS_ON_RAY" in os.environ
"""Whether judges run on a Ray cluster, see the fixture ``cluster``."""
JUDGE_VARIABLES = (
    "ARMED_PLAYERS",
    "AVAILABLE_GPUS",
    "COMPILE_SLOTS",
    "GPU_ALLOCATION_MODE",
    "RUNTIME_TIMEOUT",
    "MAX_QUEUE_SIZE",
    "DEBUG",
    "PORT",
    "ADAEXPLORE_JUDGE_TOKEN",
    "JUDGE_STATE",
    "JUDGE_TOKENS",
    "LOG_FORMAT",
    "BUILD_DIR",
    "MAX_BODY_BYTES",
    "MAX_SOURCE_BYTES",
    "RESULT_CACHE",
)


class LiveJudge:
    """A judge process and how to talk to it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.log = Path()
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=120, trust_env=False)

    def close(self) -> None:
        self.client.close()

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.client.post(path, json=body)

    def evaluate(self, candidate: str, reference: str = REFERENCE, **fields: Any) -> dict[str, Any]:
        body = {"original_model_src": reference, "custom_model_src": candidate, "backend": "triton"} | fields
        response = self.post("/evaluate", body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def processes(self, name: str = "") -> list[int]:
        """Process ids below the judge, those of one name if given; the kernel keeps 15 characters of it."""
        roots = [self.process.pid]
        if ON_RAY:  # of all judges there
            from .scale.cluster import actors

            roots += actors()
        below = [pid for root in roots for pid in linux.descendants(root)]
        return [pid for pid in below if not name or comm(pid) == name[:15]]


def comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return the first true value of ``condition``; fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"not so within {seconds} s: {condition}")


def start_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "online_judge", "--port", "0", *arguments]


def judge_environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in JUDGE_VARIABLES}
    return kept | ENVIRONMENT | changes


@contextlib.contextmanager
def running_judge(
    folder: Path, log: IO[bytes] | None = None, *, port: int = 0, **environment: str
) -> Iterator[LiveJudge]:
    """Return a judge until the end of the block, at which one that still runs must end in order."""
    with contextlib.ExitStack() as stack:
        log = log or stack.enter_context((folder / "judge.log").open("ab"))
        started = stack.enter_context(judge_process(judge_environment(**environment), log, port=port))
        with contextlib.closing(LiveJudge(started.process, started.port)) as judge:
            if ON_RAY:
                wait_until(lambda: judge.client.get("/readyz").status_code == 200, 240)
            yield judge
        if judge.process.poll() is None:
            judge.process.terminate()
            judge.process.wait(30)
