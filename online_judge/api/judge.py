"""The parts of a running judge, started in order and stopped in reverse order."""

from __future__ import annotations

import asyncio
import logging
import socket
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError

from adaexplore.core.dialects.catalogue import source_of
from adaexplore.core.environment import Environment
from adaexplore.core.errors import ConfigError
from adaexplore.core.wire import EvaluationRequest, WorkerStatus
from online_judge.api.benchmarks import with_sources
from online_judge.processes.fork_client import ForkClient
from online_judge.queue.board import JobBoard
from online_judge.queue.cache import ResultCache
from online_judge.queue.evaluations import Evaluations
from online_judge.queue.journal import Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import Scheduler
from online_judge.queue.store import Store
from online_judge.sandbox import linux
from online_judge.settings import Settings
from online_judge.slots import build_folders, devices
from online_judge.slots.compile_slot import CompileSlot, compile_slots
from online_judge.slots.device_worker import LocalWorker

if TYPE_CHECKING:
    from online_judge.scale.fleet import Fleet

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Judge:
    settings: Settings
    fork_client: ForkClient
    machine: devices.Machine
    workers: list[LocalWorker]
    fleet: Fleet | None  # of a Ray cluster
    scheduler: Scheduler
    board: JobBoard
    metrics: Metrics

    def render_metrics(self) -> bytes:
        workers = self.workers if self.fleet is None else self.fleet.workers()
        ready = {worker.device.id: worker.ready for worker in workers}
        self.metrics.show_workers(Counter(worker.state for worker in self.worker_status()))
        self.metrics.show_load(self.scheduler.status(), self.scheduler.oldest_s(), self.board.count(), ready)
        return self.metrics.render()

    def worker_status(self) -> list[WorkerStatus]:
        if self.fleet is not None:
            return self.fleet.status()
        return [
            WorkerStatus(
                device=device.id,
                host=socket.gethostname(),
                hardware=device.hardware,
                slots=device.slots,
                state="ready",
            )
            for device in self.machine.devices
        ]

    @property
    def environment(self) -> Environment:
        software, machine = self.fork_client.software, self.machine
        facts = [device.facts for device in machine.devices if device.facts is not None]
        if machine.elastic:  # one of each model
            facts = list({each.name: each for each in facts}.values())
        known = dict(software) if machine.cuda_available else dict(software) | {"timing": None}
        return Environment(**known, hardware=machine.hardware, devices=facts)

    async def accepted(self, request: EvaluationRequest, where: str) -> EvaluationRequest:
        """Return a request with its sources, even if it only names a task; ``where`` locates errors.

        Raises HTTPException 400 for a task that cannot be used and 503 without devices,
        RequestValidationError for a refused build folder.
        """
        if source_of(request.test_source) is not None:  # files are read
            request = await asyncio.to_thread(with_sources, request, self.settings)
        why = build_folders.refusal(request.build_dir, self.settings.build_dir)
        if why is not None:
            place = (*where.split("."), "build_dir")
            error = {"loc": place, "msg": why, "type": "value_error", "input": request.build_dir}
            raise RequestValidationError([error])
        self.require_devices()
        return request

    def require_devices(self) -> None:
        """Raise HTTPException 503 without devices, unless some may join."""
        if not self.machine.devices and not self.machine.elastic:
            raise HTTPException(503, "CUDA is not available on this judge")


def judge_of(request: Request) -> Judge:
    judge: Judge = request.app.state.judge
    return judge


@asynccontextmanager
async def running_judge(settings: Settings) -> AsyncIterator[Judge]:
    """Start the processes and continue unfinished jobs; leave no process behind."""
    linux.forbid_inspection()
    store = Store(settings.state_file)
    fork_client = ForkClient(settings.require_sandbox)
    workers: list[LocalWorker] = []
    try:
        await asyncio.to_thread(fork_client.start)
        if settings.ray is None:
            machine = await asyncio.to_thread(devices.find, fork_client, settings)
        else:
            machine = devices.Machine(False, 0, (), settings.compile_target, elastic=True)
        workers += [LocalWorker(fork_client, device, settings) for device in machine.devices]
        await asyncio.gather(*(worker.start() for worker in workers))
        slots = [slot for group in zip(*(worker.slots for worker in workers), strict=True) for slot in group]
        compilers: list[CompileSlot] = []
        if machine.devices or machine.elastic:
            cores = machine.devices[0].cores.others if machine.devices else ()
            compilers = compile_slots(fork_client, settings, machine.compile_target, cores)
        metrics = Metrics()
        evaluations = Evaluations(settings, machine, fork_client.software.versions, metrics)
        pinned = settings.allocation_mode == "manual"
        most = settings.max_queue_size
        scheduler = Scheduler(slots, most, evaluations.run, pinned=pinned, compile_slots=compilers)
        board = JobBoard(scheduler, evaluations, Journal(store), ResultCache(store, metrics), metrics)
        log.info("judging on %s, %d slots", machine.hardware, len(slots))
        scheduler.start()
        fleet: Fleet | None = None
        try:
            if machine.devices or machine.elastic:
                await _recover(board, settings)
            if settings.ray is not None:
                from online_judge.scale.fleet import Fleet  # the one import of ray

                fleet = Fleet(settings, fork_client.software.versions, machine, scheduler)
                fleet.start()
            yield Judge(settings, fork_client, machine, workers, fleet, scheduler, board, metrics)
        finally:
            await board.close()
            await scheduler.close()
            if fleet is not None:
                await fleet.close()
    finally:
        for worker in workers:
            await worker.close()
        await asyncio.to_thread(fork_client.close)
        store.close()


async def _recover(board: JobBoard, settings: Settings) -> None:
    try:
        await board.recover()
    except sqlite3.Error as error:
        raise ConfigError(
            f"JUDGE_STATE {settings.state_file} cannot be used ({error}); "
            "name another file or set it to nothing"
        ) from error
