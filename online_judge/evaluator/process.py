"""The long-lived process of one device slot: owns the problem and finds all facts of verdicts.

It runs the reference, never the candidate. Its control channel carries the messages of
:mod:`online_judge.protocol.messages`; all jobs of one process are for one reference.

It runs in the candidate's sandbox, in a folder of its own: the reference in it is a client's code. Whatever
that code changes in the process affects verdicts on this problem only.

On both sides a module keeps the mode in which it was constructed: the judge adds no ``eval()``. Both sides
are seeded alike before each call, and buffers such as running statistics are put back before each.
"""

import gc
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NoReturn

import torch

from adaexplore.core.judging.status import Stage
from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import MAX_WORKLOADS, EvaluationRequest, ProblemRequest, Tf32Policy, Workload
from online_judge.checks.facts.endings import Ending, Raised
from online_judge.common import cuda_driver, memory_errors, modules, printable, texts
from online_judge.common.cores import Cores
from online_judge.common.timing import Stopwatch
from online_judge.evaluator import rehearsal, size_check
from online_judge.evaluator.config_sweep import Sweep
from online_judge.evaluator.dialogue import CandidateGone, Dialogue
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.examination import examine, tensors_of
from online_judge.evaluator.job import CandidateJob
from online_judge.evaluator.leases import Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.profile import Profiling
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, Seeds, enough_memory
from online_judge.evaluator.timing.clean_time import CleanTiming
from online_judge.protocol import messages
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.config_sweep import Swept
from online_judge.protocol.messages import Answer, Failure, Finding, Job, Whose
from online_judge.sandbox.process_spec import ProcessSpec

log = logging.getLogger(__name__)

_ANSWER_BYTES = 2**20
"""Largest answer of a candidate process."""
_ERROR_BYTES = 500
_WHY_BYTES = 200
_PROBLEMS_ON_CPU = 32
"""References that are kept loaded, one a workload; on a GPU those of one problem share their weights."""
_WORK: dict[messages.Operation, type[Sweep | Profiling | Evaluation]] = {
    "sweep": Sweep,
    "profile": Profiling,
    "evaluate": Evaluation,
}
_IDLE_BYTES = 2 * 2**30
"""Most memory that an evaluator holds between jobs if the GPU's memory is scarce."""


