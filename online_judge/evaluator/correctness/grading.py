"""The precision that the outputs of one call reach."""

from collections.abc import Sequence

import torch

from adaexplore.core.wire import Tier
from online_judge.checks.facts.precision import Error, Graded, Limit, meets, worst
from online_judge.common import trees
from online_judge.evaluator.correctness import deviation, oracles, tiers
from online_judge.evaluator.correctness.tiers import OracleKind
from online_judge.evaluator.problem import Problem

_LOOSER: tuple[Tier, ...] = ("tf32", "half")
_HARDLY = 4.0


class Grading:
    """Grade one call of a candidate; run the reference again only if needed."""

    def __init__(self, problem: Problem, inputs: list[object], trial: str, expected: trees.Tree) -> None:
        """Find the error of the reference: of ``expected``, what it makes of ``inputs`` as they are."""
        self._problem = problem
        self._reference = problem.reference
        self._inputs = inputs
        self._trial = trial
        oracle = self._reference.oracle(inputs, trial)
        kind: OracleKind = self._reference.oracle_kind or "fp32"
        self._truth = (expected if oracle is None else oracle).leaves
        self._emulable = oracle is not None and self._reference.arithmetic == "fp32"
        eager = expected
        allowed = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
        if self._reference.cuda and allowed:
            with oracles.highest_precision():
                eager = self._reference.outputs(oracles.copied(inputs), trial)
        self._eager = self._errors(eager.leaves)
        depth = problem.cost.depth
        self._limits: list[dict[Tier, Limit]] = [
            {"strict": tiers.strict_limit(each, depth=depth, oracle=kind)} for each in self._eager
        ]
        self._emulated = False

    def grade(self, got: Sequence[torch.Tensor]) -> tuple[Graded, ...]:
        """Grade the outputs ``got``, of the shapes and dtypes of the expected ones."""
        errors = self._errors(got)
        reached = self._reached(errors)
        for tier in _LOOSER:
            if meets(worst(reached), tier):
                break
            self._allow(tier)
            reached = self._reached(errors)
        return tuple(
            Graded(tier, error, dict(limits), self._emulated)
            for tier, error, limits in zip(reached, errors, self._limits, strict=True)
        )

    def _reached(self, errors: Sequence[Error]) -> list[Tier]:
        return [tiers.reached(*each) for each in zip(errors, self._eager, self._limits, strict=True)]

    def _allow(self, tier: Tier) -> None:
        emulated = self._reference.emulated(self._inputs, self._trial, tier) if self._emulable else None
        rounded = None if emulated is None else self._errors(emulated.leaves)
        lossy = self._lossy() if tier == "tf32" or rounded is None else None
        self._emulated = rounded is not None
        for index, (limits, eager) in enumerate(zip(self._limits, self._eager, strict=True)):
            strict = limits["strict"]
            own = None if lossy is None else lossy[index]
            if rounded is not None:
                known = [rounded[index]] if own is None else [rounded[index], own]
                limits[tier] = tiers.emulated_limit(strict, known)
                if limits[tier].rms >= _HARDLY * strict.rms:
                    continue
                self._emulated = False  # rounding hardly counts: other products may exist
            limits[tier] = tiers.constant_limit(tier, strict, eager, own)

    def _lossy(self) -> list[Error] | None:
        if not self._emulable or not self._reference.cuda:
            return None
        with oracles.tf32_allowed():
            found = self._problem.outputs_if_finite(self._inputs, self._trial)
        return None if found is None else self._errors(found.leaves)

    def _errors(self, leaves: Sequence[torch.Tensor]) -> list[Error]:
        return [deviation.error(leaf, true) for leaf, true in zip(leaves, self._truth, strict=True)]
