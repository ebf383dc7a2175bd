"""The reference module of a problem: the truth that candidates are held against."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

import torch

from adaexplore.core.wire import DtypeName
from online_judge.evaluation import feedback, modules, timing, trees

_REASON_CHARS = 300


class ReferenceFailed(Exception):
    """The reference itself does not work; the text says why in one line."""


class Seeds:
    """Hidden seeds of one problem and request; who knows one cannot derive another."""

    def __init__(self, key: bytes) -> None:
        """Derive from ``key``."""
        self._key = key

    def of(self, *names: str | int) -> int:
        """The 63-bit seed of this name."""
        text = ":".join(map(str, names)).encode()
        return int.from_bytes(hmac.new(self._key, text, hashlib.sha256).digest()[:8], "big") >> 1


class Reference:
    """A loaded reference with its weights, on its device and in its precision."""

    def __init__(self, source: str, key: str, seeds: Seeds, dtype: DtypeName, *, cuda: bool) -> None:
        """Load and construct.

        Args:
            source: defines ``Model``, ``get_inputs`` and ``get_init_inputs``.
            key: hash of the source.
            seeds: where weights and inputs come from.
            dtype: precision of weights and floating inputs.
            cuda: whether it runs on the current GPU.

        Raises:
            ReferenceFailed: it cannot be loaded or constructed.
        """
        self.key = key
        self.seeds = seeds
        self.dtype = dtype
        self.cuda = cuda
        with _blaming("the module does not load"):
            modules.seed_everything(seeds.of("load"))
            self._module = modules.load_source(source, modules.REFERENCE_MODULE)
            missing = [
                name for name in ("Model", "get_inputs", "get_init_inputs") if not hasattr(self._module, name)
            ]
            if missing:
                raise ReferenceFailed(f"the module defines no {', no '.join(missing)}")
        with _blaming("get_init_inputs() or Model() fails"):
            modules.seed_everything(seeds.of("init"))
            self.init_inputs = list(self._module.get_init_inputs())
            modules.seed_everything(self.construct_seed)
            model = self._module.Model(*self.init_inputs)
            if not isinstance(model, torch.nn.Module):
                raise ReferenceFailed("Model is no torch.nn.Module")
            # as constructed, in full precision: what a candidate's own construction is to equal
            self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
            model = model.to(modules.DTYPES[dtype])
            self._model = model.cuda() if cuda else model
            self._buffers = modules.buffers_of(self._model)

    @property
    def construct_seed(self) -> int:
        """Seed under which ``Model`` and ``ModelNew`` are constructed; a player gets to know it."""
        return self.seeds.of("construct")

    def call_seed(self, trial: str | int) -> int:
        """Seed set before the call of a trial, on both sides; a player gets to know it."""
        return self.seeds.of("call", trial)

    def inputs(self, trial: str | int) -> list[Any]:
        """Fresh inputs of a trial; floating tensors in the problem's dtype, others as they are.

        Raises:
            ReferenceFailed: ``get_inputs`` fails.
        """
        with _blaming("get_inputs() fails"):
            seed = self.seeds.of("inputs", trial)
            made = self._make_inputs(seed)
            dtype = modules.DTYPES[self.dtype]

            def place(tensor: Any) -> Any:
                tensor = modules.cast_floating(tensor.detach(), dtype)
                return tensor.cuda() if self.cuda else tensor

            return [trees.map_leaves(value, place) for value in made]

    def outputs(self, inputs: list[Any], trial: str | int) -> trees.Tree:
        """What the reference makes of ``inputs``, which it may change.

        Raises:
            ReferenceFailed: it raises, or gives something that cannot be compared.
        """
        with _blaming("forward() fails"), torch.no_grad():
            modules.restore_buffers(self._model, self._buffers)
            modules.seed_everything(self.call_seed(trial))
            tree = trees.take_apart(self._model(*inputs))
            if not tree.leaves:
                raise ReferenceFailed("forward() returns no tensor")
            self._synchronise()
            return tree

    def measure_ms(self, inputs: list[Any], trials: int, trial: str | int) -> list[float]:
        """GPU times of ``trials`` calls.

        Raises:
            ReferenceFailed: it raises.
        """
        with _blaming("forward() fails while it is timed"), torch.no_grad():
            modules.restore_buffers(self._model, self._buffers)
            modules.seed_everything(self.call_seed(trial))
            return timing.measure_ms(lambda: self._model(*inputs), trials, timing.flush_buffer())

    def _make_inputs(self, seed: int) -> list[Any]:
        if self.cuda:  # large inputs are made on the GPU where the module lets them
            with contextlib.suppress(Exception), torch.device("cuda"):
                modules.seed_everything(seed)
                return list(self._module.get_inputs())
        modules.seed_everything(seed)
        return list(self._module.get_inputs())

    def _synchronise(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()


@contextlib.contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turn whatever the reference raises into :class:`ReferenceFailed`."""
    try:
        yield
    except ReferenceFailed:
        raise
    except (Exception, SystemExit) as error:
        lines = str(error).strip().splitlines()
        text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        text = feedback.scrub(text, "/nonexistent")
        raise ReferenceFailed(f"{what}: {feedback.clip(text, _REASON_CHARS)}") from error
