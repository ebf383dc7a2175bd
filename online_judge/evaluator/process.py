"""The long-lived process of one device slot: owns the problem, and alone finds the facts of verdicts.

It runs the reference, never the candidate. Its control channel carries JSON: first its own
``{"ready": {}}`` for any problem, then orders of the gateway, all for one reference. While it obeys one it
sends ``{"clock": whose, "stage": str}``, which say whose time is running (``reference``, ``candidate``,
``tuning`` or ``none``), asks for leases of the device, see
:class:`online_judge.processes.gpu_lease.LeaseServer`, and at last answers ``{"result": {"kind": ...}}``,
``judge_failed`` where the judge's own code raised:

- ``{"op": "evaluate", "request": {...}, "build_dir": str | null, "seeds": hex, "job": str, "recorded_ms":
  float | null, "clean_ms": float | null, "facts": {"hardware": str}, "alone": bool}`` with the candidate's
  socket; ``sweep``, with another field of the form of
  :class:`online_judge.protocol.config_sweep.SweepTerms`, and ``profile`` ask other questions about it;
- ``{"op": "problem", "request": {...}, "seeds": hex, "alone": bool}``: no candidate process;
- ``{"op": "release"}``: the candidate process is gone, its memory can go; answered by ``{"released": true}``.

It runs in the candidate's sandbox, in a folder of its own: the reference in it is a client's code. What
that code changes in the process can alter verdicts of this one problem and of no other.

A module keeps the mode it is constructed in, on both sides: the reference's own ``eval()`` counts,
none is added. Both sides are seeded alike before each call, and buffers such as running statistics
are put back before each.
"""

from __future__ import annotations

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
from typing import Any, NoReturn

import torch

from adaexplore.core.identity import source_identity, text_digest
from adaexplore.core.verdict import Status
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Tf32Policy
from online_judge.common import memory_errors, modules, texts
from online_judge.common.cores import Cores
from online_judge.common.timing import Stopwatch
from online_judge.evaluator import rehearsal, size_check
from online_judge.evaluator.config_sweep import Sweep
from online_judge.evaluator.dialogue import CandidateGone, Dialogue
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.examination import examine
from online_judge.evaluator.job import CandidateJob, Terms
from online_judge.evaluator.leases import Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.profile import Profiling
from online_judge.evaluator.reference import (
    NotEnoughMemory,
    Reference,
    ReferenceFailed,
    Seeds,
    enough_memory,
)
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.config_sweep import SweepTerms
from online_judge.protocol.endings import Ending, Raised
from online_judge.sandbox.process_spec import ProcessSpec

log = logging.getLogger(__name__)

_ANSWER_BYTES = 2**20
"""Most that an answer of a candidate process may have."""
_ERROR_BYTES = 500
_PROBLEMS = 8
"""References that are kept loaded."""
_IDLE_BYTES = 2 * 2**30
"""Most that an evaluator holds between jobs where the GPU's memory is scarce."""


