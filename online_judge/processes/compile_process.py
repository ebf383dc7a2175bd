"""The single-use process that compiles one candidate's launches; it sees shapes, never data.

Over its socket it sends :class:`Ready` and receives the needed fields of an :class:`EvaluationRequest`. It
sends ``{"stage": ...}`` for each stage of the candidate that it enters. Last it sends ``{"end": {}}``, with
PTX by kernel under ``asm`` if requested, ``{"end": {"failed": {...}}}`` or ``{"end": {"reference_failed":
reason}}``. A failure of the reference counts only before the first stage: after that the candidate's code
runs here.
"""

import contextlib
import importlib
import os
import socket
import sys
import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from adaexplore.core.dialects import arguments
from adaexplore.core.judging.status import Stage
from adaexplore.core.wire import EvaluationRequest
from online_judge.candidate import classification
from online_judge.candidate.loading import load_class
from online_judge.candidate.process import flush_output
from online_judge.checks.facts.findings import Failure
from online_judge.common import gradients, modules
from online_judge.cpu import simulated_cuda
from online_judge.cpu.compile_gate import CompileGate
from online_judge.cpu.dataless import DatalessTensors
from online_judge.cpu.errors import NotCheckedError
from online_judge.cpu.target import gpu_model
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.messages import Ready
from online_judge.sandbox import linux, process_spec
from online_judge.sandbox.process_spec import CANDIDATE_FILE, ProcessSpec

MAX_ASM_CHARS = 4 * 2**20
# torch imports it when it first computes a shape in Python; that takes over a second
_USED_LATER = ("torch._dynamo", "torch.fx.experimental.symbolic_shapes", "triton.compiler.code_generator")


@dataclass(eq=False)
class CompileProcess:
    """Calls one candidate once; every launch is compiled, none is executed."""

    _channel: Channel
    _spec: ProcessSpec
    _dataless: DatalessTensors
    _gate: CompileGate
    _stage: Stage = Stage.LOAD

    @property
    def _file(self) -> str:
        return os.path.join(self._spec.folder, CANDIDATE_FILE)

    def serve(self) -> None:
        self._channel.send_json(Ready(ready={}).to_json())
        request = EvaluationRequest.model_validate(self._channel.receive_json()[0])
        process_spec.assign(tf32=request.tf32)
        modules.apply_precision(request.tf32)
        if request.direction != "forward":
            self._dataless.without_small_values()
        try:
            with modules.torch_defaults():
                reference, inputs = self._reference(request)
            sys.modules.pop(modules.REFERENCE_MODULE, None)
        except ReferenceFailed as error:
            self._channel.send_json({"end": {"reference_failed": str(error)}})
            return
        outcome: Failure | None
        end: dict[str, object] = {}
        try:
            outcome = self._call(request, reference, inputs)
            if outcome is None and request.asm:
                end["asm"] = self._gate.ptx(MAX_ASM_CHARS)
        except ChannelClosed:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit counts as the candidate's failure
            outcome = classification.describe(error, self._stage, self._file, cuda=False)
        self._channel.send_json({"end": end if outcome is None else {"failed": outcome.to_json()}})

    def _reference(self, request: EvaluationRequest) -> tuple[Reference, list[object]]:
        """Load the reference and its inputs without data; values that it needs are computed, then dropped."""

        def load() -> tuple[Reference, list[object]]:
            source, dtype, direction = request.original_model_src, request.dtype_str, request.direction
            reference = Reference(source, Seeds(b""), dtype, cuda=False, direction=direction)
            return reference, reference.inputs("compile")

        try:
            return load()
        except ReferenceFailed as error:
            if not isinstance(error.__cause__, NotCheckedError):
                raise
        with self._dataless.with_values():
            reference, inputs = load()
        return reference, self._dataless.without_values(inputs)

    def _call(self, request: EvaluationRequest, reference: Reference, inputs: list[object]) -> Failure | None:
        self._enter(Stage.LOAD)
        make = load_class(request.custom_model_src.encode("utf-8", "surrogatepass"), self._file)
        if isinstance(make, Failure):
            return make
        self._enter(Stage.CONSTRUCT)
        modules.seed_everything(reference.construct_seed)
        model: Any = modules.candidate_in_precision(
            arguments.construct(make, reference.init_inputs), request.dtype_str
        )
        self._enter(Stage.FORWARD)
        modules.seed_everything(reference.call_seed("compile"))
        with torch.no_grad():
            gradients.calling(model, reference.direction, reference.names, candidate=True)(*inputs)
        return None

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._channel.send_json({"stage": stage.value})


def warm_up() -> None:
    """Import in the fork server what each compile process needs; do not start CUDA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _USED_LATER:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def main(sock: socket.socket, spec: ProcessSpec) -> NoReturn:
    linux.set_process_name("judge-compiler")
    try:
        gate = CompileGate(gpu_model(spec.compile_target))
        with simulated_cuda(spec.compile_target, executes=False, gate=gate) as dataless:
            assert dataless is not None
            with contextlib.suppress(ChannelClosed):
                CompileProcess(Channel(sock), spec, dataless, gate).serve()
    finally:
        flush_output()
        os._exit(0)
