"""Call a candidate on hidden inputs and compare it with the reference."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import torch

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.status import Stage
from online_judge.checks.facts.endings import OtherWeights, WrongForm, WrongOutputs, WrongValue
from online_judge.checks.facts.kernels import KernelShare, Launches
from online_judge.checks.facts.precision import Graded
from online_judge.common import cuda_driver, printable, trees
from online_judge.common.modules import bits
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison, deviation, oracles
from online_judge.evaluator.correctness.grading import Grading
from online_judge.evaluator.dialogue import CandidateFailed, Dialogue
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import ReferenceFailed
from online_judge.protocol.orders import Construct, Forward, Forwarded, ForwardMode, Reweigh
from online_judge.protocol.shared_tensors import Parcel, SharedBlocks, SharedTensors, lay_out, pack

_POISON = 0xFF
_TOLD_APART = 1e-3  # of the output's spread; results further apart certainly differ
_NEARER = 0.2
# an output may span this many times the memory of its elements
_PADDING = 4
_MAX_TEXT = 200
_CALLS_OF_CANDIDATE = 4
"""Memory that a candidate may need, in inputs and outputs of a call: a copy of the inputs, outputs of two
calls, the intermediate results of one, and the evaluator's place for outputs."""


Shape = tuple[int, ...]
Strides = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Called:
    """One call whose outputs equal the reference's.

    ``strides``, ``launches``, ``aliases``, ``reused`` and ``share`` are claims. ``changed`` holds the inputs
    after the call, if it changed them. ``grades`` and ``outputs`` are empty unless asked for.
    """

    expected: trees.Tree
    changed: list[object] | None
    grades: tuple[Graded, ...]
    strides: Strides
    outputs: tuple[torch.Tensor, ...]
    launches: Launches
    aliases: bool
    reused: bool
    share: KernelShare | None


class WrongValues(CandidateFailed):
    """Outputs of the right form with wrong values; ``outputs`` are copies of them."""

    def __init__(self, wrong: WrongOutputs, outputs: tuple[torch.Tensor, ...], expected: trees.Tree) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.outputs = outputs
        self.expected = expected


