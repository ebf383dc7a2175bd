"""The single-use process that compiles one candidate's launches; it sees shapes, never data.

Over its socket it sends :class:`Ready` and gets one JSON object ``{"reference", "source", "dtype", "tf32",
"asm"}``. It sends ``{"stage": ...}`` for each stage of the candidate that it enters and at last
``{"end": {}}``, with PTX by kernel under ``asm`` where it was asked for, ``{"end": {"failed": {...}}}`` or
``{"end": {"reference_failed": reason}}``. The last can be trusted only
before the first stage: from then on the candidate's code runs here.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch

from adaexplore.core.wire import DtypeName
from online_judge.candidate import classification
from online_judge.common import modules
from online_judge.cpu import simulated_cuda
from online_judge.cpu.compile_gate import CompileGate
from online_judge.cpu.dataless import DatalessTensors
from online_judge.cpu.errors import NotCheckedError
from online_judge.cpu.target import gpu_model
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.findings import Failure, Stage
from online_judge.protocol.messages import Ready
from online_judge.sandbox import linux, process_spec
from online_judge.sandbox.process_spec import CANDIDATE_FILE, ProcessSpec

MAX_ASM_CHARS = 4 * 2**20
_MODULE = "candidate"
# imported when torch first works out a shape in Python, which takes over a second
_USED_LATER = ("torch._dynamo", "torch.fx.experimental.symbolic_shapes", "triton.compiler.code_generator")


@dataclass(eq=False)
class CompileProcess:
    """Calls one candidate once, with every launch compiled and none executed."""

    _channel: Channel
    _spec: ProcessSpec
    _dataless: DatalessTensors
    _gate: CompileGate
    _stage: Stage = Stage.LOAD

    @property
    def _file(self) -> str:
        return os.path.join(self._spec.folder, CANDIDATE_FILE)

    def serve(self) -> None:
        """Wait for the job, do it and report its result."""
        self._channel.send_json(Ready(ready={}).to_json())
        order, _ = self._channel.receive_json()
        process_spec.assign(tf32=order["tf32"])
        modules.apply_precision(order["tf32"])
        try:
            with modules.torch_defaults():
                reference, inputs = self._reference(order["reference"], order["dtype"])
            sys.modules.pop(modules.REFERENCE_MODULE, None)
        except ReferenceFailed as error:
            self._channel.send_json({"end": {"reference_failed": str(error)}})
            return
        outcome: Failure | None
        end: dict[str, object] = {}
        try:
            outcome = self._call(order["source"], order["dtype"], reference, inputs)
            if outcome is None and order["asm"]:
                end["asm"] = self._gate.ptx(MAX_ASM_CHARS)
        except ChannelClosed:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit in a candidate is its failure too
            outcome = classification.describe(error, self._stage, self._file, cuda=False)
        self._channel.send_json({"end": end if outcome is None else {"failed": outcome.to_json()}})

    def _reference(self, source: str, dtype: DtypeName) -> tuple[Reference, list[object]]:
        """Load the reference and its inputs; one that asks for values gets them, and they are dropped."""
        try:
            return self._load_reference(source, dtype)
        except ReferenceFailed as error:
            if not isinstance(error.__cause__, NotCheckedError):
                raise
        with self._dataless.with_values():
            reference, inputs = self._load_reference(source, dtype)
        return reference, self._dataless.without_values(inputs)

    def _load_reference(self, source: str, dtype: DtypeName) -> tuple[Reference, list[object]]:
        reference = Reference(source, Seeds(b""), dtype, cuda=False)
        return reference, reference.inputs("compile")

    def _call(
        self, source: str, dtype: DtypeName, reference: Reference, inputs: list[object]
    ) -> Failure | None:
        self._enter(Stage.LOAD)
        raw = source.encode("utf-8", "surrogatepass")
        Path(self._file).write_bytes(raw)
        try:
            compile(raw, self._file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            return classification.syntax_failure(error, raw.decode("utf-8", "replace"))
        module = modules.load_candidate(self._file, _MODULE)
        if not hasattr(module, "ModelNew"):
            raise AttributeError(
                "the source defines no class ModelNew" if raw.strip() else "the source is empty"
            )
        self._enter(Stage.CONSTRUCT)
        modules.seed_everything(reference.construct_seed)
        model = module.ModelNew(*reference.init_inputs)
        if isinstance(model, torch.nn.Module) and dtype not in ("fp32", "native"):
            model = model.to(modules.DTYPES[dtype])
        self._enter(Stage.FORWARD)
        modules.seed_everything(reference.call_seed("compile"))
        with torch.no_grad():
            model(*inputs)
        return None

    def _enter(self, stage: Stage) -> None:
        self._stage = stage
        self._channel.send_json({"stage": stage.value})


def warm_up() -> None:
    """Import, in the fork server, what each compile process needs; starts no CUDA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _USED_LATER:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def main(sock: socket.socket, spec: ProcessSpec) -> NoReturn:
    """Serve ``sock`` in a fresh process, which ends here."""
    linux.set_process_name("judge-compiler")
    try:
        gate = CompileGate(gpu_model(spec.compile_target))
        with simulated_cuda(spec.compile_target, executes=False, gate=gate) as dataless:
            assert dataless is not None
            with contextlib.suppress(ChannelClosed):
                CompileProcess(Channel(sock), spec, dataless, gate).serve()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)