class Evaluator:
    def __init__(self, control: Channel, spec: ProcessSpec) -> None:
        self._control = control
        self._spec = spec
        self._cuda = spec.device == "cuda"
        self._leases = Leases(control, Cores(tuple(spec.timing_cores), tuple(spec.cores)))
        self._problems: dict[tuple[str, ...], Problem] = {}
        """Loaded problems, the most recently used last."""
        self._small_enough: set[str] = set()
        self._stopwatch = cache(Stopwatch)
        self._job: CandidateJob | None = None

    def serve(self) -> None:
        """Work until the gateway is gone."""
        if self._cuda:
            torch.cuda.init()
            torch.cuda.synchronize()
            try:  # PyTorch loads its kernels now; without memory for that the first job waits for them
                rehearsal.rehearse(cuda=True)
            except (ReferenceFailed, RuntimeError) as error:
                log.warning("the rehearsal failed: %s", error)
            torch.cuda.empty_cache()
        self._control.send_json({"ready": {}})
        while True:
            order, fds = self._control.receive_json()
            if order["op"] == "release":
                self._release()
                self._control.send_json({"released": True})
            else:
                self._control.send_json({"result": self._result(order, fds)})

    def _result(self, order: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return what an order finds; an exception of the judge's own code is a finding about the judge."""
        try:
            if order["op"] == "problem":
                return self._check_problem(order)
            return self._judge(order, fds[0])
        except ChannelClosed:
            raise
        except ReferenceFailed as error:
            self._problems.clear()
            # a sweep that finds no space, even alone, is no reason to refuse the problem
            final = order["alone"] and order["op"] != "sweep"
            if isinstance(error, NotEnoughMemory) and not final:
                return {"kind": "not_enough_memory"}
            return {"kind": "reference_failed", "reason": str(error), "broken": self._context_lost()}
        except CandidateGone as gone:
            return {"kind": "candidate_gone", "stage": gone.stage.value, "why": gone.why}
        except Exception as error:  # noqa: BLE001 - the border of this process
            traceback.print_exc()
            text = texts.clip(f"{type(error).__name__}: {error}", _ERROR_BYTES)
            return {"kind": "judge_failed", "error": text, "broken": self._context_lost()}

    def _judge(self, order: dict[str, Any], candidate_fd: int) -> dict[str, Any]:
        request = EvaluationRequest.model_validate(order["request"])
        candidate = Channel.from_fd(candidate_fd, _ANSWER_BYTES, max_fds=0)  # it has none to give
        self._clock("reference", "")
        try:
            with modules.torch_defaults():
                problem = self._problem(order, request)
                if order["clean_ms"] is not None:
                    problem.know_clean(request, order["clean_ms"])
                terms = Terms(
                    request=request,
                    build_dir=order["build_dir"],
                    recorded_ms=order["recorded_ms"],
                    hardware=order["facts"]["hardware"],
                    visible_devices=self._spec.visible_devices,
                    timing_cores=tuple(self._spec.timing_cores),
                    alone=order["alone"],
                    job_name=order["job"] + source_identity(request.custom_model_src)[:16],
                )
                kind = {"evaluate": Evaluation, "sweep": Sweep, "profile": Profiling}[order["op"]]
                dialogue = Dialogue(candidate, self._clock)
                job = self._job = kind(dialogue, problem, terms, self._leases, self._stopwatch)
                if isinstance(job, Sweep):
                    swept = job.run(SweepTerms.from_json(order["sweep"]))
                    return {"kind": "swept", "swept": swept.to_json()}
                if isinstance(job, Profiling):
                    profile = job.run()
                    if _ran_out(profile.ending) and not order["alone"]:
                        return {"kind": "not_enough_memory"}
                    return {"kind": "profile", "profile": profile.to_json()}
                assert isinstance(job, Evaluation)
                result = job.run()
        finally:
            candidate.close()
        if self._cuda and _lacked_memory(result.ending) and not order["alone"]:
            return {"kind": "not_enough_memory"}
        clean_ms = problem.clean_ms(request)
        return {"kind": "evaluated", "evaluation": result.to_json(), "clean_ms": clean_ms}

    def _check_problem(self, order: dict[str, Any]) -> dict[str, Any]:
        request = ProblemRequest.model_validate(order["request"])
        self._clock("reference", "")
        with modules.torch_defaults(), enough_memory("the problem"):
            problem = self._problem(order, request)
            with self._holding():
                if request.thorough:
                    return {"kind": "ok", "traits": examine(problem).model_dump()}
                reference = problem.reference
                reference.outputs(reference.inputs("problem"), "problem")
        return {"kind": "ok"}

    def _problem(self, order: dict[str, Any], request: EvaluationRequest | ProblemRequest) -> Problem:
        source = request.original_model_src
        key = text_digest(source)
        if not self._cuda and key not in self._small_enough:
            size_check.check(source, self._spec.cpu_max_elements, self._spec.cpu_max_flops)
            self._small_enough.add(key)
        tf32: Tf32Policy = getattr(request, "tf32", "paper")
        modules.apply_precision(tf32)
        known = (key, order["seeds"], request.dtype_str, tf32)
        problem = self._problems.pop(known, None)
        if problem is None:
            while self._problems and (len(self._problems) >= _PROBLEMS or self._is_tight()):
                del self._problems[next(iter(self._problems))]
            seeds = Seeds(bytes.fromhex(order["seeds"]))
            reference = Reference(source, seeds, request.dtype_str, cuda=self._cuda, guard=self._holding)
            problem = Problem(reference)
        self._problems[known] = problem
        return problem

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the device shared on the reference's time; waiting for the device is nobody's time."""
        self._clock("none", "")
        with self._leases.hold(exclusive=False):
            self._clock("reference", "")
            yield

    def _is_tight(self) -> bool:
        """Say whether over half of the GPU's memory is in use, so that nothing is kept in advance."""
        if not self._cuda:
            return False
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return bool(free < total / 2)

    def _clock(self, whose: str, stage: str) -> None:
        self._control.send_json({"clock": whose, "stage": stage})

    def _release(self) -> None:
        if self._job is not None:
            self._job.free()
            self._job = None
        if self._cuda:
            if torch.cuda.memory_allocated() > _IDLE_BYTES and self._is_tight():
                self._problems.clear()  # another slot's job may need the memory
                gc.collect()  # what failed may hold tensors in its frames
            torch.cuda.empty_cache()

    def _context_lost(self) -> bool:
        """Say whether a reference has broken this process's CUDA context for good."""
        if not self._cuda or not torch.cuda.is_initialized():
            return False
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False


def _ran_out(ending: Ending) -> bool:
    return isinstance(ending, Raised) and ending.failure.status is Status.OUT_OF_MEMORY


def _lacked_memory(ending: Ending) -> bool:
    """Say whether too little memory may be the cause of a failure."""
    if isinstance(ending, Raised) and ending.failure.status in (Status.LAUNCH, Status.CONSTRUCT):
        return memory_errors.explains_text(ending.failure.message)
    return _ran_out(ending)


def main(sock: socket.socket, spec: ProcessSpec) -> NoReturn:
    """Be an evaluator; this process is inside its sandbox already, and ends here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = 0
    try:
        Evaluator(Channel(sock), spec).serve()
    except ChannelClosed:
        pass
    except BaseException:  # noqa: BLE001 - it is replaced; its last words go to the log
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)
