"""The gateway's side of a device on another machine: its slots send their jobs to a Ray actor."""

import asyncio
import logging
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.judging.status import Stage
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.processes.gpu_lease import Cancelled
from online_judge.scale import canary
from online_judge.scale.actor import Actor, Description, Outcome, Vitals
from online_judge.scale.places import Place
from online_judge.settings import Settings
from online_judge.slots.devices import Device
from online_judge.slots.jobs import EvaluationJob, Finding, Loss, WorkerLost
from online_judge.verdict import assemble
from online_judge.verdict.assemble import Target

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_RETRY_S = 1.0
_NODE_S = 5.0
"""Longest time from the end of a worker to Ray's report that its whole machine is gone."""
_CLOSE_S = 15.0
_CALLS = 256
"""Concurrent calls of an actor: more than it has slots."""


class RayWorker:
    """One device; used from the event loop, and by its slots from their threads."""

    def __init__(self, place: Place, number: int, settings: Settings) -> None:
        """Ask Ray for the actor; it waits for a free GPU of its machine."""
        own = replace(
            settings,
            judge_device="cuda" if place.gpu else "cpu",
            available_gpus=None,
            token=None,
            clients=(),
            state_file=None,
            ray=None,
        )
        options: dict[str, Any] = {
            "num_cpus": 0,
            "num_gpus": 1 if place.gpu else 0,
            "max_concurrency": _CALLS,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node, soft=False),
        }
        self._actor: Any = ray.remote(Actor).options(**options).remote(own, number, place)
        self._loop = asyncio.get_running_loop()
        self.number = number
        self.slots: tuple[RaySlot, ...] = ()
        self.ready = 0
        self.gone = threading.Event()  # it does no more jobs
        self.process_died = False
        self.node_gone = threading.Event()
        self.doubt = ""  # why the canary must run
        self.woken = asyncio.Event()

    @property
    def device(self) -> Device:
        return self.description.device

    async def start(self) -> None:
        """Wait until it takes jobs; raises JudgeError or RayError if it cannot start."""
        try:
            self.description: Description = await self._actor.start.remote()
        except RayTaskError as error:
            raise JudgeError(" ".join(str(error.cause).split())) from error
        self.slots = tuple(RaySlot(self, self.device) for _ in range(self.device.slots))
        self._watch = asyncio.ensure_future(self._until_it_dies())

    async def _until_it_dies(self) -> None:
        while True:
            try:
                await self._actor.watch.remote()
                return
            except ActorUnavailableError:
                await asyncio.sleep(_RETRY_S)
            except ActorDiedError:
                self.process_died = True
                raise

    async def close(self) -> None:
        if not self.gone.is_set():
            self.gone.set()
            try:
                await asyncio.wait_for(self._actor.close.remote(), _CLOSE_S)
            except (RayError, TimeoutError) as error:
                log.warning("worker %d did not close in order: %s", self.number, type(error).__name__)
        if not self.node_gone.is_set():  # otherwise Ray may never answer
            ray.kill(self._actor)

    async def died(self, timeout_s: float | None) -> None:
        """Wait until its process is gone (raises RayError), it is woken, or time is up."""
        woken = asyncio.ensure_future(self.woken.wait())
        await asyncio.wait({self._watch, woken}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()
        if self._watch.done():
            self._watch.result()

    async def memory_errors(self) -> int:
        """Return the number of its GPU's uncorrected memory errors; note how many processes wait."""
        try:
            found: Vitals = await self._actor.vitals.remote()
        except ActorUnavailableError:  # network trouble may pass
            return 0
        self.ready = found.ready
        return found.memory_errors

    async def try_canary(self, number: int) -> Verdict | str:
        """Return the canary's verdict, or why there is none."""
        outcome: Outcome = await self._actor.run.remote(canary.job(number))
        return outcome.found if isinstance(outcome.found, Verdict) else outcome.error

    def suspect(self, why: str) -> None:
        """Have the canary run; thread-safe."""
        self.doubt = why
        self._loop.call_soon_threadsafe(self.woken.set)

    def outcome(self, job: EvaluationJob, cancelled: threading.Event) -> Outcome | None:
        """Have the actor do a job; None if the actor is lost.

        A call lost by the network is repeated; the actor knows the job by its id.
        """
        while not self.gone.is_set():
            try:
                future = self._actor.run.remote(job).future()
                while not self.gone.is_set():
                    try:
                        answer: Outcome = future.result(_LOOK_S)
                        return answer
                    except TimeoutError:
                        pass
                    if cancelled.is_set():
                        self._actor.cancel.remote(job.id)
            except ActorUnavailableError:
                if cancelled.wait(_RETRY_S):
                    return None
            except RayTaskError as error:
                return Outcome(error=" ".join(str(error.cause).split()), whose="judge")
            except RayError as error:
                self.process_died |= isinstance(error, ActorDiedError)
                return None
        return None


@dataclass(eq=False)
class RaySlot:
    """One slot of such a device; used from one thread at a time."""

    _worker: RayWorker
    device: Device
    stage_seconds: dict[str, float] = field(default_factory=dict)

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        """See :class:`online_judge.slots.jobs.RemoteSlot`."""
        was_there = not self._worker.gone.is_set()
        outcome = self._worker.outcome(job, cancelled)
        if cancelled.is_set() and (outcome is None or outcome.found is None):
            raise Cancelled
        if outcome is None:
            crashed = was_there and self._worker.process_died and not self._worker.node_gone.wait(_NODE_S)
            raise self._lost("crashed" if crashed else "gone", job, "its workers were lost several times")
        self.stage_seconds = outcome.stage_seconds
        if outcome.whose == "problem":
            raise ProblemError(outcome.error)
        if outcome.found is None:
            self._worker.suspect(f"the judge failed there: {outcome.error}")
            raise self._lost("failed", job, outcome.error)
        if isinstance(outcome.found, Verdict) and outcome.found.has_flag("baseline_drift"):
            self._worker.suspect("the times of a reference have changed there")
        return outcome.found

    def close(self) -> None:
        """Do nothing; the worker closes itself."""

    def _lost(self, why: Loss, job: EvaluationJob, text: str) -> WorkerLost:
        final: Finding | JudgeError = JudgeError(text)
        if why == "crashed" and job.kind == "candidate" and isinstance(job.request, EvaluationRequest):
            cuda = self.device.kind == "cuda"
            target = Target(self.device.hardware, f"cuda:{self.device.id}" if cuda else "cpu", cuda)
            final = assemble.evaluator_died_twice(job.request, target, Stage.FORWARD)
        return WorkerLost(why, self.device.id, final)
