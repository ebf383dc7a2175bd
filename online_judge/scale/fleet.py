"""The workers of a Ray cluster: one for each device; started, watched, quarantined and readmitted."""

import asyncio
import itertools
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import ray
import ray._private.services
import ray._private.state
from ray.exceptions import RayError

from adaexplore.core.errors import JudgeError
from adaexplore.core.wire import WorkerState, WorkerStatus
from online_judge.common.events import log_event
from online_judge.queue.scheduler import Scheduler
from online_judge.scale.actor import versions_of
from online_judge.scale.canary import Canaries
from online_judge.scale.places import Place, decided, places
from online_judge.scale.remote_worker import RayWorker
from online_judge.settings import Settings
from online_judge.slots.devices import Machine

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_HEAD_S = 20.0
"""Longest time for an answer of the Ray head."""
_VITALS_S = 30.0
_AGAIN_S = 60.0
"""Time between two canaries in quarantine, and between two starts after a failed one."""
_RESTART_S = 2.0
_CONNECT_S = 5.0
_MOST_SAID = 200
"""Characters of Ray's own message."""


@dataclass(eq=False)
class _Member:
    place: Place
    number: int  # of the device, for clients
    state: WorkerState = "starting"
    reason: str = ""
    worker: RayWorker | None = None
    memory_errors: int = 0
    draining: bool = False
    task: asyncio.Task[None] = field(init=False)


