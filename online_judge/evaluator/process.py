"""The long-lived process of one device slot: owns the problem, and alone finds the facts of verdicts.

It runs the reference, never the candidate. Its control channel carries JSON: first its own
``{"ready": {}}`` for any problem, then orders of the gateway, all for one reference:

- ``{"op": "evaluate", "request": {...}, "build_dir": str | null, "seeds": hex, "job": str, "recorded_ms":
  float | null, "clean_ms": float | null, "facts": {"hardware": str}, "alone": bool}`` with the candidate's
  socket; answered by any number of ``{"clock": whose, "stage": str}`` (``reference``, ``candidate``,
  ``tuning`` or ``none``), which say whose time is running, and one ``{"result": {...}}``: of kind
  ``evaluated`` with an :class:`online_judge.protocol.result.EvaluationResult`, of kind ``judge_failed``
  where the judge's own code raised. Meanwhile it asks for leases of the device, see
  :class:`online_judge.processes.gpu_lease.EvaluatorLeases`;
- ``{"op": "sweep", ..., "sweep": {...}}`` (see :class:`online_judge.protocol.config_sweep.SweepTerms`) and
  ``{"op": "profile", ...}``: the same for other questions about a candidate;
- ``{"op": "problem", "request": {...}, "seeds": hex, "alone": bool}``: the same without a candidate process;
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
from collections import OrderedDict
from functools import partial
from typing import Any, NoReturn

import torch

from adaexplore.core.identity import source_identity, text_digest
from adaexplore.core.verdict import Status
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Tf32Policy
from online_judge.common import cuda_driver, memory_errors, modules, texts
from online_judge.common.cores import Cores
from online_judge.common.timing import Stopwatch
from online_judge.evaluator import rehearsal, size_check
from online_judge.evaluator.config_sweep import Sweep
from online_judge.evaluator.dialogue import CandidateFailed, CandidateGone, Dialogue
from online_judge.evaluator.evaluation import Evaluation, Terms
from online_judge.evaluator.examination import examine
from online_judge.evaluator.leases import Leases
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.profile import Profiling
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, Seeds
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.config_sweep import SweepTerms
from online_judge.protocol.endings import Ending, Passed, Raised
from online_judge.protocol.result import ProfileResult
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
    """Serves one control channel."""

    def __init__(self, control: Channel, spec: ProcessSpec) -> None:
        """Touch no device yet."""
        self._control = control
        self._spec = spec
        self._cuda = spec.device == "cuda"
        cores = Cores(tuple(spec.timing_cores), tuple(spec.cores))
        self._lock = Leases(control, cores)
        self._problems: OrderedDict[tuple[str, ...], Problem] = OrderedDict()
        self._small_enough: set[str] = set()
        self._watch: Stopwatch | None = None
        self._guest: Evaluation | Sweep | Profiling | None = None

    def serve(self) -> None:
        """Work until the gateway is gone."""
        if self._cuda:
            torch.cuda.init()
            torch.cuda.synchronize()
            self._rehearse()
        self._control.send_json({"ready": {}})
        while True:
            order, fds = self._control.receive_json()
            if order["op"] == "release":
                self._release()
                self._control.send_json({"released": True})
            else:
                self._control.send_json({"result": self._result(order, fds)})

    def _rehearse(self) -> None:
        """Have PyTorch load its kernels now; without memory for that the first job waits for them."""
        try:
            rehearsal.rehearse(cuda=True)
        except (ReferenceFailed, RuntimeError) as error:
            log.warning("the rehearsal failed: %s", error)
        torch.cuda.empty_cache()

    def _result(self, order: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What an order finds; an exception of the judge's own code is a finding about the judge."""
        try:
            if order["op"] == "problem":
                return self._check_problem(order)
            return self._evaluate(order, fds[0])
        except ChannelClosed:
            raise
        except Exception as error:  # noqa: BLE001 - the border of this process
            traceback.print_exc()
            text = texts.clip(f"{type(error).__name__}: {error}", _ERROR_BYTES)
            return {"kind": "judge_failed", "error": text, "broken": self._context_lost()}

    def _evaluate(self, order: dict[str, Any], candidate_fd: int) -> dict[str, Any]:
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
                    source=request.custom_model_src,
                    build_dir=order["build_dir"],
                    recorded_ms=order["recorded_ms"],
                    hardware=order["facts"]["hardware"],
                    visible_devices=self._spec.visible_devices,
                    timing_cores=tuple(self._spec.timing_cores),
                    alone=order["alone"],
                    job=order["job"] + source_identity(request.custom_model_src)[:16],
                )
                dialogue = Dialogue(candidate, self._clock)
                if order["op"] == "sweep":
                    return self._sweep(dialogue, problem, terms, SweepTerms.from_json(order["sweep"]))
                if order["op"] == "profile":
                    return self._profile(dialogue, problem, terms)
                evaluation = self._guest = Evaluation(dialogue, problem, terms, self._lock, self._stopwatch)
                result = evaluation.run()
        except ReferenceFailed as error:
            # a sweep that finds no room, even alone, is no reason to refuse the problem
            return self._failed(error, alone=order["alone"] and order["op"] != "sweep")
        except CandidateGone as gone:
            return {"kind": "candidate_gone", "stage": gone.stage.value, "why": gone.why}
        finally:
            candidate.close()
        if self._cuda and _lacked_memory(result.ending) and not order["alone"]:
            return {"kind": "not_enough_memory"}
        clean_ms = problem.clean_ms(request)
        return {"kind": "evaluated", "evaluation": result.to_json(), "clean_ms": clean_ms}

    def _failed(self, error: ReferenceFailed, *, alone: bool) -> dict[str, Any]:
        self._problems.clear()
        if isinstance(error, NotEnoughMemory) and not alone:
            return {"kind": "not_enough_memory"}
        return {"kind": "reference_failed", "reason": str(error), "broken": self._context_lost()}

    def _sweep(
        self, dialogue: Dialogue, problem: Problem, terms: Terms, wanted: SweepTerms
    ) -> dict[str, Any]:
        sweep = self._guest = Sweep(dialogue, problem, terms, wanted, self._lock)
        return {"kind": "swept", "swept": sweep.run(self._stopwatch).to_json()}

    def _profile(self, dialogue: Dialogue, problem: Problem, terms: Terms) -> dict[str, Any]:
        profiling = self._guest = Profiling(dialogue, problem, terms, self._lock)
        try:
            result = ProfileResult(ending=Passed(), profile=profiling.run())
        except CandidateFailed as failed:
            ending = failed.ending
            ran_out = isinstance(ending, Raised) and ending.failure.status is Status.OUT_OF_MEMORY
            if ran_out and not terms.alone:
                return {"kind": "not_enough_memory"}
            result = ProfileResult(ending=ending)
        return {"kind": "profile", "profile": result.to_json()}

    def _check_problem(self, order: dict[str, Any]) -> dict[str, Any]:
        request = ProblemRequest.model_validate(order["request"])
        self._clock("reference", "")
        try:
            with modules.torch_defaults():
                problem = self._problem(order, request)
                self._clock("none", "")
                with self._lock.hold(exclusive=False):
                    self._clock("reference", "")
                    if request.thorough:
                        return {"kind": "ok", "traits": examine(problem).model_dump()}
                    reference = problem.reference
                    reference.outputs(reference.inputs("problem"), "problem")
        except ReferenceFailed as error:
            return self._failed(error, alone=order["alone"])
        except (cuda_driver.DriverError, torch.OutOfMemoryError) as error:
            failure = NotEnoughMemory(f"the GPU has too little free memory for the problem ({error})")
            return self._failed(failure, alone=order["alone"])
        return {"kind": "ok"}

    def _problem(self, order: dict[str, Any], request: EvaluationRequest | ProblemRequest) -> Problem:
        """The problem, loaded now or kept from an earlier order."""
        source = request.original_model_src
        key = text_digest(source)
        if not self._cuda and key not in self._small_enough:
            try:
                size_check.check(
                    source, size_check.Limits(self._spec.cpu_max_elements, self._spec.cpu_max_flops)
                )
            except size_check.TooLarge as error:
                raise ReferenceFailed(f"too large for the CPU judge: {error}") from error
            except size_check.Died as error:
                raise ReferenceFailed(f"the module cannot be run: {error}") from error
            self._small_enough.add(key)
        tf32: Tf32Policy = getattr(request, "tf32", "paper")
        modules.apply_precision(tf32)
        known = (key, order["seeds"], request.dtype_str, tf32)
        if known not in self._problems:
            while self._problems and (len(self._problems) >= _PROBLEMS or self._is_tight()):
                self._problems.popitem(last=False)
            guard = partial(self._lock.hold, exclusive=False)
            seeds = Seeds(bytes.fromhex(order["seeds"]))
            reference = Reference(source, key, seeds, request.dtype_str, cuda=self._cuda, guard=guard)
            self._problems[known] = Problem(reference)
        self._problems.move_to_end(known)
        return self._problems[known]

    def _is_tight(self) -> bool:
        """Whether over half of the GPU's memory is in use, so that nothing is kept in advance."""
        if not self._cuda:
            return False
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return bool(free < total / 2)

    def _stopwatch(self) -> Stopwatch:
        if self._watch is None:
            self._watch = Stopwatch()
        return self._watch

    def _clock(self, whose: str, stage: str) -> None:
        self._control.send_json({"clock": whose, "stage": stage})

    def _release(self) -> None:
        """Free what was shared with the last candidate process."""
        if self._guest is not None:
            self._guest.free()
            self._guest = None
        if self._cuda:
            if torch.cuda.memory_allocated() > _IDLE_BYTES and self._is_tight():
                self._problems.clear()  # another slot's job may need the memory
                gc.collect()  # what failed may hold tensors in its frames
            torch.cuda.empty_cache()

    def _context_lost(self) -> bool:
        """Whether a reference has broken this process's CUDA context for good."""
        if not self._cuda or not torch.cuda.is_initialized():
            return False
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False


def _lacked_memory(ending: Ending) -> bool:
    """Whether too little memory may be the cause of a failure."""
    if not isinstance(ending, Raised):
        return False
    failure = ending.failure
    if failure.status in (Status.LAUNCH, Status.CONSTRUCT):
        return memory_errors.explains_text(failure.message)
    return failure.status is Status.OUT_OF_MEMORY


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