@dataclass(eq=False)
class Trials:
    """Calls one candidate; large shared memory is freed after each call, the rest by :meth:`free`.

    Its methods raise what :meth:`Dialogue.ask` raises, and :class:`ReferenceFailed`. When they return, the
    reference's time runs.
    """

    _dialogue: Dialogue
    _problem: Problem
    _tolerance: float | Tolerance
    _guard: Callable[[], AbstractContextManager[object]]  # holds the device, shared, for use here and now

    def __post_init__(self) -> None:
        self._reference = self._problem.reference
        self._cuda = self._reference.cuda
        self._blocks = SharedBlocks(cuda=self._cuda)

    def use_reference_time(self) -> None:
        self._dialogue.clock("reference", Stage.FORWARD.value)

    def put_back(self) -> None:
        """Take back the last call's shared memory; the candidate process must not use it any more."""
        self._blocks.put_back()

    def free(self) -> None:
        """Give back the memory shared with the candidate process, which must be gone."""
        self._blocks.free()

    def construct(
        self, *, load: bool, weights: dict[str, torch.Tensor] | None = None, seed: int | None = None
    ) -> bool:
        """Have the candidate constructed; return True if loading the weights changed its own.

        Weights and seed are the reference's by default; the weights are loaded only with ``load``.
        """
        with self._guard():
            self._dialogue.clock("reference", Stage.CONSTRUCT.value)
            shared, parcel = self._share(self._reference.weights if weights is None else weights, "Model()")
        order = Construct(
            load=load,
            init_inputs=self._reference.init_inputs,
            weights=parcel,
            seed=self._reference.construct_seed if seed is None else seed,
            dtype=self._reference.dtype,
            direction=self._reference.direction,
            names=self._reference.names,
        )
        answer = self._dialogue.ask(Stage.CONSTRUCT, order, [shared])
        self._dialogue.clock("reference", Stage.CONSTRUCT.value)
        self.put_back()
        return answer.get("changed") is True

    def reweigh(self, weights: dict[str, torch.Tensor]) -> Counter[Shape] | None:
        """Give the candidate other weights in place; where it has no place for them, return what it claims.

        That is how often each shape occurs among its own weights.
        """
        shared, parcel = self._share(weights, "Model()")
        answer = self._dialogue.ask(Stage.FORWARD, Reweigh(parcel), [shared])
        self.use_reference_time()
        self.put_back()
        if answer.get("loaded") is True:
            return None
        shapes: object = answer.get("shapes")
        listed = [shape for shape in shapes if isinstance(shape, list)] if isinstance(shapes, list) else []
        return Counter(tuple(size for size in shape if isinstance(size, int)) for shape in listed)

    def tune(self, name: str) -> None:
        """Have a first call made, in which kernels are compiled and tuned; its outputs are ignored."""
        with self._guard():
            self.use_reference_time()
            sent, parcel = self._share(self._reference.inputs(name))
            unused, nothing = self._share([])
        order = Forward(parcel, nothing, self._reference.call_seed(name))
        self._dialogue.ask(Stage.FORWARD, order, [sent, unused], tuning=True)
        self.use_reference_time()
        self.put_back()

    def call(
        self,
        name: str,
        inputs: list[object] | None = None,
        *,
        mode: ForwardMode = "plain",
        graded: bool = False,
        kept: bool = False,
        scale: Sequence[float] = (),
        rival: trees.Tree | None = None,
        expected: trees.Tree | None = None,
    ) -> Called:
        """Call it once with inputs that the candidate process has not seen.

        Args:
            name: of the call, which decides its seed.
            inputs: by default the reference draws them under ``name``, as a graded call requires; the
                reference may change them.
            mode: what the candidate process observes.
            graded: whether to grade the precision.
            kept: whether to return the outputs.
            scale: factor on the absolute tolerance of each output.
            rival: outputs that are wrong even if they lie within the tolerance.
            expected: the reference's outputs, if known from an equal call.

        Raises:
            WrongValues: its outputs have wrong values.
        """
        self.use_reference_time()
        if inputs is None:
            inputs = self._reference.inputs(name)
        sent, parcel = self._share(inputs)
        expected = self._reference.outputs(inputs, name) if expected is None else expected
        places, nbytes = lay_out(expected.leaves, contiguous=True)
        if self._cuda:  # the candidate may need the reference's intermediate memory
            cuda_driver.free_cache_if_scarce(_CALLS_OF_CANDIDATE * (sent.nbytes + nbytes))
        received = self._blocks.take(nbytes)
        received.fill(_POISON, nbytes)
        place_for = received.parcel(expected.shape, places)
        order = Forward(parcel, place_for, self._reference.call_seed(name), mode)
        answer = self._dialogue.ask(Stage.FORWARD, order, [sent, received])
        self.use_reference_time()
        strides = _check_form(answer, expected, cuda=self._cuda)
        got = [received.view(place) for place in places]
        for leaf, mask in zip(got, expected.unwritten, strict=False):  # of most references there are none
            bits(leaf).masked_fill_(mask, 0)
        wrong = self._wrong_values(got, expected, scale)
        if wrong is None and rival is not None and _nearer(got, rival.leaves, expected.leaves):
            wrong = OtherWeights()
        if wrong is not None:
            outputs = tuple(leaf.clone() for leaf in got)
            self.put_back()
            raise WrongValues(wrong, outputs, expected)
        changed = None
        if not self._reference.writes_inputs and not _same(parcel, sent, inputs):
            views = tuple(sent.view(place) for place in parcel.places)
            changed = oracles.copied(trees.put_together(parcel.shape, views))
        grades: tuple[Graded, ...] = ()
        if graded:
            given = self._reference.inputs(name) if self._reference.writes_inputs else inputs
            grades = Grading(self._problem, given, name, expected).grade(got)
        outputs = tuple(leaf.clone() for leaf in got) if kept else ()
        self.put_back()
        return Called(
            expected,
            changed,
            grades,
            strides,
            outputs,
            launches=Launches.from_claim(answer.get("launches")),
            aliases=answer.get("aliases") is True,
            reused=answer.get("reused") is True,
            share=KernelShare.from_claim(answer.get("share")),
        )

    def _wrong_values(
        self, got: Sequence[torch.Tensor], expected: trees.Tree, scale: Sequence[float]
    ) -> WrongOutputs | None:
        units = self._reference.units(expected.leaves)
        for index, (leaf, want) in enumerate(zip(got, expected.leaves, strict=True)):
            unit = max(units[index], scale[index]) if scale else units[index]
            found = comparison.difference(leaf, want, self._tolerance, unit=unit)
            if found is not None:
                several = len(got) > 1
                name = self._reference.output_name(expected, index)
                return WrongValue(difference=found, output=index if several else None, name=name)
        return None

    def _share(self, value: object, maker: str = "get_inputs()") -> tuple[SharedTensors, Parcel]:
        try:
            return pack(value, cuda=self._cuda, take=self._blocks.take)
        except trees.UnsupportedTree as error:
            raise ReferenceFailed(f"{maker} gives {error}, which cannot be judged") from error


