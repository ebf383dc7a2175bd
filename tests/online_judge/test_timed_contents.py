"""Right candidates are not taken for cheats because of the contents that timed inputs have."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.check import Observation
from online_judge.checks.correctness.other_inputs import VariantFailed
from online_judge.checks.facts.endings import OtherWeights
from online_judge.checks.timing.timed_outputs import TimedOutputLate, TimedOutputWrong
from online_judge.common import modules
from online_judge.evaluator import evaluation
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.evaluator.timing import setup
from online_judge.evaluator.timing.interleaved import Outcome
from online_judge.evaluator.trials import WrongValues
from online_judge.protocol.orders import Block as BlockOrder

from .test_race import (
    DROPOUT,
    TEMPLATE,
    Candidate,
    Clock,
    clock,
    driver_of_cpu_memory,
    flags,
    one_thread,
    race,
)

__all__ = ["clock", "driver_of_cpu_memory", "one_thread"]  # fixtures

SYMMETRIC = TEMPLATE.format(body="return x @ x", size="64, 64").replace(
    "return [torch.randn(64, 64)]", "half = torch.randn(64, 64)\n    return [half + half.T]"
)
RAGGED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, lengths, longest):
        return (x[:, :longest] * (torch.arange(longest) < lengths[:, None])).sum(1)

def get_inputs():
    lengths = torch.randint(1, 64, (4,))
    return [torch.randn(4, 64), lengths, int(lengths.max())]

def get_init_inputs():
    return []
"""
WEIGHT = "weight = torch.sin(torch.arange(256 * 64, dtype=torch.float32) * 12.9898).view(256, 64)"
ROUTER = TEMPLATE.format(body=f"{WEIGHT}\n        return torch.topk(x @ weight, 2).indices", size="2048, 256")


def times_by_transpose(x: torch.Tensor) -> torch.Tensor:
    return x @ x.T


@pytest.mark.parametrize("drawn", [False, True])
def test_drawn_inputs_have_the_structure_of_draws(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, *, drawn: bool
) -> None:
    pool = setup.InputPool

    def made(*args: Any, **options: Any) -> setup.InputPool:
        found = pool(*args, **options)
        assert not drawn or found.draw_anew() > 4
        return found

    monkeypatch.setattr(setup, "InputPool", made)
    found = flags(race(Candidate(clock, times_by_transpose), SYMMETRIC))
    assert found == (set() if drawn else {"timed_output_wrong"})


def test_numbers_beside_tensors_fit_them(clock: Clock) -> None:
    def forward(x: torch.Tensor, lengths: torch.Tensor, longest: int) -> torch.Tensor:
        assert int(lengths.max()) == longest
        return (x * (torch.arange(64) < lengths[:, None])).sum(1)

    candidate = Candidate(clock)
    monkey: Any = candidate
    monkey.forward = forward
    assert flags(race(candidate, RAGGED)) == set()


def router(x: torch.Tensor) -> torch.Tensor:
    scope: dict[str, Any] = {"torch": torch}
    exec(WEIGHT, scope)
    found: torch.Tensor = torch.topk(x.double() @ scope["weight"].double(), 2).indices
    return found


def test_near_ties_of_indices_are_no_cheat(clock: Clock) -> None:
    reference = Reference(ROUTER, Seeds(b"key"), "fp32", cuda=False)
    inputs: Any = [reference.inputs(trial) for trial in range(30)]
    rounded = [int((reference.outputs(given, 0).leaves[0] != router(*given)).sum()) for given in inputs]
    assert sum(rounded) > 0  # there are such ties
    assert flags(race(Candidate(clock, router), ROUTER)) == set()


def test_skipped_rare_elements_are_a_cheat(clock: Clock) -> None:
    one_hot = TEMPLATE.format(body="return nn.functional.one_hot(x.argmax(1), 4000)", size="64, 4000")
    found = flags(race(Candidate(clock, lambda x: torch.zeros(64, 4000, dtype=torch.int64)), one_hot))
    assert found == {"timed_output_wrong"}


