"""The reference module of a problem, with which candidates are compared."""

from __future__ import annotations

import contextlib
import hmac
import math
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import torch
from pydantic import ValidationError

from adaexplore.core.dialects import arguments
from adaexplore.core.dialects.arguments import Arguments
from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.wire import BaselineKind, Direction, DtypeName, Tier
from online_judge.common import cuda_driver, gradients, memory_errors, modules, texts, trees, workloads
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import oracles, variants
from online_judge.evaluator.correctness.tiers import OracleKind
from online_judge.evaluator.timing.baselines.baseline import all_baselines

_REASON_CHARS = 300
_WEIGHTS_BYTES = 2**30
"""Most bytes of weights that are kept on the GPU, from where they are copied much faster."""
_NO_DRIVER = "0 active drivers"  # raised by Triton
_DEFINED = ("Model", "get_inputs", "get_init_inputs")
_MAKER = "get_inputs()"
# a call that takes longer than this in its own precision gets no oracle in double precision
_SLOW_ON_GPU_S = 0.06
_SLOW_ON_CPU_S = 1.0


class ReferenceFailed(Exception):
    """The reference itself does not work; the text says why in one line."""


class NotEnoughMemory(ReferenceFailed):
    """The GPU has too little free memory, perhaps because others use it too."""


