"""Simulate the judge's queue and placement on many GPUs: ``python -m tool_scripts.simulate_fleet``.

The judge's own ``online_judge.queue.placement`` places jobs on made-up GPUs under a simulated clock. Jobs of
ten clients, one of which sends most, arrive at random and run for random times; some name a GPU model. In the
middle a tenth of the machines is lost: ``--detect`` seconds later their jobs go back to the queue, and after
five minutes the machines join again.
"""

import argparse
import heapq
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from adaexplore.core.errors import JudgeError
from adaexplore.core.wire import EvaluationRequest, fits
from online_judge.common.tokens import Caller
from online_judge.queue.job import Job
from online_judge.queue.placement import Group
from online_judge.slots.devices import Device
from online_judge.slots.jobs import EvaluationJob, Finding, WorkerLost
from tool_scripts.script import show

MODELS = {"NVIDIA H100 80GB HBM3": 0.5, "NVIDIA H200": 0.3, "NVIDIA A100-SXM4-80GB": 0.2}
PER_MACHINE = 8
MEAN_S = 20.0
LOAD = 0.9
AWAY_S = 300.0


@dataclass(eq=False)
class Gpu:
    """A GPU that runs one job at a time."""

    device: Device
    stage_seconds: dict[str, float] = field(default_factory=dict)
    down: bool = False

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing runs."""


class Simulation:
    """Made-up GPUs and jobs, and the judge's own placement."""

    def __init__(self, gpus: int, jobs: int, detect_s: float, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        machines = draw.choices(list(MODELS), list(MODELS.values()), k=-(-gpus // PER_MACHINE))
        self.fleet = [Gpu(Device(each, "cuda", "", machines[each // PER_MACHINE])) for each in range(gpus)]
        self.victims = [gpu for gpu in self.fleet if gpu.device.id // PER_MACHINE % 10 == 0]
        self.group = Group(jobs)
        for gpu in self.fleet:
            self.group.admit(gpu)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()
        self.now, self.idle_s, self.recovery_s = 0.0, 0.0, 0.0
        self.finished: Counter[str] = Counter()
        self.lost: set[str] = set()
        at = 0.0
        for _ in range(jobs):
            at += draw.expovariate(LOAD * gpus / MEAN_S)
            self.later(at, partial(self.group.add, self.new_job()))
        self.loss_s = at / 2
        self.later(self.loss_s, partial(self.set_down, True))
        self.later(self.loss_s + detect_s, self.detect)
        self.later(self.loss_s + AWAY_S, partial(self.set_down, False))

    def new_job(self) -> Job:
        client = self.draw.choices(range(10), [100, *[1] * 9])[0]
        model = self.draw.choice([None, None, None, "H100", ["H200", "A100"]])
        job = Job("candidate", EvaluationRequest(gpu=model), Caller("", str(client)))
        job.sharers = [job]
        return job

    def later(self, at: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (at, next(self.numbers), event))

    def set_down(self, down: bool) -> None:
        for gpu in self.victims:
            gpu.down = down
            if not down:
                self.group.admit(gpu)

    def detect(self) -> None:
        for gpu in self.victims:
            self.group.dismiss(gpu)
        for job in [job for job, slot in self.group.running.items() if slot in self.victims]:
            self.lost.add(job.id)
            assert job.may_try_again(WorkerLost("gone", self.group.running[job].device.id, JudgeError("")))
            self.group.free(job)
            self.group.put_back(job)

    def end(self, job: Job, losses: int) -> None:
        """End a job unless it was lost."""
        slot = self.group.running.get(job)
        if isinstance(slot, Gpu) and not slot.down and job.lost.total() == losses:
            self.finished[job.id] += 1
            self.group.free(job)

    def run(self) -> None:
        waits = False
        while self.events:
            at, _, event = heapq.heappop(self.events)
            if waits:
                self.idle_s = max(self.idle_s, at - self.now)
            self.now = at
            event()
            while (pair := self.group.pair()) is not None:
                job, _ = pair
                if job.id in self.lost:
                    self.recovery_s = max(self.recovery_s, at - self.loss_s)
                self.later(at + self.draw.expovariate(1 / MEAN_S), partial(self.end, job, job.lost.total()))
            waits = bool(self.group.waiting and self.has_missed_one())

    def has_missed_one(self) -> bool:
        """Return True if a job waits although a fitting GPU is free."""
        busy = set(self.group.running.values())
        free = {gpu.device.hardware for gpu in self.group.slots if gpu not in busy}
        wanted = {job.gpus for job in self.group.jobs()}
        return any(fits(gpus, hardware) for gpus in wanted for hardware in free)


def simulate(gpus: int, jobs: int, detect_s: float = 30.0, seed: int = 0) -> dict[str, float]:
    """Run the simulation once, and return its figures.

    ``idle_s`` is the longest time that a GPU was idle while a fitting job waited. ``recovery_s`` is the time
    from the loss to the next start of the last of the ``lost`` jobs. ``decision_us`` is the mean real time to
    queue, place and end one job.
    """
    simulation = Simulation(gpus, jobs, detect_s, seed)
    began = time.perf_counter()
    simulation.run()
    spent_s = time.perf_counter() - began
    assert list(simulation.finished.values()) == [1] * jobs
    return {
        "gpus": gpus,
        "jobs": len(simulation.finished),
        "simulated_s": round(simulation.now, 1),
        "idle_s": round(simulation.idle_s, 3),
        "lost": len(simulation.lost),
        "recovery_s": round(simulation.recovery_s, 1),
        "decision_us": round(spent_s / jobs * 1e6, 1),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--detect", type=float, default=30.0, help="seconds until a lost machine is noticed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    show(simulate(options.gpus, options.jobs, options.detect, options.seed))


if __name__ == "__main__":
    main()
