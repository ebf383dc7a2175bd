"""Measure the gateway with made-up workers over real HTTP: ``python -m tool_scripts.measure_gateway``.

Each worker waits for about half a second per job. Nine clients submit a job every half second, or as soon as
they have the answer: first alone, then while a tenth client submits all other jobs at once. Times vary by a
fifth, and the nine clients start one after the other, so that jobs do not all start and end at the same
moments.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import random
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from online_judge.api.app import create_app
from online_judge.api.connections import PunctualProtocol, allow_many_files
from online_judge.api.judge import Judge
from online_judge.processes.fork_client import ForkClient
from online_judge.queue.board import JobBoard
from online_judge.queue.cache import ResultCache
from online_judge.queue.evaluations import Evaluations
from online_judge.queue.journal import Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import Scheduler
from online_judge.queue.store import Store
from online_judge.settings import Settings
from online_judge.slots.devices import Device, Machine
from online_judge.slots.jobs import EvaluationJob, Finding
from tool_scripts.script import show

WORK_S = (0.4, 0.6)
PERIOD_S = 0.5
OTHERS = 9
AT_ONCE = 16


@dataclass(eq=False)
class Worker:
    """A device that only waits; it records how long each job took to reach it while it was free."""

    device: Device
    boards: list[JobBoard]
    dispatch_s: list[float] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)
    stage_seconds: dict[str, float] = field(default_factory=dict)
    free_since: float = 0.0

    def __post_init__(self) -> None:
        self._random = random.Random(self.device.id)

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        known = self.boards[0].find(job.id, "")
        assert known is not None
        self.begun.append(time.monotonic())
        self.dispatch_s.append(self.begun[-1] - max(known.created, self.free_since))
        cancelled.wait(self._random.uniform(*WORK_S))
        self.free_since = time.monotonic()
        return Verdict(status=Status.PASSED, hardware=self.device.hardware)

    def close(self) -> None:
        """Nothing runs."""


async def clients(url: str, flood: int, each: int) -> list[float]:
    """Send all jobs; return when all are done, with the seconds to each answer for the nine clients."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits, trust_env=False) as client:

        async def submit(name: str, number: int) -> str:
            request = {"original_model_src": "", "custom_model_src": f"{name} = {number}"}
            answer = await client.post("/v2/jobs", json={"request": request}, headers={"X-Client": name})
            return str(answer.raise_for_status().json()["id"])

        async def wait(job: str) -> None:
            while True:
                answer = (await client.get(f"/v2/jobs/{job}?wait=60")).json()
                if answer.get("state") not in ("queued", "running"):  # or forgotten: it ended long ago
                    return

        async def other(client: int) -> list[float]:
            await asyncio.sleep(client * PERIOD_S / OTHERS)
            waits = []
            for number in range(each):
                begun = time.monotonic()
                await wait(await submit(f"other{client}", number))
                waits.append(time.monotonic() - begun)
                await asyncio.sleep(max(begun + PERIOD_S - time.monotonic(), 0))
            return waits

        async def flooding(numbers: Iterator[int]) -> None:
            for job in [await submit("flood", number) for number in numbers]:
                await wait(job)

        numbers = iter(range(flood))
        floods = [flooding(numbers) for _ in range(AT_ONCE)]
        others = await asyncio.gather(*map(other, range(OTHERS)), *floods)
        return [wait_s for waits in others[:OTHERS] for wait_s in waits or ()]


def client_process(url: str, flood: int, each: int) -> list[float]:
    return asyncio.run(clients(url, flood, each))


def measure(workers: int, flood: int, each: int, folder: Path) -> dict[str, float]:
    """Run the gateway once, and return its figures.

    ``jobs_per_s`` are jobs started, from the first start to the last. ``dispatch_p99_ms`` is from a job's
    arrival, or the worker's last end if that is later, to the job's start. ``others_p95_ms`` is from
    submission to answer, of the nine clients; half a second of it is work. ``cpu_ms`` is of the gateway a
    job, with the made-up workers.
    """
    boards: list[JobBoard] = []
    cpu_s = time.process_time()
    machine = Machine(False, 0, (), "sm_90", elastic=True)
    made = [Worker(Device(number, "cpu", "", "made up", node="x"), boards) for number in range(workers)]
    settings = Settings(state_file=folder / "state.sqlite", max_queue_size=1 + flood // workers + 100)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store, metrics = Store(settings.state_file), Metrics()
        evaluations = Evaluations(settings, machine, {}, metrics)
        scheduler = Scheduler(made, settings.max_queue_size, evaluations.run)
        for worker in made:
            machine.join(worker.device)
        board = JobBoard(scheduler, evaluations, Journal(store), ResultCache(store, metrics), metrics)
        boards.append(board)
        scheduler.start()
        app.state.settings = settings
        app.state.judge = Judge(settings, ForkClient(), machine, [], None, scheduler, board, metrics)
        gc.freeze()  # as ``python -m online_judge`` does
        yield
        await board.close()
        await scheduler.close()
        store.close()

    app = create_app()
    app.router.lifespan_context = lifespan
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, http=PunctualProtocol, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                waits = pool.submit(client_process, url, flood, each).result()
        finally:
            server.should_exit = True
            thread.join()
    dispatch_s = [seconds for worker in made for seconds in worker.dispatch_s]
    begun = sorted(at for worker in made for at in worker.begun)
    assert len(dispatch_s) == flood + OTHERS * each
    return {
        "jobs": len(dispatch_s),
        "jobs_per_s": round(len(begun) / (begun[-1] - begun[0]), 1),
        "dispatch_p99_ms": round(statistics.quantiles(dispatch_s, n=100)[98] * 1e3, 1),
        "others_p95_ms": round(statistics.quantiles(waits, n=20)[18] * 1e3, 1),
        "cpu_ms": round((time.process_time() - cpu_s) / len(dispatch_s) * 1e3, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=10_000)
    options = parser.parse_args(argv)
    allow_many_files()
    each = max(options.jobs // (100 + OTHERS), 2)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        alone = measure(options.workers, 0, each, Path(first))
        flooded = measure(options.workers, options.jobs - OTHERS * each, each, Path(second))
    show({"alone": alone, "flooded": flooded})


if __name__ == "__main__":
    main()
