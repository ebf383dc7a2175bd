"""The parts of a running judge: started in order, and stopped in the opposite one."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError

from adaexplore.core.errors import ConfigError
from adaexplore.core.wire import EvaluationRequest
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
from online_judge.slots.device_worker import DeviceWorker

log = logging.getLogger(__name__)

_TRITONBENCH = {"TBG", "TRITONBENCH_G", "TRITONBENCH-G", "TBT", "TRITONBENCH_T", "TRITONBENCH-T"}


@dataclass(frozen=True)
class Judge:
    settings: Settings
    fork_client: ForkClient
    machine: devices.Machine
    workers: list[DeviceWorker]
    evaluations: Evaluations
    scheduler: Scheduler
    board: JobBoard
    metrics: Metrics

    def render_metrics(self) -> bytes:
        ready = {worker.device.id: worker.candidates.ready for worker in self.workers}
        self.metrics.show_load(self.scheduler.status(), self.scheduler.oldest_s(), self.board.count(), ready)
        return self.metrics.render()

    def require_supported(self, request: EvaluationRequest, where: str) -> None:
        """Refuse a request that this judge cannot evaluate; ``where`` is its place in the body.

        Raises HTTPException 501 for TritonBench and 503 without devices, RequestValidationError for a wrong
        build folder.
        """
        if (request.test_source or "").upper() in _TRITONBENCH:
            raise not_implemented("TritonBench")
        why = build_folders.refusal(request.build_dir, self.settings.build_dir)
        if why is not None:
            place = (*where.split("."), "build_dir")
            error = {"loc": place, "msg": why, "type": "value_error", "input": request.build_dir}
            raise RequestValidationError([error])
        self.require_devices()

    def require_devices(self) -> None:
        """Raise HTTPException 503 without devices."""
        if not self.machine.devices:
            raise HTTPException(503, "CUDA is not available on this judge")


def judge_of(request: Request) -> Judge:
    judge: Judge = request.app.state.judge
    return judge


def not_implemented(what: str) -> HTTPException:
    return HTTPException(501, f"{what} evaluation is not implemented in this judge; use KernelBench problems")


@asynccontextmanager
async def running_judge(settings: Settings) -> AsyncIterator[Judge]:
    """Start the processes and go on with unfinished jobs; leave no process behind."""
    linux.forbid_inspection()
    store = Store(settings.state_file)
    fork_client = ForkClient(settings.require_sandbox)
    workers: list[DeviceWorker] = []
    try:
        await asyncio.to_thread(fork_client.start)
        machine = await asyncio.to_thread(devices.find, fork_client, settings)
        workers += [DeviceWorker(fork_client, device, settings) for device in machine.devices]
        await asyncio.gather(*(asyncio.to_thread(worker.start) for worker in workers))
        slots = [slot for group in zip(*(worker.slots for worker in workers), strict=True) for slot in group]
        compilers: list[CompileSlot] = []
        if machine.devices:
            cores = machine.devices[0].cores.others
            compilers = compile_slots(fork_client, settings, machine.compile_target, cores)
        metrics = Metrics()
        evaluations = Evaluations(settings, machine, fork_client.versions, metrics)
        pinned = settings.allocation_mode == "manual"
        most = settings.max_queue_size
        scheduler = Scheduler(slots, most, evaluations.run, pinned=pinned, compile_slots=compilers)
        board = JobBoard(scheduler, evaluations, Journal(store), ResultCache(store, metrics), metrics)
        log.info("judging on %s, %d slots", machine.hardware, len(slots))
        scheduler.start()
        try:
            if machine.devices:
                await _recover(board, settings)
            yield Judge(settings, fork_client, machine, workers, evaluations, scheduler, board, metrics)
        finally:
            await board.close()
            await scheduler.close()
    finally:
        for worker in workers:
            await asyncio.to_thread(worker.close)
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