class Seeds:
    """Hidden seeds of one problem and request; nobody can derive one from another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, *names: str | int) -> int:
        text = ":".join(map(str, names)).encode()
        return int.from_bytes(hmac.digest(self._key, text, "sha256")[:8], "big") >> 1


class Reference:
    """A loaded reference with its weights, on its device and in its precision.

    Any method that runs the reference's code raises :class:`ReferenceFailed` if it fails. ``trial``
    names a call or its inputs and decides the seed.

    Attributes:
        fastest_s: wall time of the fastest call so far; infinite before the first.
        writes_inputs: whether a call of :meth:`outputs` was seen to change its inputs.
        aliases: whether an output was seen to share memory with an input.
        returns_state: whether an output was seen to share memory with a parameter or buffer.
        shapes_vary: whether inputs of equal shapes were seen to give outputs of different shapes.
        default_dtype: torch's, as its module sets it.
        oracle_kind: precision of the last oracle; None if there was none.
        weights: as constructed, in full precision, on the GPU unless they are large; a candidate's own
            construction should equal them.
        input_sets: of the problem; ``inputs`` draws from one of them.
        tolerance: the problem's own, which replaces that of requests and the tiers; None for most.
        init_inputs: the arguments of ``Model``; None if it is a plain function, which is called itself.
        described_inputs: of the latest draw; empty before the first.
        masks_unwritten: whether outputs name the elements that were never written, which are 0.
    """

    def __init__(
        self,
        source: str,
        seeds: Seeds,
        dtype: DtypeName,
        *,
        cuda: bool,
        guard: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
        hidden_workloads: str | None = None,
        workload: int = 0,
        direction: Direction = "forward",
        like: Reference | None = None,
    ) -> None:
        """Load and construct ``source``.

        ``guard`` holds the device while the module is moved there; ``workload`` is the number of its input
        set. In a direction other than ``forward`` inputs end with upstream gradients, and outputs with
        gradients, see :class:`online_judge.common.gradients.ForwardBackward`. Parameters share the memory of
        ``like``, which has the same source, seeds and dtype; everything that calls may change is this
        reference's own.
        """
        self.seeds = seeds
        self.dtype = dtype
        self.direction = direction
        self.cuda = cuda
        self.fastest_s = math.inf
        self.writes_inputs = False
        self.aliases = False
        self.returns_state = False
        self.shapes_vary = False
        self._shapes: dict[object, object] = {}  # of outputs, by those of inputs
        self.masks_unwritten = False
        self.oracle_kind: OracleKind | None = None
        self._watched = False
        self._plain = math.inf  # number of outputs that are not gradients
        self._upstream_forms: dict[object, list[torch.Tensor | None]] = {}
        self._compiled: dict[BaselineKind, Callable[..., object]] = {}
        self._names: tuple[str, ...] | None = None  # of inputs given by keyword; None before the first draw
        self._reading: int | None = None
        self._replaced: tuple[torch.nn.Module, dict[str, torch.Tensor]] | None = None
        held = guard() if cuda else contextlib.nullcontext()  # some modules run kernels on import
        with held, blaming("the module does not load"):
            modules.seed_everything(seeds.of("load"))
            self._module = modules.load_source(source, modules.REFERENCE_MODULE)
            torch.set_default_device(None)  # inputs and model are moved, and the judge draws on the CPU
            optional = {"get_inputs"} if hasattr(self._module, "get_workloads") else set()
            if not isinstance(getattr(self._module, "Model", type), type):
                optional.add("get_init_inputs")
            missing = [each for each in _DEFINED if each not in optional and not hasattr(self._module, each)]
            if missing:
                raise ReferenceFailed(f"the module defines no {', no '.join(missing)}")
        with blaming("TOLERANCE cannot be used"):
            self.tolerance = _own_tolerance(self._module)
        with blaming("its workloads cannot be used"):
            self.input_sets = workloads.input_sets(self._module, hidden_workloads)
            self.described_inputs = ""
            self._draw = self.input_sets[workload].draw
        with blaming("get_init_inputs() or Model() fails"):
            modules.seed_everything(seeds.of("init"))
            self.init_inputs = arguments.init_arguments(self._module)
            model = self._constructed(self.construct_seed)
            self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
            self.default_dtype = torch.get_default_dtype()
            model = modules.in_precision(model, dtype)
            self._dtypes = {value.dtype for value in model.state_dict().values()}
            with guard() if cuda else contextlib.nullcontext():
                if cuda and costs.nbytes(self.weights.values()) <= _WEIGHTS_BYTES:
                    self.weights = {name: value.cuda() for name, value in self.weights.items()}
                if like is not None and _are_equal(self.weights, like.weights):
                    self.weights = like.weights
                    modules.share_parameters(model, like._model)
                self._use(model.cuda() if cuda else model)

    @property
    def construct_seed(self) -> int:
        """Seed under which ``Model`` and ``ModelNew`` are constructed; candidates can see it."""
        return self.seeds.of("construct")

    def call_seed(self, trial: str | int) -> int:
        """Return the seed set before a call, on both sides; candidates can see it."""
        return self.seeds.of("call", trial)

    def inputs(self, trial: str | int) -> list[object]:
        """Draw a call's arguments: fresh inputs, and upstream gradients if it runs backward too."""
        drawn = self.drawn(trial)
        return drawn if self.direction == "forward" else [*drawn, self._upstream(drawn, trial)]

    def drawn(self, trial: str | int) -> list[object]:
        """Draw fresh inputs; floating tensors in the problem's dtype, others unchanged.

        Those that the problem gives by keyword are the last ones, in the order of :attr:`names`.
        """
        with blaming("get_inputs() fails"):
            readings = self._make_inputs(self.seeds.of("inputs", trial))
            dtype = modules.DTYPES[self.dtype]

            def place(tensor: torch.Tensor) -> torch.Tensor:
                tensor = modules.cast_floating(tensor.detach(), dtype)
                self._dtypes.add(tensor.dtype)
                return tensor.cuda() if self.cuda else tensor

            if self._reading is None:
                self._reading = arguments.decide(readings, lambda each: self._try(each, place), _MAKER)
            made = readings[min(self._reading, len(readings) - 1)]
            self._name_inputs(made.names)
            placed = [trees.map_leaves(value, place) for value in made.values]
            self.described_inputs = workloads.description(placed, made.names)
        try:
            trees.refuse_dataclasses(placed)
        except trees.UnsupportedTree as error:
            raise ReferenceFailed(f"{_MAKER} gives {error}, which cannot be judged") from error
        return placed

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs that are given by keyword; the first use may draw inputs."""
        if self._names is None:
            self.drawn("names")
        assert self._names is not None
        return self._names

    def _name_inputs(self, names: tuple[str, ...]) -> None:
        if self._names is None:
            self._names = names
            self._set_call()
        elif names != self._names:
            raise TypeError("it gives other keyword arguments on another call")

    def _try(self, given: Arguments, place: Callable[[torch.Tensor], torch.Tensor]) -> object:
        """Call the model as it is, to find out whether it works on inputs that can be read in two ways."""
        placed = [trees.map_leaves(value, place) for value in given.values]
        with torch.no_grad():
            self.begin("reading")
            return arguments.named(self._model, given.names)(*placed)

    def outputs(self, inputs: list[object], trial: str | int, *, fill: bool = False) -> trees.Tree:
        """Call the reference on ``inputs``, which it may change; ``fill`` new tensors with NaN before."""
        with blaming("forward() fails"), torch.no_grad(), self._filled(fill=fill):
            self.begin(trial)
            given = costs.leaves_of(inputs)
            versions = costs.versions(given)
            sums = None if self._watched else [costs.checksum(leaf) for leaf in given]
            start = time.perf_counter()
            tree = trees.take_apart(self._call(*inputs))
            if not tree.leaves:
                raise ReferenceFailed("forward() returns no tensor; let it return what is to be compared")
            trees.require_elements(tree)
            self._synchronise()
            self.fastest_s = min(time.perf_counter() - start, self.fastest_s)
            self.writes_inputs |= versions != costs.versions(given)
            if sums is not None:
                self.writes_inputs |= sums != [costs.checksum(leaf) for leaf in given]
                self._watched = True
            self._dtypes.update(leaf.dtype for leaf in tree.leaves)
            shapes = tuple(leaf.shape for leaf in tree.leaves)
            self.shapes_vary |= self._shapes.setdefault(tuple(leaf.shape for leaf in given), shapes) != shapes
            self.aliases |= costs.share_storage(tree.leaves, given)
            return self._comparable(tree)

    def oracle(self, inputs: list[object], trial: str | int) -> trees.Tree | None:
        """Call the reference in double precision; ``inputs`` stay unchanged.

        A module that refuses doubles, or is too slow or too large for them on a GPU, runs in single precision
        without TF32; ``oracle_kind`` says which. None if memory does not suffice, or if the outputs are
        random, because two precisions draw different numbers.
        """
        self.oracle_kind = None
        if self.stochastic:
            return None
        kinds: tuple[OracleKind, ...] = ("fp32",) if self._is_slow(inputs, trial) else ("fp64", "fp32")
        for kind in kinds:
            modules.restore_buffers(self._model, self._buffers)
            seed = self.call_seed(trial)
            with self._filled():
                tree = oracles.run(
                    self._model,
                    inputs,
                    kind,
                    seed,
                    cuda=self.cuda,
                    direction=self.direction,
                    names=self.names,
                )
            if tree is not None:
                self.oracle_kind = kind
                return self._comparable(tree)
        return None

    @property
    def arithmetic(self) -> DtypeName:
        """``dtype``; for ``native`` the narrowest of weights, inputs and outputs, at most fp32."""
        if self.dtype != "native":
            return self.dtype
        halves = [dtype for dtype in self._dtypes if modules.is_half(dtype)]
        return "fp32" if not halves else "fp16" if torch.float16 in halves else "bf16"

    @cached_property
    def stochastic(self) -> bool:
        """Whether the outputs depend on the seed of the call; two calls show it."""
        inputs = self.inputs("stochastic")
        first = self.outputs(oracles.copied(inputs), "stochastic")
        return oracles.differ(first, self.outputs(inputs, "stochastic again"))

    def emulated(self, inputs: list[object], trial: str | int, tier: Tier) -> trees.Tree | None:
        """Call the reference with operands of all products rounded for ``tier``; ``inputs`` stay unchanged.

        None if that is impossible, see :func:`online_judge.evaluator.correctness.oracles.emulated`.
        """
        modules.restore_buffers(self._model, self._buffers)
        with self._filled():
            tree = oracles.emulated(self._call, inputs, tier, self.call_seed(trial))
        if self.cuda:
            cuda_driver.free_cache_if_scarce()
        return None if tree is None else self._comparable(tree)

    def mask_unwritten(self) -> None:
        """From now on set elements that a call never writes to 0, and name them."""
        self.masks_unwritten = True
        self.__dict__.pop("stochastic", None)  # what was never written may have looked drawn

    def reweigh(self, name: str | int, scale: float = 1.0) -> dict[str, torch.Tensor]:
        """Give the model other weights of the same kind, in place, times ``scale``.

        Returns:
            All weights by name, as in ``weights``, on the model's device. Weights that share memory
            (tied ones, slices of one buffer) have the values that the model holds.
        """
        seed = self.seeds.of("weights", name)
        parameters = {held for held, _ in self._model.named_parameters(remove_duplicate=False)}
        device = "cuda" if self.cuda else "cpu"
        fresh = variants.other_weights(self.weights, parameters, device, seed, scale)
        self._put(fresh)
        for other, held in self._model.state_dict().items():
            if not torch.equal(held, fresh[other].to(held.dtype)):
                fresh[other] = held.detach().clone()
        return fresh

    def constant_weight(self, instead: Counter[tuple[int, ...]]) -> str | None:
        """Return the first parameter that has no counterpart and is zero, or a tensor of equal elements.

        ``instead`` says how often each shape occurs among the weights of a candidate with other names.
        """
        named = dict(self._model.named_parameters())
        lacking = Counter(tuple(held.shape) for held in named.values()) - instead
        for name, held in named.items():
            value = modules.widened(held)
            first = value.reshape(-1)[0] if value.numel() > 1 else 0
            if lacking[tuple(held.shape)] and bool((value == first).all()):
                return str(name)
        return None

    def redraw(self, name: str | int) -> tuple[dict[str, torch.Tensor], int]:
        """Replace the model by a ``Model`` constructed under another seed.

        Returns:
            Its weights by name, as in ``weights``, and the seed.
        """
        seed = self.seeds.of("construct", name)
        with blaming("Model() fails"):
            model = self._constructed(seed)
            fresh = {key: value.detach().clone() for key, value in model.state_dict().items()}
            model = modules.in_precision(model, self.dtype)
            self._replaced = self._model, self._buffers
            self._use(model.cuda() if self.cuda else model)
        return fresh, seed

    def restore_weights(self) -> None:
        """Undo :meth:`reweigh` and :meth:`redraw`."""
        if self._replaced is not None:
            model, buffers = self._replaced
            self._use(model)
            self._buffers, self._replaced = buffers, None
        self._put(self.weights)

    def call(self, kind: BaselineKind) -> Callable[..., object]:
        """Return the call that is timed as the baseline; call it under ``torch.no_grad()``.

        A compiled one is compiled once, by a call on inputs of its own.
        """
        baseline = all_baselines()[kind]
        if baseline.prepare is None:
            return self._call
        if kind not in self._compiled:
            with blaming(f"{baseline.name} fails"), torch.no_grad():
                prepared = baseline.prepare(self._model)
                compiled = gradients.calling(prepared, self.direction, self.names)
                inputs = self.inputs(kind)
                self.begin(kind)
                compiled(*inputs)
                self._synchronise()
            self._compiled[kind] = compiled
        return self._compiled[kind]

    def is_compiled(self, kind: BaselineKind) -> bool:
        """Return True if :meth:`call` has nothing to compile."""
        return all_baselines()[kind].prepare is None or kind in self._compiled

    def begin(self, trial: str | int) -> None:
        """Restore buffers and seed, as before each call of :meth:`outputs`."""
        modules.restore_buffers(self._model, self._buffers)
        modules.seed_everything(self.call_seed(trial))

    def cost(self, inputs: list[object]) -> costs.Cost:
        """Count bytes, operations and terms summed in one call on copies of ``inputs``."""
        with blaming("forward() fails while its operations are counted"), torch.no_grad():
            self.begin("cost")
            given = oracles.copied(inputs)
            held = [*self._model.parameters(), *self._model.buffers()]
            return costs.of_call(lambda: self._call(*given), given, held)

    def units(self, leaves: Sequence[torch.Tensor]) -> list[float]:
        """Return the factor of the absolute tolerance of each output: 1 except for large gradients.

        A gradient grows with the number of terms that it sums.
        """
        return [
            1.0 if index < self._plain else max(1.0, variants.size(leaf)) for index, leaf in enumerate(leaves)
        ]

    def output_name(self, outputs: trees.Tree, index: int) -> str:
        """Name one of the ``outputs`` of a call; empty if its index says enough."""
        return "" if self.direction == "forward" else gradients.names(outputs)[index]

    def _upstream(self, drawn: list[object], trial: str | int) -> list[torch.Tensor | None]:
        """Draw a gradient for each output that has one; which ones do is found once per input shapes."""
        key = tuple((leaf.shape, leaf.dtype) for leaf in costs.leaves_of(drawn))
        if key not in self._upstream_forms:
            with blaming("forward() fails"):
                self.begin(trial)
                found = gradients.forms(self._model, oracles.copied(drawn), self.names)
                if all(form is None for form in found):
                    raise ReferenceFailed(
                        f"no output of forward() has a gradient, which {self.direction} needs"
                    )
                self._upstream_forms[key] = found
                self._plain = len(found)
        forms = [form for form in self._upstream_forms[key] if form is not None]
        if any(modules.is_float8(leaf) for leaf in [*costs.leaves_of(drawn), *forms]):
            raise ReferenceFailed("gradients cannot be judged where inputs or outputs are float8")
        modules.seed_everything(self.seeds.of("upstream", trial))
        place = {"device": "cuda"} if self.cuda else {}
        return [
            None if form is None else torch.randn(form.shape, dtype=form.dtype, **place)
            for form in self._upstream_forms[key]
        ]

    def _filled(self, *, fill: bool = False) -> contextlib.AbstractContextManager[None]:
        filled = fill or self.masks_unwritten
        return modules.new_tensors_filled() if filled else contextlib.nullcontext()

    def _comparable(self, tree: trees.Tree) -> trees.Tree:
        """Return a call's outputs on the GPU, if there is one; elements that were never written are 0.

        For this new tensors were filled with NaN before the call. No later call changes the outputs: those in
        the memory of a parameter or buffer are copied.
        """
        leaves = tuple(leaf.cuda() for leaf in tree.leaves) if self.cuda else tree.leaves
        if costs.share_storage(leaves, [*self._model.parameters(), *self._model.buffers()]):
            self.returns_state = True
            leaves = tuple(leaf.detach().clone() for leaf in leaves)
        masks: tuple[torch.Tensor, ...] = ()
        if self.masks_unwritten:
            masks = tuple(modules.widened(leaf).isnan() for leaf in leaves)
            leaves = tuple(map(modules.zeroed, leaves, masks))
        return replace(tree, leaves=leaves, unwritten=masks)

    def _is_slow(self, inputs: list[object], trial: str | int) -> bool:
        """Return True if double precision would take too long; a first call gets a second chance."""
        limit_s = _SLOW_ON_GPU_S if self.cuda else _SLOW_ON_CPU_S
        if self.fastest_s > limit_s:
            self.outputs(oracles.copied(inputs), trial)
        return self.fastest_s > limit_s

    def _use(self, model: torch.nn.Module) -> None:
        self._model = model
        self._buffers = modules.buffers_of(model)
        self._set_call()

    def _set_call(self) -> None:
        # a plain function is timed without the module around it
        call = self._model if self.init_inputs is not None else self._model.forward
        self._call = gradients.calling(call, self.direction, self._names or ())

    def _constructed(self, seed: int) -> torch.nn.Module:
        """Construct ``Model``; a plain function becomes the forward of a module."""
        modules.seed_everything(seed)
        made = arguments.construct(self._module.Model, self.init_inputs)
        if self.init_inputs is None:
            model = torch.nn.Module()
            model.forward = made
            return model
        if not isinstance(made, torch.nn.Module):
            is_class = isinstance(self._module.Model, type)
            advice = "" if is_class else "; if it is the computation itself, remove get_init_inputs"
            raise ReferenceFailed(f"Model is no torch.nn.Module{advice}")
        return made

    def _put(self, values: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            modules.restore_buffers(self._model, self._buffers)
            for name, held in self._model.state_dict().items():
                held.copy_(values[name])
            self._buffers = modules.buffers_of(self._model)

    def _make_inputs(self, seed: int) -> tuple[Arguments, ...]:
        """Return what the problem draws; twice if it can be read in two ways."""

        def make() -> tuple[Arguments, ...]:
            modules.seed_everything(seed)
            return arguments.readings(self._draw(), self._model.forward, _MAKER)

        if self.cuda:  # large inputs are made on the GPU if the module permits it
            try:
                with torch.device("cuda"):
                    return make()
            except torch.OutOfMemoryError:
                raise  # on the CPU they would differ, and have no more memory
            except Exception:  # noqa: BLE001 - a module that wants its inputs on the CPU
                pass
        return make()

    def _synchronise(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()


def _are_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(costs.same_bits(one[name], other[name]) for name in one)


def _own_tolerance(module: types.ModuleType) -> Tolerance | None:
    given = getattr(module, "TOLERANCE", None)
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ReferenceFailed(f"TOLERANCE must be a dict, not {type(given).__name__}")
    if unknown := sorted(str(key) for key in given.keys() - Tolerance.model_fields.keys()):
        known = ", ".join(Tolerance.model_fields)
        raise ReferenceFailed(f"TOLERANCE has the unknown key {unknown[0]!r}; it may have {known}")
    try:
        return Tolerance.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ReferenceFailed(f"TOLERANCE[{str(first['loc'][0])!r}]: {first['msg']}") from error


@contextlib.contextmanager
def blaming(what: str) -> Iterator[None]:
    """Turn any exception of the reference into :class:`ReferenceFailed`."""
    try:
        yield
    except ReferenceFailed:
        raise
    except (Exception, SystemExit) as error:
        lines = str(error).strip().splitlines()
        text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        if _NO_DRIVER in text:
            text = "its Triton kernels need a GPU, and this judge has none"
        text = texts.scrub(text, "/nonexistent")
        kind = NotEnoughMemory if memory_errors.explains_text(str(error)) else ReferenceFailed
        raise kind(f"{what}: {texts.clip(text, _REASON_CHARS)}") from error


@contextlib.contextmanager
def enough_memory(what: str, *, cuda: bool = True) -> Iterator[None]:
    """Turn a lack of memory for ``what`` into :class:`NotEnoughMemory`."""
    try:
        yield
    except (cuda_driver.DriverError, torch.OutOfMemoryError) as error:
        whose = "the GPU has" if cuda else "there is"
        raise NotEnoughMemory(f"{whose} too little free memory for {what} ({error})") from error
