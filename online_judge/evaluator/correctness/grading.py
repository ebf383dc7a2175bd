"""The precision that the outputs of one call reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from adaexplore.core.wire import Tier
from online_judge.common import trees
from online_judge.evaluator.correctness import deviation, oracles, tiers
from online_judge.evaluator.correctness.tiers import OracleKind
from online_judge.evaluator.problem import Problem
from online_judge.protocol.precision import Error, Graded, Limit, meets, worst

_LOOSER: tuple[Tier, ...] = ("tf32", "half")
_HARDLY = 4.0


class Grading:
    """Grades one call of a candidate; asks the reference for more only as far as that is needed."""

    def __init__(self, problem: Problem, inputs: list[Any], trial: str, expected: trees.Tree) -> None:
        """Prepare.

        Args:
            problem: the reference and its cost.
            inputs: of the call; they stay.
            trial: names the call, which decides its seed.
            expected: what the reference makes of ``inputs`` in the task's precision.

        Raises:
            ReferenceFailed: the reference raises.
        """
        self._reference = problem.reference
        self._inputs = inputs
        self._trial = trial
        oracle = self._reference.oracle(inputs, trial)
        self._kind: OracleKind = self._reference.oracle_kind or "fp32"
        self._truth = (expected if oracle is None else oracle).leaves
        self._emulable = oracle is not None and self._reference.dtype == "fp32"
        eager = expected
        if self._reference.cuda and _tf32_is_allowed():
            with oracles.highest_precision():
                eager = self._reference.outputs(oracles.copied(inputs), trial)
        self._eager = self._errors(eager)
        depth = problem.cost.depth
        self._limits: list[dict[Tier, Limit]] = [
            {"strict": tiers.strict_limit(each, depth=depth, oracle=self._kind)} for each in self._eager
        ]
        self._emulated = False

    def grade(self, got: Sequence[torch.Tensor]) -> tuple[Graded, ...]:
        """Grade the outputs ``got``, of the shapes and dtypes of the expected ones.

        Raises:
            ReferenceFailed: the reference raises.
        """
        errors = [deviation.error(leaf, true) for leaf, true in zip(got, self._truth, strict=True)]
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
        return [
            tiers.reached(error, eager, limits)
            for error, eager, limits in zip(errors, self._eager, self._limits, strict=True)
        ]

    def _allow(self, tier: Tier) -> None:
        """Find the limits of a looser tier."""
        rounded = self._reference.emulated(self._inputs, self._trial, tier) if self._emulable else None
        lossy = self._lossy() if tier == "tf32" or rounded is None else None
        self._emulated = rounded is not None
        if rounded is None:
            for index, (limits, eager) in enumerate(zip(self._limits, self._eager, strict=True)):
                strict = limits["strict"]
                limits[tier] = tiers.constant_limit(tier, strict, eager, lossy[index] if lossy else None)
            return
        for index, error in enumerate(self._errors(rounded)):
            known = [error] if lossy is None else [error, lossy[index]]
            strict = self._limits[index]["strict"]
            limit = tiers.emulated_limit(strict, known)
            if limit.rms < _HARDLY * strict.rms:  # its products hardly count: others may be products as well
                limit = tiers.constant_limit(
                    tier, strict, self._eager[index], lossy[index] if lossy else None
                )
                self._emulated = False
            self._limits[index][tier] = limit

    def _lossy(self) -> list[Error] | None:
        """Errors of PyTorch itself with TF32 on, where it has that."""
        if not self._emulable or not self._reference.cuda:
            return None
        with oracles.tf32_allowed():
            return self._errors(self._reference.outputs(oracles.copied(self._inputs), self._trial))

    def _errors(self, tree: trees.Tree) -> list[Error]:
        return [deviation.error(leaf, true) for leaf, true in zip(tree.leaves, self._truth, strict=True)]


def _tf32_is_allowed() -> bool:
    return bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