class Fleet:
    """Used from one event loop."""

    def __init__(
        self, settings: Settings, versions: dict[str, str], machine: Machine, scheduler: Scheduler
    ) -> None:
        """Start nothing yet; devices are entered into ``machine`` and slots into ``scheduler``."""
        self.lost = False  # the Ray head no longer answers
        self._settings = settings
        self._device = settings.judge_device
        self._versions = versions_of(versions)
        self._machine = machine
        self._scheduler = scheduler
        self._members: dict[Place, _Member] = {}
        self._numbers = itertools.count()
        self._canary_numbers = itertools.count(1)
        self._canaries = Canaries()
        self._asking = ThreadPoolExecutor(1, "ray")  # Ray may never answer

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        tasks = [self._task, *(member.task for member in self._members.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self.lost:
            await self._ask(ray.shutdown)
        self._asking.shutdown(wait=False)

    def workers(self) -> list[RayWorker]:
        """Return the workers that take jobs."""
        members = self._members.values()
        return [member.worker for member in members if member.worker is not None and member.state == "ready"]

    def status(self) -> list[WorkerStatus]:
        return [self._status(member) for member in self._members.values()]

    def _status(self, member: _Member) -> WorkerStatus:
        device = member.worker.device if member.worker is not None and member.worker.slots else None
        return WorkerStatus(
            device=member.number,
            host=member.place.host,
            node=member.place.node,
            hardware="" if device is None else device.hardware,
            slots=0 if device is None else device.slots,
            state=member.state,
            reason=member.reason,
        )

    async def _watch(self) -> None:
        """Keep a worker at each place of the cluster, until the head is lost."""
        await self._connect()
        while not self.lost:
            try:
                async with asyncio.timeout(_HEAD_S):
                    nodes: list[dict[str, Any]] = await self._ask(ray.nodes)
                    draining = await self._ask(ray._private.state.state.get_draining_nodes)
            except (TimeoutError, RayError, RuntimeError) as error:
                log.error("the Ray head does not answer (%s): jobs wait until it does", type(error).__name__)
                self.lost = True
                nodes, draining = [], {}
            self._device = decided(nodes, self._device)
            wanted = set(places(nodes, self._device))
            for place in self._members.keys() - wanted:
                self._drop(self._members.pop(place))
            for place in sorted(wanted - self._members.keys(), key=lambda place: (place.node, place.index)):
                member = self._members[place] = _Member(place, next(self._numbers))
                member.task = asyncio.create_task(self._keep(member))
                self._set(member, "starting")
            for member in self._members.values():
                if member.place.node in draining and not member.draining:
                    member.draining = True
                    self._set(member, "draining", "its machine is being drained")
                    if member.worker is not None:
                        member.worker.woken.set()
            await asyncio.sleep(_LOOK_S)

    async def _connect(self) -> None:
        address = self._settings.ray or "auto"
        cluster = "the Ray cluster " + ("of this machine" if address == "auto" else f"at {address}")
        options = {"namespace": "adaexplore", "log_to_driver": False, "configure_logging": False}
        ray_log = logging.getLogger("ray")
        ray_log.handlers.clear()  # its lines go to the judge's log
        ray_log.propagate = True
        while True:
            try:
                await self._ask(lambda: _require_head(address))
                await self._ask(lambda: ray.init(address, **options))
                break
            except (OSError, RuntimeError, ValueError, RayError) as error:
                said = " ".join(str(error).split())[:_MOST_SAID]
                advice = "start one there with `ray start --head`, or correct --ray"
                told = f"{cluster} is not reachable ({said}): {advice}"
                if not self._machine.unreachable:
                    log.warning("%s; jobs wait, and it is tried again", told)
                self._machine.unreachable = told
            await asyncio.sleep(_RESTART_S)
        if self._machine.unreachable:
            log.info("%s is reachable now", cluster)
            self._machine.unreachable = ""

    async def _ask(self, question: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._asking, question)

    def _drop(self, member: _Member) -> None:
        """Give up the worker of a machine that is gone."""
        self._set(member, "lost", "its machine is gone")
        if member.worker is not None:
            member.worker.node_gone.set()
            member.worker.gone.set()
        member.task.cancel()

    async def _keep(self, member: _Member) -> None:
        """Run a worker at a place; start another one whenever it dies."""
        while True:
            member.worker = worker = RayWorker(member.place, member.number, self._settings)
            pause_s = _RESTART_S
            try:
                await worker.start()
                if (why := worker.description.difference(self._versions)) is not None:
                    self._set(member, "refused", why)
                    await worker.died(None)
                await self._serve(member, worker)
            except (JudgeError, RayError) as error:
                if isinstance(error, JudgeError):  # its processes do not start
                    pause_s = _AGAIN_S
                worker.gone.set()
                self._set(member, "lost", str(error).partition("\n")[0])
            finally:
                self._dismiss(worker)
                await worker.close()
            await asyncio.sleep(pause_s)
            self._set(member, "starting", member.reason)

    async def _serve(self, member: _Member, worker: RayWorker) -> None:
        """Give a worker jobs while it is healthy; raises RayError when it is gone."""
        while not member.draining:
            worker.woken.clear()
            doubt, worker.doubt = worker.doubt, ""
            why = await self._fault(worker)
            if member.draining:
                break
            if why is not None:
                self._set(member, "quarantined", f"{doubt}; {why}" if doubt else why)
                await worker.died(_AGAIN_S)
                continue
            self._machine.join(worker.device)
            self._scheduler.admit(worker.slots)
            self._set(member, "ready")
            while not worker.woken.is_set():
                await worker.died(_VITALS_S)
                errors = await worker.memory_errors()
                if errors > member.memory_errors:
                    member.memory_errors = errors
                    worker.suspect("its memory had errors that could not be corrected")
                    await worker.woken.wait()
            self._dismiss(worker)
        while True:  # running jobs continue until the machine is gone
            worker.woken.clear()
            await worker.died(None)

    async def _fault(self, worker: RayWorker) -> str | None:
        """Run the canary; return what is wrong with a worker, if anything."""
        verdict = await worker.try_canary(next(self._canary_numbers))
        if isinstance(verdict, str):
            return f"the canary kernel could not be judged: {verdict}"
        return self._canaries.fault(worker.device.hardware, verdict)

    def _dismiss(self, worker: RayWorker) -> None:
        if worker.slots:
            self._scheduler.dismiss(worker.slots)
            self._machine.leave(worker.device)

    def _set(self, member: _Member, state: WorkerState, reason: str = "") -> None:
        if (state, reason) != (member.state, member.reason):
            log_event("worker." + state, device=member.number, host=member.place.host, reason=reason or None)
        member.state, member.reason = state, reason
        self._machine.awaited = any(each.state in ("starting", "lost") for each in self._members.values())


def _require_head(address: str) -> None:
    """Raise OSError or ValueError if nothing listens at the address: ``ray.init`` would try for minutes."""
    found = ray._private.services.canonicalize_bootstrap_address(address)
    host, _, port = (found or address).rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