def _check_form(answer: Forwarded, expected: trees.Tree, *, cuda: bool) -> Strides:
    """Compare the claimed structure, shapes, dtypes and devices; return the strides.

    The data must confirm all but the devices.
    """
    claimed: object = answer.get("leaves")
    structure = expected.signature()
    if answer.get("structure") != structure or not isinstance(claimed, list):
        raise _wrong_form("structure", structure, answer.get("structure"))
    claimed += [None] * len(expected.leaves)  # a missing claim is wrong
    pairs = list(zip(claimed, expected.leaves, strict=False))
    several = len(pairs) > 1
    for index, (claim, want) in enumerate(pairs):
        got = claim[0] if isinstance(claim, list) and len(claim) == 4 else None
        if got != list(want.shape):
            raise _wrong_form("shape", list(want.shape), got, index if several else None)
    for index, (claim, want) in enumerate(pairs):
        if claim[1] != str(want.dtype):
            raise _wrong_form("dtype", want.dtype, claim[1], index if several else None)
    for (claim, _), device in zip(pairs, expected.devices, strict=True):
        if cuda and claim[2] != device:
            raise _wrong_form("device", device, claim[2])
    return tuple(_strides(claim[3], want) for claim, want in pairs)


def _wrong_form(
    part: Literal["structure", "shape", "dtype", "device"],
    expected: object,
    got: object,
    output: int | None = None,
) -> CandidateFailed:
    wrong = WrongForm(part=part, expected=_short(expected), got=_short(got), output=output)
    return CandidateFailed(wrong)


def _nearer(
    got: Sequence[torch.Tensor], rival: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]
) -> bool:
    """Return True if outputs are far nearer to the rival ones than to the expected ones."""
    for leaf, other, want in zip(got, rival, expected, strict=True):
        from_want, from_other = deviation.error(leaf, want).rms, deviation.error(leaf, other).rms
        if from_want > _TOLD_APART and from_other < _NEARER * from_want:
            return True
    return False


def _same(parcel: Parcel, shared: SharedTensors, inputs: list[object]) -> bool:
    """Return True if the sent tensors still equal ``inputs``."""
    return all(
        costs.same_bits(shared.view(place), leaf)
        for place, leaf in zip(parcel.places, trees.take_apart(inputs).leaves, strict=True)
    )


def _strides(claim: object, want: torch.Tensor) -> tuple[int, ...]:
    """Return the strides that a candidate process claims of an output; contiguous ones if impossible."""
    usual = tuple(torch.empty(want.shape, device="meta").stride())
    if not isinstance(claim, list) or len(claim) != want.dim():
        return usual
    if not all(type(stride) is int and 0 <= stride < 2**62 for stride in claim):
        return usual
    last = sum((size - 1) * stride for size, stride in zip(want.shape, claim, strict=True))
    return tuple(claim) if last <= _PADDING * want.numel() else usual


def _short(value: object) -> str:
    text = printable.text(str(value))
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} [...]"
