"""The single-use process that runs one candidate; all its answers are claims."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import torch
from triton.runtime import driver

from adaexplore.core.dialects import arguments
from adaexplore.core.judging.status import Stage
from online_judge.candidate import classification, profile
from online_judge.candidate.autotuning import quick_autotuning
from online_judge.candidate.background import Background
from online_judge.candidate.config_sweep import ConfigSweep, ContextLost, same_form
from online_judge.candidate.launches import LaunchMeter
from online_judge.candidate.loading import load_class
from online_judge.candidate.overlap import share_memory
from online_judge.candidate.patch_audit import Watchdog
from online_judge.candidate.switches import GlobalFlags
from online_judge.checks.facts.findings import Failure
from online_judge.common import gradients, modules, timing, trees
from online_judge.common.cores import run_on, time_on
from online_judge.cpu import simulated_cuda
from online_judge.protocol import orders
from online_judge.protocol.channel import Channel, ChannelClosed
from online_judge.protocol.messages import Ready
from online_judge.protocol.shared_tensors import MappedTensors
from online_judge.sandbox import process_spec
from online_judge.sandbox.process_spec import CANDIDATE_FILE, ProcessSpec


class CandidateProcess:
    """Carries out an evaluator's orders on one candidate."""

    def __init__(self, channel: Channel, spec: ProcessSpec) -> None:
        """Prepare for any candidate; ``spec`` is already applied."""
        self._channel = channel
        self._spec = spec
        self._cuda = spec.device == "cuda"
        self._file = str(Path(spec.folder) / CANDIDATE_FILE)
        self._stopwatch = _arm() if self._cuda else None
        self._meter = LaunchMeter(cuda=self._cuda)
        self._class: Any = None
        self._model: Any = None
        self._run: Any = None  # a call of the model
        self._buffers: dict[str, Any] = {}
        self._known: set[str] = set()
        self._prepared: tuple[list[Any], list[Any], orders.Prepare] | None = None
        self._graph: timing.BlockRun | None = None
        self._config_sweep: ConfigSweep | None = None
        self._switched: list[str] = []
        self._lines: list[str] | None = None

    def serve(self) -> None:
        """Report readiness, then obey orders until the channel closes or something fails."""
        works: dict[type[orders.Order[Any]], tuple[Stage, Callable[..., Mapping[str, object] | Failure]]] = {
            orders.Load: (Stage.LOAD, self._load),
            orders.Construct: (Stage.CONSTRUCT, self._construct),
            orders.Reweigh: (Stage.FORWARD, self._reweigh),
            orders.Forward: (Stage.FORWARD, self._forward),
            orders.Observe: (Stage.FORWARD, self._observe),
            orders.Prepare: (Stage.TIMING, self._prepare),
            orders.Block: (Stage.TIMING, self._time),
            orders.Inspect: (Stage.TIMING, self._inspect),
            orders.Equip: (Stage.LOAD, self._equip),
            orders.Enter: (Stage.FORWARD, self._compete),
            orders.Rate: (Stage.FORWARD, self._compete),
            orders.Choose: (Stage.FORWARD, self._compete),
        }
        self._channel.send_json(Ready(ready={}).to_json())
        done = True
        while done:
            body, fds = self._channel.receive()
            order: orders.Order[Any] = pickle.loads(body)
            stage, work = works[type(order)]
            done = self._attempt(stage, partial(work, order, fds))

    def _attempt(self, stage: Stage, work: Callable[[], Mapping[str, object] | Failure]) -> bool:
        """Do one piece of work and answer; any exception becomes an outcome here."""
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001 - sys.exit counts as the candidate's failure
            outcome = classification.describe(error, stage, self._file, cuda=self._cuda)
        if isinstance(outcome, Failure):
            flush_output()  # after this answer the process may be killed at any moment
            self._channel.send_json({"failed": outcome.to_json()})
            return False
        self._channel.send_json(outcome)
        return True

    def _load(self, order: orders.Load, fds: list[int]) -> orders.Done | Failure:
        self._begin(order)
        self._watchdog = Watchdog()
        found = load_class(order.source, self._file)
        if isinstance(found, Failure):
            return found
        self._class = found
        self._keep_switches()
        return {}

    def _begin(self, order: orders.Load | orders.Equip) -> None:
        """Apply the settings for this candidate, and record the state that it may change."""
        process_spec.assign(tf32=order.tf32, build_dir=order.build_dir)
        modules.apply_precision(order.tf32)
        torch.set_default_dtype(order.default_dtype)
        self._switches = GlobalFlags()
        self._background = Background()

    def _keep_switches(self) -> None:
        """Note the switches that the candidate changed, and restore them: both sides run under the same."""
        self._switched += self._switches.changes()
        self._switches.restore()

    def _construct(self, order: orders.Construct, fds: list[int]) -> orders.Constructed:
        self._model = None
        modules.seed_everything(order.seed)
        changed = False
        model = arguments.construct(self._class, order.init_inputs)
        with MappedTensors(order.weights, fds) as window:
            self._known = set(window.tree())
            if isinstance(model, torch.nn.Module):
                model = model.cuda() if self._cuda else model  # first: the weights are on the GPU already
                changed = order.load and _load_weights(model, window.tree())
                model = modules.candidate_in_precision(model, order.dtype)
        self._model = model
        self._run = gradients.calling(model, order.direction, order.names, candidate=True)
        self._buffers = self._own_buffers()
        self._synchronise()
        self._keep_switches()
        return {"changed": changed}

    def _own_buffers(self) -> dict[str, Any]:
        """Copy the buffers that the reference also has; the candidate's other buffers keep their state."""
        buffers = modules.buffers_of(self._model)
        return {name: value for name, value in buffers.items() if name in self._known}

    def _reweigh(self, order: orders.Reweigh, fds: list[int]) -> orders.Reweighed:
        with MappedTensors(order.weights, fds) as window, torch.no_grad():
            model = self._model
            fresh = window.tree()
            own = model.state_dict() if isinstance(model, torch.nn.Module) else {}
            loaded = same_form(own, fresh)
            if loaded:
                modules.restore_buffers(model, self._buffers)
                for name, held in own.items():
                    held.copy_(fresh[name])
                self._buffers = self._own_buffers()
            self._synchronise()
        return {"loaded": loaded, "shapes": [] if loaded else [list(held.shape) for held in own.values()]}

    def _forward(self, order: orders.Forward, fds: list[int]) -> orders.Forwarded:
        modules.restore_buffers(self._model, self._buffers)
        seen: orders.Seen = {}
        again = None
        with MappedTensors(order.inputs, fds[:1]) as inputs, MappedTensors(order.outputs, fds[1:]) as outputs:
            arguments = self._arguments(inputs)
            given = trees.take_apart(arguments).leaves
            call = partial(self._call, order.seed, arguments)
            match order.mode:
                case "repeated":
                    seen, result = self._repeat(order.seed, arguments)
                case "skipping":
                    with self._meter.skipping():
                        result = call()
                case "profiled":
                    again = partial(self._call, order.seed, _clones(arguments))
                    result = call()
                case _:
                    with quick_autotuning() if self._cuda else contextlib.nullcontext():
                        result = call()
                    # neither the first call nor the second
                    if self._lines is None and self._background.settled:
                        self._lines = self._background.found()
            tree = trees.take_apart(result)
            leaves = tree.forms()
            _copy_fitting(tree.leaves, outputs.leaves)
            if again is not None:  # it may change outputs in a buffer's memory
                share = profile.profile_share(again, self._meter.kernel_names())
                seen = {"share": share.to_json() if share is not None else None}
            if not self._cuda:  # the evaluator must see changes of the inputs, as on a GPU
                _copy_fitting(given, inputs.leaves)
            self._synchronise()
            del arguments, given, result, call, again
        if self._cuda:
            with contextlib.suppress(RuntimeError):  # after a failed capture torch refuses all others
                torch.cuda.empty_cache()  # free memory for the next inputs
        self._keep_switches()
        return {"structure": tree.signature(), "leaves": leaves, **seen}

    def _repeat(self, seed: int, arguments: list[Any]) -> tuple[orders.Seen, Any]:
        """Call twice on the same memory with the same values, while the first outputs are held.

        Return the findings of both calls, and the second one's outputs.
        """
        given = trees.take_apart(arguments).leaves
        kept = trees.take_apart(_clones(arguments)).leaves
        with self._meter.counting():
            first = self._call(seed, arguments)
        seen: orders.Seen = {"launches": self._meter.launches().to_json()}
        outputs = trees.take_apart(first).leaves
        seen["aliases"] = share_memory(outputs, given)
        self._background.settle()
        with torch.no_grad():  # the first call may have made them require gradients
            for leaf, value in zip(given, kept, strict=True):
                leaf.copy_(value)
        modules.restore_buffers(self._model, self._buffers)
        second = self._call(seed, arguments)
        apart = [leaf for leaf in outputs if not share_memory([leaf], given)]
        seen["reused"] = share_memory(apart, trees.take_apart(second).leaves)
        return seen, second

    def _call(self, seed: int, arguments: list[Any]) -> Any:
        modules.seed_everything(seed)
        with torch.no_grad():
            result = self._run(*arguments)
        self._synchronise()
        return result

    def _observe(self, order: orders.Observe, fds: list[int]) -> orders.Changes:
        run_on(self._spec.cores)
        return {
            "patched": self._watchdog.changes(),
            "global_flags": sorted(set(self._switched)),
            "background": self._lines or [],
        }

    def _prepare(self, order: orders.Prepare, fds: list[int]) -> orders.Prepared:
        assert self._stopwatch is not None
        time_on(order.cores)
        sets = MappedTensors(order.inputs, fds[:1]).tree()
        self._graph = None  # of other memory
        self._prepared = (sets, MappedTensors(order.outputs, fds[1:]).tree(), order)
        modules.restore_buffers(self._model, self._buffers)
        modules.seed_everything(order.seed)
        calls, best_ms = self._stopwatch.warm_up(self._run, sets, order.least_s)
        return {"calls": calls, "best_ms": best_ms}

    def _time(self, order: orders.Block, fds: list[int]) -> orders.BlockReady | dict[str, Any]:
        """Run a block when the evaluator sends GO; the evaluator's clock runs from GO to DONE."""
        try:
            run = self._ready_block(order)
        except Exception as error:
            if order.kind != "graph":
                raise
            return orders.BlockReady(ready=False, why=str(error)[:200])
        self._channel.send_json(orders.BlockReady(ready=True))
        self._channel.receive()
        run.go()
        self._channel.send(orders.DONE)
        return run.times().to_json()

    def _inspect(self, order: orders.Inspect, fds: list[int]) -> orders.Inspected:
        assert self._stopwatch is not None
        with MappedTensors(order.inputs, fds[:1]) as window:
            arguments = window.tree()
            modules.restore_buffers(self._model, self._buffers)
            call = partial(self._call, order.seed, arguments)
            seen = profile.inspect(call, self._run, arguments, self._meter, self._stopwatch)
            del arguments, call
        return seen

    def _equip(self, order: orders.Equip, fds: list[int]) -> orders.Done:
        assert self._stopwatch is not None
        self._begin(order)
        folder = Path(self._spec.folder)
        self._config_sweep = ConfigSweep(folder, order, fds, self._stopwatch, cuda=self._cuda)
        return {}

    def _compete(
        self, order: orders.Enter | orders.Rate | orders.Choose, fds: list[int]
    ) -> orders.Entered | orders.Rated | orders.Done | Failure:
        assert self._config_sweep is not None
        try:
            match order:
                case orders.Enter():
                    return self._config_sweep.enter(order.sources, order.threads, order.limit_s)
                case orders.Rate():
                    return self._config_sweep.rate(order.calls, order.rounds)
                case orders.Choose():
                    self._model = self._config_sweep.chosen(order.number)
                    self._run = self._config_sweep.calling(self._model)
                    self._buffers = modules.buffers_of(self._model)
                    return {}
        except ContextLost as lost:
            return lost.failure

    def _ready_block(self, order: orders.Block) -> timing.BlockRun:
        assert self._stopwatch is not None
        assert self._prepared is not None
        sets, places, prepared = self._prepared
        modules.restore_buffers(self._model, self._buffers)
        modules.seed_everything(prepared.seed)
        sets, places = sets[: order.calls], places[: order.calls]
        if order.kind == "graph":
            if self._graph is None:
                self._graph = self._stopwatch.graph(self._run, sets, places)
            return self._graph
        return self._stopwatch.block(
            self._run,
            sets,
            places,
            flushes=order.flushes,
            marked=order.kind == "marked",
            seeds=() if order.seed is None else range(order.seed, order.seed + order.calls),
        )

    def _arguments(self, window: MappedTensors) -> list[Any]:
        """Return the inputs; on the CPU path copies, so that each has its own storage with bounds."""
        value = window.tree()
        return cast(list[Any], value) if self._cuda else _clones(value)

    def _synchronise(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def _clones(value: list[Any]) -> list[Any]:
    return cast(list[Any], trees.map_leaves(value, lambda leaf: leaf.clone()))


def _load_weights(model: torch.nn.Module, weights: dict[str, Any]) -> bool:
    """Copy the reference's weights if all names and shapes are equal; return True if any changed."""
    own = model.state_dict()
    changes = same_form(own, weights) and any(
        not torch.equal(own[name].to(weights[name]), weights[name]) for name in own
    )
    if changes:
        model.load_state_dict(weights)
    return changes


def _copy_fitting(leaves: Sequence[torch.Tensor], places: Sequence[torch.Tensor]) -> None:
    """Copy leaves to their places, except those of another shape or type."""
    for leaf, place in zip(leaves, places, strict=False):
        if place.shape == leaf.shape and place.dtype == leaf.dtype:
            place.copy_(leaf.detach())


def _arm() -> timing.Stopwatch:
    """Start CUDA and commonly used libraries."""
    stopwatch = timing.Stopwatch()
    square = torch.ones(64, 64, device="cuda")
    square @ square
    driver.active.get_current_device()  # this loads Triton's own helpers
    torch.cuda.synchronize()
    return stopwatch


def flush_output() -> None:
    """Flush printed text; a candidate may have replaced the streams by anything."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()


def main(sock: socket.socket, spec: ProcessSpec) -> NoReturn:
    device = contextlib.nullcontext() if spec.device == "cuda" else simulated_cuda(spec.compile_target)
    try:
        with device, contextlib.suppress(ChannelClosed):
            CandidateProcess(Channel(sock), spec).serve()
    finally:
        flush_output()
        os._exit(0)
