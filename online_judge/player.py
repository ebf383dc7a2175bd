"""The single-use process that runs one candidate; nothing it says is more than a claim."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import torch

from adaexplore.core.wire import Tf32Policy
from online_judge.channel import Channel, ChannelClosed
from online_judge.evaluation import classification, modules, timing, trees
from online_judge.evaluation.arenas import Window
from online_judge.evaluation.findings import Failure, Stage
from online_judge.orders import Construct, Forward, Measure, Order
from online_judge.sandbox import CANDIDATE_FILE, PlayerSpec

MODULE = "candidate"
_OK: dict[str, Any] = {}


class Player:
    """Carries out a referee's orders on one candidate."""

    def __init__(self, channel: Channel, spec: PlayerSpec) -> None:
        """Load nothing yet; ``spec`` is already in force."""
        self._channel = channel
        self._cuda = spec.device == "cuda"
        self._tf32 = cast(Tf32Policy, spec.tf32)
        self._file = str(Path(spec.folder) / CANDIDATE_FILE)
        self._class: Any = None
        self._model: Any = None
        self._buffers: dict[str, Any] = {}

    def play(self) -> None:
        """Load the candidate, then obey until the channel closes or something fails."""
        if not self._attempt(Stage.LOAD, self._load):
            return
        while True:
            body, fds = self._channel.receive()
            order: Order = pickle.loads(body)
            match order:
                case Construct():
                    done = self._attempt(Stage.CONSTRUCT, partial(self._construct, order, fds))
                case Forward():
                    done = self._attempt(Stage.FORWARD, partial(self._forward, order, fds))
                case Measure():
                    done = self._attempt(Stage.TIMING, partial(self._measure, order, fds))
            if not done:
                return

    def _attempt(self, stage: Stage, work: Callable[[], dict[str, Any] | Failure]) -> bool:
        """Do one piece of work and answer; this is the border at which any exception is an outcome."""
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001 - sys.exit in a candidate is its failure too
            outcome = classification.describe(error, stage, self._file, cuda=self._cuda)
        failed = isinstance(outcome, Failure)
        answer = {"failed": outcome.to_json()} if isinstance(outcome, Failure) else outcome
        self._channel.send_json(answer)
        return not failed

    def _load(self) -> dict[str, Any] | Failure:
        modules.apply_precision(self._tf32)
        raw = Path(self._file).read_bytes()
        try:
            compile(raw, self._file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            return classification.syntax_failure(error, raw.decode("utf-8", "replace"))
        spec = importlib.util.spec_from_file_location(MODULE, self._file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        spec.loader.exec_module(module)
        self._class = getattr(module, "ModelNew", None)
        if self._class is None:
            empty = "the source is empty" if not raw.strip() else "the source defines no class ModelNew"
            raise AttributeError(empty)
        return _OK

    def _construct(self, order: Construct, fds: list[int]) -> dict[str, Any]:
        self._model = None
        modules.apply_precision(self._tf32)
        modules.seed_everything(order.seed)
        changed = False
        model = self._class(*order.init_inputs)
        with Window(order.weights, fds) as window:
            if isinstance(model, torch.nn.Module):
                changed = order.load and _load_weights(model, window.tree())
                model = model.to(modules.DTYPES[order.dtype])
                model = model.cuda() if self._cuda else model
        self._model = model
        self._buffers = modules.buffers_of(model)
        self._synchronise()
        return {"changed": changed}

    def _forward(self, order: Forward, fds: list[int]) -> dict[str, Any]:
        modules.restore_buffers(self._model, self._buffers)
        with Window(order.inputs, fds[:1]) as inputs, Window(order.outputs, fds[1:]) as outputs:
            arguments = self._arguments(inputs)
            modules.seed_everything(order.seed)
            with torch.no_grad():
                result = self._model(*arguments)
            self._synchronise()
            tree = trees.take_apart(result)
            leaves = []
            for index, leaf in enumerate(tree.leaves):
                leaves.append([list(leaf.shape), str(leaf.dtype), leaf.device.type])
                if index < len(outputs.leaves):
                    place = outputs.leaves[index]
                    if place.shape == leaf.shape and place.dtype == leaf.dtype:
                        place.copy_(leaf.detach())
            self._synchronise()
            del arguments, result
        if self._cuda:
            torch.cuda.empty_cache()  # the referee needs room for the next inputs
        return {"structure": tree.signature(), "leaves": leaves}

    def _measure(self, order: Measure, fds: list[int]) -> dict[str, Any]:
        with Window(order.inputs, fds) as inputs:
            arguments = self._arguments(inputs)
            modules.seed_everything(order.seed)
            with torch.no_grad():
                samples = timing.measure_ms(
                    partial(self._model, *arguments), order.trials, timing.flush_buffer()
                )
            del arguments
        return {"samples_ms": samples}

    def _arguments(self, window: Window) -> list[Any]:
        """The inputs; on the CPU path copies, so that each has a storage whose bounds can be checked."""
        value = window.tree()
        copied = value if self._cuda else trees.map_leaves(value, lambda leaf: leaf.clone())
        return cast(list[Any], copied)

    def _synchronise(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def _load_weights(model: torch.nn.Module, weights: dict[str, Any]) -> bool:
    """Copy the reference's weights where every name and shape is the same, else leave the model alone.

    Returns:
        Whether that changed any: the module's own construction came to other values.
    """
    own = model.state_dict()
    if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
        return False
    if all(torch.equal(own[name].to(weights[name]), weights[name]) for name in own):
        return False
    model.load_state_dict(weights)
    return True


def main(sock: socket.socket, spec: PlayerSpec) -> NoReturn:
    """Be the player behind ``sock``; runs in a fresh process that ends here."""
    try:
        with _device(spec), contextlib.suppress(ChannelClosed):
            Player(Channel(sock), spec).play()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _device(spec: PlayerSpec) -> contextlib.AbstractContextManager[Any]:
    if spec.device == "cuda":
        return contextlib.nullcontext()
    from online_judge.cpu import simulated_cuda

    return simulated_cuda(spec.compile_target, executes=spec.executes)
