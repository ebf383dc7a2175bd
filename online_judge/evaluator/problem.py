"""A reference with known facts about it, kept between the candidates for one problem."""

from collections.abc import Callable, Sequence
from functools import cached_property

import torch

from adaexplore.core.dialects.schema import Tolerance
from online_judge.checks.problem import ProblemFacts
from online_judge.common import cuda_driver, trees
from online_judge.common.modules import widened
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison, oracles, variants
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, blaming
from online_judge.protocol.shared_tensors import lay_out

_TRIAL = "facts"
_TRIVIAL, _TRIVIAL_OTHER = "degeneracy", "degeneracy, other inputs"
_LOOSE = 0.1
_CONSTANT = 1e-7
_SAMPLE = 2**22


class Problem:
    """State that all jobs on one reference share; each fact is found when it is first needed.

    A method that runs the reference raises :class:`ReferenceFailed` if that fails.
    """

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.call_bytes = 0  # most GPU memory held in a call of the reference; 0 before it is measured
        self.kept_bytes = 0  # of it that stays between calls: a copy of the weights
        self.timed_bytes = 0  # of both sides' inputs and outputs of a call
        self._empty = False
        self._trivial: dict[float | Tolerance, tuple[str, ...]] = {}

    @cached_property
    def cost(self) -> Cost:
        return self.reference.cost(self.reference.inputs(_TRIAL))

    def measure_memory(self) -> None:
        """Call the reference, and set ``call_bytes``, ``kept_bytes`` and ``timed_bytes``."""
        inputs = self.reference.inputs(_TRIAL)
        torch.cuda.reset_peak_memory_stats()
        outputs = self.reference.outputs(inputs, _TRIAL).leaves
        self.timed_bytes = 2 * (lay_out(costs.leaves_of(inputs))[1] + lay_out(outputs, contiguous=True)[1])
        held = [leaf for leaf in self.reference.weights.values() if leaf.is_cuda]
        self.kept_bytes = costs.nbytes(held)
        self.call_bytes = int(torch.cuda.max_memory_allocated()) - self.kept_bytes
        del inputs, outputs
        torch.cuda.empty_cache()

    @cached_property
    def _returns_unwritten(self) -> bool:
        """Whether the reference returns floating elements that it never wrote; two calls show it."""
        varied = self.reference.shapes_vary
        try:
            # in this order: memory that was filled may come again
            usual, filled = (self._nan_elements(fill=fill) for fill in (False, True))
        except (ReferenceFailed, cuda_driver.DriverError, torch.OutOfMemoryError):
            return False  # it fails on such memory, or there is too little
        finally:
            self.reference.shapes_vary = varied  # shapes may depend on what such memory holds
        pairs = list(zip(usual, filled, strict=False))
        return all(one.shape == other.shape for one, other in pairs) and any(
            bool((~one & other).any()) for one, other in pairs
        )

    def _nan_elements(self, *, fill: bool) -> list[torch.Tensor]:
        outputs = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL, fill=fill)
        with blaming("its outputs cannot be read"):  # such as an expanded tensor of 2**46 elements
            return [widened(leaf).isnan() for leaf in outputs.leaves]

    def mask_unwritten(self) -> None:
        """From now on leave out of comparisons what the reference never writes, if it returns such elements.

        Raises:
            ReferenceFailed: it writes nothing.
        """
        if self.reference.masks_unwritten or not self._returns_unwritten:
            return
        self.reference.mask_unwritten()
        if self._unwritten_share() == 1:
            raise ReferenceFailed("forward() returns elements that it never wrote, and no others")
        self._trivial.clear()
        self.__dict__.pop("_spreads", None)

    def unwritten(self) -> tuple[torch.Tensor, ...]:
        """Return masks of the elements that no call writes, one an output; empty unless they are masked.

        Raises:
            ReferenceFailed: they differ from call to call.
        """
        if not self.reference.masks_unwritten:
            return ()
        one, other = (
            self.reference.outputs(self.reference.inputs(trial), trial).unwritten
            for trial in (_TRIAL, _TRIVIAL)
        )
        if not all(torch.equal(*masks) for masks in zip(one, other, strict=True)):
            raise ReferenceFailed("forward() leaves some elements unwritten, not the same ones in each call")
        return one

    @cached_property
    def constant_inputs(self) -> bool:
        """Whether ``get_inputs`` gives the same contents under different seeds."""
        one, other = (trees.take_apart(self.reference.drawn(trial)) for trial in (_TRIVIAL, _TRIVIAL_OTHER))
        if one.leaves and not any(leaf.numel() for leaf in one.leaves):
            return False  # they have no contents
        return one.signature() == other.signature() and all(
            left.shape == right.shape and comparison.equals(left, right, 0.0)
            for left, right in zip(one.leaves, other.leaves, strict=True)
        )

    def trivial_answers(self, tolerance: float | Tolerance) -> tuple[str, ...]:
        """Return trivial answers that would pass within a tolerance.

        These are ``constant`` (the answer to other inputs), ``zeros``, ``mean`` (each output filled with the
        mean of the answer to other inputs), ``first-row`` (each output repeats its first row), ``input`` (an
        input as it is). All outputs must pass; empty for a sound problem.
        """
        if tolerance not in self._trivial:
            self._trivial[tolerance] = self._find_trivial_answers(tolerance)
        return self._trivial[tolerance]

    def _find_trivial_answers(self, tolerance: float | Tolerance) -> tuple[str, ...]:
        inputs = self.reference.inputs(_TRIVIAL)
        given = [leaf.clone() for leaf in costs.leaves_of(inputs)]
        wanted = self.reference.outputs(inputs, _TRIVIAL).leaves
        del inputs
        other = self.reference.outputs(self.reference.inputs(_TRIVIAL_OTHER), _TRIVIAL).leaves
        self._empty = not any(leaf.numel() for leaf in (*wanted, *other))
        answers: dict[str, Callable[[int, torch.Tensor], Sequence[torch.Tensor]]] = {
            "constant": lambda index, want: other[index : index + 1],
            "zeros": lambda index, want: [torch.zeros((), dtype=want.dtype, device=want.device)],
            "mean": lambda index, want: [_typical(leaf) for leaf in other[index : index + 1]],
            "first-row": lambda index, want: _first_row(want),
            "input": lambda index, want: given,
        }
        units = self.reference.units(wanted)
        return tuple(
            name
            for name, of in answers.items()
            if all(
                any(_passes(answer, want, tolerance, units[index]) for answer in of(index, want))
                for index, want in enumerate(wanted)
            )
        )

    @cached_property
    def _spreads(self) -> list[tuple[float, float, float]]:
        """Return unit, median size and spread of each floating output."""
        leaves = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL).leaves
        found = []
        for leaf, unit in zip(leaves, self.reference.units(leaves), strict=True):
            if leaf.is_floating_point():
                middle, spread = _middle_and_spread(leaf)
                found.append((unit, middle, spread))
        return found

    def looseness(self, tolerance: float | Tolerance) -> float:
        """Return a typical element's tolerance in standard deviations of its output; the largest of all."""
        return max(
            (
                float(comparison.limits(torch.tensor(middle, dtype=torch.float64), tolerance, unit)) / spread
                for unit, middle, spread in self._spreads
                if spread
            ),
            default=0.0,
        )

    def is_loose(self, tolerance: float | Tolerance) -> bool:
        """Return True if a tolerance says little: it exceeds a tenth of an output's standard deviation."""
        return self.looseness(tolerance) > _LOOSE

    def facts(self, tolerance: float | Tolerance) -> ProblemFacts:
        """Return the facts that make results on this problem say little at this tolerance."""
        return ProblemFacts(
            trivial_answers=self.trivial_answers(tolerance),
            constant_inputs=self.constant_inputs,
            empty=self._empty,
            tolerance=None if isinstance(tolerance, Tolerance) else tolerance,
            looseness=self.looseness(tolerance) if self.is_loose(tolerance) else None,
            unwritten=self._unwritten_share() if self.reference.masks_unwritten else None,
        )

    def _unwritten_share(self) -> float:
        masks = self.reference.outputs(self.reference.inputs(_TRIAL), _TRIAL).unwritten
        return sum(int(mask.sum()) for mask in masks) / sum(int(mask.numel()) for mask in masks)

    def outputs_if_finite(self, inputs: list[object], name: str) -> trees.Tree | None:
        """Return the reference's outputs on copies of inputs that it may refuse; None where it does."""
        return self._unless_refused(oracles.copied(inputs), name)

    def _unless_refused(self, inputs: list[object], name: str) -> trees.Tree | None:
        varied = self.reference.shapes_vary
        try:
            return self.reference.outputs(inputs, name)
        except NotEnoughMemory:
            raise  # a candidate may hold the memory
        except ReferenceFailed:
            if self.reference.cuda:
                with blaming("forward() fails"):
                    torch.cuda.synchronize()  # raises if the CUDA context is lost
            return None
        finally:
            self.reference.shapes_vary = varied  # inputs that are not drawn say nothing about timed ones

    def is_steady(
        self, inputs: list[object], name: str, outputs: trees.Tree, tolerance: float | Tolerance
    ) -> bool:
        """Return True if ``outputs`` stay within a tolerance when ``inputs`` are rounded to TF32.

        If not, a steep function may have magnified lower precision, so a wrong output says nothing about a
        candidate. Half of the tolerance is left for rounding within the reference.
        """
        rounded = [trees.map_leaves(value, variants.rounded) for value in inputs]
        found = self._unless_refused(rounded, name)
        return found is not None and self.agree(found, outputs, comparison.times(tolerance, 0.5))

    def agree(self, found: trees.Tree, outputs: trees.Tree, tolerance: float | Tolerance) -> bool:
        """Say whether two results of the reference are equal within a tolerance."""
        units = self.reference.units(outputs.leaves)
        return all(
            comparison.equals(one, other, tolerance, unit=unit)
            for one, other, unit in zip(found.leaves, outputs.leaves, units, strict=True)
        )