class Evaluator:
    def __init__(self, control: Channel, spec: ProcessSpec) -> None:
        self._control = control
        self._spec = spec
        self._cuda = spec.device == "cuda"
        cores = Cores(tuple(spec.timing_cores), tuple(spec.cores))
        self._leases = Leases(control, cores, self._synchronise, self._wait_for_quiet)
        self._problems: dict[tuple[str, ...], Problem] = {}
        """Loaded problems, the most recently used last."""
        self._small_enough: set[str] = set()
        self._stopwatch = cache(Stopwatch)
        self._job: CandidateJob | None = None
        self._workload: tuple[Reference, int] | None = None
        """The present job's reference and workload number, once the reference is loaded."""

    def serve(self) -> None:
        """Work until the gateway is gone."""
        if self._cuda:
            torch.cuda.init()
            torch.cuda.synchronize()
            try:  # PyTorch loads its kernels now; without memory for that the first job waits for them
                rehearsal.rehearse(self._spec)
            except (ReferenceFailed, RuntimeError) as error:
                log.warning("the rehearsal failed: %s", error)
            torch.cuda.empty_cache()
        self._control.send_json(messages.Ready(ready={}).to_json())
        while True:
            message, fds = self._control.receive_json()
            order = messages.ORDERS.validate_python(message)
            self._workload = None
            result = self._result(order, fds) if isinstance(order, Job) else self._release()
            self._control.send_json(Answer(result=result, workloads=self._workloads()).to_json())

    def _result(self, job: Job, fds: list[int]) -> Finding | Failure:
        """Return a job's finding; an exception of the judge's own code becomes a failure of the judge."""
        try:
            if isinstance(job.request, ProblemRequest):
                return self._check_problem(job, job.request)
            if job.op == "baseline":
                return self._time_baseline(job, job.request)
            return self._judge(job, job.request, fds[0])
        except ChannelClosed:
            raise
        except ReferenceFailed as error:
            self._problems.clear()
            # a sweep without enough memory, even alone, is no reason to refuse the problem
            final = job.alone and job.op != "sweep"
            if isinstance(error, NotEnoughMemory) and not final:
                return _not_enough_memory(str(error))
            reason = printable.text(self._named(str(error)))
            return messages.Failed(kind="reference_failed", reason=reason, broken=not self._synchronise())
        except CandidateGone as gone:
            return messages.CandidateGone(stage=gone.stage, why=gone.why)
        except Exception as error:  # noqa: BLE001 - the border of this process
            if self._cuda and cuda_driver.has_illegal_access():  # only the reference has kernels here
                reason = self._named("its kernels access memory illegally")
                return messages.Failed(kind="reference_failed", reason=reason, broken=True)
            traceback.print_exc()
            text = texts.clip(f"{type(error).__name__}: {error}", _ERROR_BYTES)
            return messages.Failed(kind="judge_failed", reason=text, broken=not self._synchronise())

    def _judge(self, job: Job, request: EvaluationRequest, candidate_fd: int) -> Finding | Failure:
        candidate = Channel.from_fd(candidate_fd, _ANSWER_BYTES, max_fds=0)  # it may send no descriptors
        self._clock("reference", "")
        try:
            with modules.torch_defaults():
                problem = self._problem(job, request)
                if len(problem.reference.input_sets) > 1:  # these are times of the problem's one workload
                    request = request.model_copy(update={"best_so_far": None})
                    job = job.model_copy(update={"request": request, "recorded_ms": None})
                dialogue = Dialogue(candidate, self._clock)
                parts = (dialogue, problem, job, self._spec, self._leases, self._stopwatch)
                self._job = work = _WORK[job.op](*parts)
                result = work.run()
        finally:
            candidate.close()
        if isinstance(result, Swept) or job.alone or not self._cuda:
            return result
        lacking = _lack_of_memory(result.ending)
        return result if lacking is None else _not_enough_memory(f"candidate: {lacking}")

    def _check_problem(self, job: Job, request: ProblemRequest) -> Finding:
        self._clock("reference", "")
        with modules.torch_defaults(), enough_memory("the problem"):
            problem = self._problem(job, request)
            with self._holding():
                if request.thorough:
                    return messages.ProblemRuns(traits=examine(problem))
                return messages.ProblemRuns(tensors=tensors_of(problem.reference))

    def _time_baseline(self, job: Job, request: EvaluationRequest) -> Finding:
        self._clock("reference", "")
        with modules.torch_defaults():
            problem = self._problem(job, request)
            return CleanTiming(self._clock, problem, job, self._leases, self._stopwatch).run()

    def _problem(self, job: Job, request: EvaluationRequest | ProblemRequest) -> Problem:
        source = request.original_model_src
        hidden = request.hidden_workloads
        weights = (text_digest(repr((source, hidden))), job.seeds, request.dtype_str)
        key = f"{weights[0]}:{job.workload}"
        if not self._cuda and key not in self._small_enough:
            limits = (self._spec.cpu_max_elements, self._spec.cpu_max_flops)
            size_check.check(source, *limits, hidden_workloads=hidden, workload=job.workload)
            self._small_enough.add(key)
        tf32: Tf32Policy = getattr(request, "tf32", "paper")
        modules.apply_precision(tf32)
        known = (*weights, str(job.workload), tf32, request.direction)
        problem = self._problems.pop(known, None)
        if problem is None:
            most = MAX_WORKLOADS if self._cuda else _PROBLEMS_ON_CPU
            while self._problems and (len(self._problems) >= most or self._is_tight()):
                del self._problems[next(iter(self._problems))]
            alike = (each.reference for of, each in self._problems.items() if of[:3] == weights)
            seeds = Seeds(bytes.fromhex(job.seeds))
            reference = Reference(
                source,
                seeds,
                request.dtype_str,
                cuda=self._cuda,
                guard=self._holding,
                hidden_workloads=hidden,
                workload=job.workload,
                direction=request.direction,
                like=next(alike, None) if self._cuda else None,
            )
            problem = Problem(reference)
            modules.apply_precision(tf32)  # its module may have set another
        torch.set_default_dtype(problem.reference.default_dtype)
        self._problems[known] = problem
        self._workload = (problem.reference, job.workload)
        return problem

    def _workloads(self) -> tuple[Workload, ...]:
        """Describe the workloads of the present job's problem; empty if it has only one."""
        if self._workload is None or len(self._workload[0].input_sets) < 2:
            return ()
        reference, present = self._workload
        return tuple(
            each.described(reference.described_inputs if number == present else "")
            for number, each in enumerate(reference.input_sets)
        )

    def _named(self, trouble: str) -> str:
        """Return why the reference fails, with the workload if there are several."""
        workloads = self._workloads()
        if self._workload is None or not workloads:
            return trouble
        present = workloads[self._workload[1]]
        if present.hidden:  # the message may contain its shapes
            return "the reference fails on a hidden workload; move it to get_workloads() to see why"
        return f"workload {present.name!r}: {trouble}"

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the device shared on the reference's time; waiting for the device is nobody's time."""
        self._clock("none", "")
        with self._leases.hold(exclusive=False):
            self._clock("reference", "")
            yield

    def _is_tight(self) -> bool:
        """Return True if over half of the GPU's memory is in use; then nothing is kept for later jobs."""
        if not self._cuda:
            return False
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return bool(free < total / 2)

    def _clock(self, whose: Whose, stage: str) -> None:
        clock = messages.Clock(clock=whose, stage=Stage(stage) if stage else "")
        self._control.send_json(clock.to_json())

    def _release(self) -> messages.Released:
        if self._job is not None:
            self._job.free()
            self._job = None
        if self._cuda:
            if torch.cuda.memory_allocated() > _IDLE_BYTES and self._is_tight():
                self._problems.clear()  # a job of another slot may need the memory
                gc.collect()  # frames of an exception may hold tensors
            torch.cuda.empty_cache()
        return messages.Released()

    def _wait_for_quiet(self) -> bool:
        if not self._cuda:
            return True
        with enough_memory("timing"):
            return self._stopwatch().wait_for_quiet()

    def _synchronise(self) -> bool:
        """Wait for this process's work on the device; False if its CUDA context is broken for good."""
        if not self._cuda or not torch.cuda.is_initialized():
            return True
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True


def _lack_of_memory(ending: Ending) -> str | None:
    """Return a failure's message if too little memory may be the cause."""
    if not isinstance(ending, Raised):
        return None
    failure = ending.failure
    return failure.message if memory_errors.explains_failure(failure.status, failure.message) else None


def _not_enough_memory(why: str) -> messages.NotEnoughMemory:
    return messages.NotEnoughMemory(why=texts.clip(printable.text(why).partition("\n")[0], _WHY_BYTES))


def main(sock: socket.socket, spec: ProcessSpec) -> NoReturn:
    """Run as an evaluator until the end of this process; the sandbox is already in force."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = 0
    try:
        Evaluator(Channel(sock), spec).serve()
    except ChannelClosed:
        pass
    except BaseException:  # noqa: BLE001 - it is replaced; the error goes to the log
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)