def test_seeding_is_no_time_of_a_call(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = modules.seed_everything

    def seed_slowly(number: int) -> None:
        clock.wait(0.05)
        seed(number)

    class Seeded(Candidate):
        def run(self, order: BlockOrder) -> Any:
            if order.kind == "plain":  # in others flushes hide it
                clock.wait(0.05 * order.calls)
            return super().run(order)

        def fill_in(self, number: int) -> None:
            order = self.blocks[-1]
            assert order.seed is not None
            seed(order.seed + number)
            super().fill_in(number)

    monkeypatch.setattr(modules, "seed_everything", seed_slowly)
    candidate = Seeded(clock, lambda x: torch.nn.functional.dropout(x, 0.5, True), call_ms=[0.05])
    outcome = race(candidate, DROPOUT, reference_ms=0.05)
    assert outcome.candidate.e2e_ms < 0.12
    assert outcome.reference.e2e_ms < 0.12


class Timed(Evaluation):
    """Its other checks find nothing."""

    def _check_again(self) -> None:
        """Do nothing."""

    def _observe(self) -> None:
        """Do nothing."""


WRONG = TimedOutputWrong(round=0, call=None, wrong=1, total=1, largest=1.0)
LATE = TimedOutputLate(round=0, call=0)
MIXED = VariantFailed(variant="mixed", ending=OtherWeights())


@pytest.mark.parametrize(
    ("timings", "right_on_mixtures", "drawn", "found"),
    [
        ([[]], False, True, ([], [])),
        ([[WRONG], []], False, True, ([], [MIXED])),
        ([[WRONG], [WRONG]], False, True, ([WRONG], [MIXED])),
        ([[WRONG]], True, True, ([WRONG], [])),  # only timed calls are wrong
        ([[WRONG]], False, False, ([WRONG], [MIXED])),  # draws take too long
        ([[LATE, WRONG]], False, True, ([LATE, WRONG], [])),
    ],
)
def test_only_needed_structure_gets_a_second_timing(
    monkeypatch: pytest.MonkeyPatch,
    timings: list[list[Observation]],
    right_on_mixtures: bool,
    drawn: bool,
    found: tuple[list[Observation], list[Observation]],
) -> None:
    class Timing:
        def __init__(self, *parts: object) -> None:
            self.observations = timings.pop(0)

        def run(self) -> Outcome:
            return Outcome()

        def audit(self, outcome: Outcome) -> None:
            outcome.observations += self.observations

    def nothing(*args: object, **options: object) -> None:
        return None

    def call(name: str, inputs: object = None, **options: object) -> Any:
        if inputs == ["mixed"] and not right_on_mixtures:
            raise WrongValues(OtherWeights(), (), cast(Any, None))
        return SimpleNamespace(share=None)

    pool = SimpleNamespace(redraws=False, copy_of=lambda number: ["mixed"])
    made = SimpleNamespace(pool=pool, close=nothing, free=nothing, draw_anew=lambda: drawn)
    monkeypatch.setattr(evaluation, "InterleavedTiming", Timing)
    monkeypatch.setattr(evaluation, "TimingSetup", lambda *args, **options: made)
    monkeypatch.setattr(evaluation.gpu_state, "snapshot", nothing)
    monkeypatch.setattr(evaluation, "copy_extra_ms", nothing)
    monkeypatch.setattr(evaluation, "measured", lambda outcome, *rest, **options: outcome)
    held: Any = contextlib.nullcontext(SimpleNamespace(quiet=True))
    leases = SimpleNamespace(timing_memory=contextlib.nullcontext, hold=lambda *, exclusive: held)
    reference = SimpleNamespace(
        cuda=True, tolerance=None, stochastic=False, call=nothing, seeds=SimpleNamespace(of=lambda *names: 1)
    )
    problem = SimpleNamespace(reference=reference, unwritten=tuple)
    job = SimpleNamespace(
        request=EvaluationRequest(measure_performance=True),
        name="job",
        recorded_ms=None,
        clean_ms=None,
        hardware="",
    )
    spec = SimpleNamespace(visible_devices="0", timing_cores=())
    parts: Any = (SimpleNamespace(clock=nothing), problem, job, spec, leases, nothing)
    subject = Timed(*parts)
    subject._observations = []
    monkeypatch.setattr(subject._trials, "call", call)
    monkeypatch.setattr(subject._trials, "put_back", nothing)
    outcome: Any = subject._measure([], ())
    assert (outcome.observations, subject._observations) == found
    assert timings == []
