"""How many of the judge's modules a reader passes from a job's slot to the work that is done for it."""

import contextlib
import importlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
import uvicorn

from .live import LiveJudge, judge_environment, wait_until
from .sources import HONEST, REFERENCE, with_forward

LIMIT = 12
PAUSE_S = 1.0
COMPARISON = "online_judge.evaluator.correctness.comparison.difference"
ASSEMBLY = "online_judge.verdict.assemble.evaluated"

RAISES = """
import sys
import time

def _modules(frame):
    found = set()
    while frame is not None:
        found.add(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return sorted(name.removeprefix("online_judge.") for name in found if name.startswith("online_judge"))

def _stand_in(*arguments, **options):
    time.sleep(PAUSE)
    raise RuntimeError(" ".join(_modules(sys._getframe())) + " " + HOME)

HOME = FUNCTION.rpartition(".")[0].removeprefix("online_judge.")
setattr(sys.modules[FUNCTION.rpartition(".")[0]], FUNCTION.rpartition(".")[2], _stand_in)
"""


def modules_of(frame: FrameType | None) -> set[str]:
    found = set()
    while frame is not None:
        found.add(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return {name.removeprefix("online_judge.") for name in found if name.startswith("online_judge")}


def in_gateway() -> set[str]:
    """Modules on the stacks of this process's threads that wait for an evaluator."""
    stacks = [modules_of(frame) for frame in sys._current_frames().values()]
    return set().union(*(stack for stack in stacks if any("device_slot" in name for name in stack)))


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveJudge]:
    """Return a judge whose gateway runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in judge_environment(JUDGE_STATE="").items():
            patch.setenv(name, value)
        yield from _served()


def _served() -> Iterator[LiveJudge]:
    from online_judge import app

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, 60)
        judge: Any = LiveJudge(None, server.servers[0].sockets[0].getsockname()[1])  # type: ignore[arg-type]
        wait_until(lambda: judge.client.get("/readyz").status_code == 200, 60)
        with contextlib.closing(judge):
            yield judge
    finally:
        server.should_exit = True
        thread.join(60)


def stacks(gateway: LiveJudge, function: str) -> set[str]:
    """Modules on the stacks of evaluator and gateway when the evaluator calls ``function``."""
    samples: list[tuple[float, set[str]]] = []
    reference = REFERENCE + f"\nPAUSE = {PAUSE_S}\nFUNCTION = {function!r}\n" + RAISES
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            samples.append((time.monotonic(), in_gateway()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        body = {
            "original_model_src": reference,
            "custom_model_src": with_forward(HONEST),
            "backend": "triton",
        }
        answer = gateway.post("/evaluate", body).text
        end = time.monotonic()
    finally:
        done.set()
        watcher.join()
    told = answer.partition("RuntimeError: ")[2].rstrip('"}')
    assert told, answer
    meanwhile = [seen for at, seen in samples if end - 0.8 * PAUSE_S < at < end - 0.2 * PAUSE_S and seen]
    assert meanwhile
    (usual, _), *_ = Counter(map(frozenset, meanwhile)).most_common(1)  # some look for dead processes
    return set(told.split()) | usual


def test_comparing_outputs_involves_few_modules(gateway: LiveJudge) -> None:
    modules = stacks(gateway, COMPARISON)
    assert len(modules) <= LIMIT, sorted(modules)


def test_assembling_the_verdict_involves_few_modules(
    gateway: LiveJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assemble, seen = ASSEMBLY.rpartition(".")[2], set()

    def noted(*arguments: Any, **options: Any) -> Any:
        seen.update(modules_of(sys._getframe()) | {ASSEMBLY.rpartition(".")[0].removeprefix("online_judge.")})
        return real(*arguments, **options)

    real = getattr(importlib.import_module(ASSEMBLY.rpartition(".")[0]), assemble)
    monkeypatch.setattr(ASSEMBLY, noted)
    assert gateway.evaluate(with_forward(HONEST), REFERENCE)["correctness"] is True
    assert 0 < len(seen) <= LIMIT, sorted(seen)