def _passes(answer: torch.Tensor, want: torch.Tensor, tolerance: float | Tolerance, unit: float) -> bool:
    fits = answer.dtype == want.dtype and (answer.dim() == 0 or answer.shape == want.shape)
    return fits and comparison.equals(answer, want, tolerance, unit=unit)


def _typical(leaf: torch.Tensor) -> torch.Tensor:
    """Return the mean of the finite elements in the output's dtype; the first element of whole numbers."""
    if not leaf.is_floating_point():
        return leaf.reshape(-1)[0] if leaf.numel() else leaf.new_zeros(())
    wide = widened(leaf)
    finite = torch.isfinite(wide)
    total = torch.where(finite, wide, 0.0).sum(dtype=torch.float64)
    return (total / finite.sum().clamp(min=1)).to(leaf.dtype)


def _first_row(want: torch.Tensor) -> list[torch.Tensor]:
    return [want[:1].expand_as(want)] if want.dim() > 1 and want.shape[0] > 1 else []


def _middle_and_spread(leaf: torch.Tensor) -> tuple[float, float]:
    """Return median size and standard deviation of finite elements; twice the size for a constant output."""
    flat = widened(leaf.reshape(-1))
    if flat.numel() > _SAMPLE:
        generator = torch.Generator(device=flat.device).manual_seed(0)
        flat = flat[torch.randint(flat.numel(), (_SAMPLE,), generator=generator, device=flat.device)]
    some = flat[torch.isfinite(flat)].double()
    if not some.numel():
        return 0.0, 0.0
    middle, spread = float(some.abs().median()), float(some.std(unbiased=False))
    return middle, spread if spread > _CONSTANT * middle else middle
