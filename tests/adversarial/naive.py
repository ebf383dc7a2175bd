"""A harness as they usually are, to show that a cheat is one: reference and candidate in one process.

``python naive.py`` serves evaluations, one JSON object a line, each in a fork of its own; the verdict is the
last line of JSON that the fork printed. Listening socket and open file stand for what a server has.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 20.0
SEED = 42
TOLERANCE = 5e-2
RUNS = 12


@dataclass(frozen=True)
class NaiveVerdict:
    """What the harness believes."""

    correct: bool
    speedup: float
    runtime_ms: float


class NaiveHarness:
    """The server, as tests see it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def judge(
        self, reference: str, candidate: str, *, candidate_first: bool = False, prelude: str | None = None
    ) -> NaiveVerdict:
        """Evaluate; ``prelude`` is a candidate that the same process evaluates before."""
        order = {
            "reference": reference,
            "candidates": [source for source in (prelude, candidate) if source is not None],
            "candidate_first": candidate_first,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return NaiveVerdict(
            bool(answer.get("correct")), float(answer.get("speedup", 0.0)), float(answer.get("runtime", 1e9))
        )


@contextlib.contextmanager
def naive_harness(folder: Path) -> Iterator[NaiveHarness]:
    """Return a running server with its files in ``folder``."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "ADAEXPLORE_JUDGE_SECRET": "none",
        "TMPDIR": str(folder),
    }
    process = subprocess.Popen(
        [sys.executable, __file__],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield NaiveHarness(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(LIMIT_S)


def close(got: Any, want: Any) -> bool:
    """Two of the comparisons that harnesses use; either is believed."""
    import torch

    got = got.detach()
    return torch.allclose(got, want, TOLERANCE, TOLERANCE) or not (got - want).abs().max() > TOLERANCE


def measure(call: Callable[..., Any], batches: list[list[Any]], runs: int) -> list[float]:
    """Milliseconds of each run, the inputs changing every three runs."""
    import torch

    times = []
    for run in range(runs):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call(*batches[run // 3 % len(batches)])
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return times


def evaluate(number: int, *, candidate_first: bool) -> None:
    """Judge ``candidate<number>.py`` by ``reference.py``, both in the current folder; print the verdict."""
    import torch

    verdict = {"correct": False, "speedup": 0.0, "runtime": 0.0}
    reference = importlib.import_module("reference")
    torch.manual_seed(SEED)
    made = [reference.get_inputs() for _ in range(4)]
    stacked = [torch.stack(tensors) for tensors in zip(*made, strict=True)]
    batches = [list(tensors) for tensors in zip(*stacked, strict=True)]
    torch.manual_seed(SEED)
    model = reference.Model(*reference.get_init_inputs())
    candidate = importlib.import_module(f"candidate{number}")
    torch.manual_seed(SEED)
    new = candidate.ModelNew(*reference.get_init_inputs())
    with contextlib.suppress(RuntimeError):
        new.load_state_dict(model.state_dict())
    with torch.no_grad():
        want = None
        if not candidate_first:
            torch.manual_seed(SEED)
            want = model(*batches[0])
        torch.manual_seed(SEED)
        got = new(*batches[0])
        if want is None:
            torch.manual_seed(SEED)
            want = model(*batches[0])
        verdict["runtime"] = min(measure(new, batches, RUNS))
        verdict["speedup"] = min(measure(model, batches, RUNS)) / max(verdict["runtime"], 1e-9)
        verdict["correct"] = bool(close(got, want))
    print(json.dumps(verdict), flush=True)  # noqa: T201 - this is how such harnesses report


def _alone(out: int, order: dict[str, Any], folder: str) -> NoReturn:
    """Let a fork of a fork do it; neither has a descriptor of the server."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(null, 2)
    os.closerange(3, 1024)
    if (pid := os.fork()) == 0:
        try:
            _run(order, folder)
        finally:  # as the interpreter ends, without what it has of the server
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            os._exit(0)
    os.waitpid(pid, 0)
    os._exit(0)


def _run(order: dict[str, Any], folder: str) -> None:
    """In the fork: write the sources down and evaluate them."""
    from online_judge.cpu import simulated_cuda

    os.chdir(folder)
    sys.path.insert(0, folder)
    Path("reference.py").write_text(order["reference"])
    with simulated_cuda("sm_90"):
        for number, source in enumerate(order["candidates"]):
            Path(f"candidate{number}.py").write_text(source)
            evaluate(number, candidate_first=order["candidate_first"])


def _last_verdict(output: IO[bytes]) -> dict[str, Any]:
    output.seek(0)
    verdict: dict[str, Any] = {}
    for line in output.read().decode(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            verdict = found if isinstance(found, dict) else verdict
    return verdict


def main() -> None:
    """Serve until standard input ends."""
    import torch
    import triton.language

    from online_judge import cpu

    del triton, cpu
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    with socket.create_server(("127.0.0.1", 0)), open("verdicts.sqlite", "w"):
        for line in sys.stdin:
            with (
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
                tempfile.TemporaryFile() as out,
            ):
                pid = os.fork()
                if pid == 0:
                    _alone(out.fileno(), json.loads(line), folder)
                deadline = time.monotonic() + LIMIT_S
                while os.waitpid(pid, os.WNOHANG)[0] == 0:
                    if time.monotonic() > deadline:
                        os.killpg(pid, signal.SIGKILL)
                    time.sleep(0.005)
                answers.write(json.dumps(_last_verdict(out)) + "\n")
                answers.flush()


if __name__ == "__main__":
    main()
