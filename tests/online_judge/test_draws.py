"""Draws of other weights, with a scripted candidate."""

from typing import Any

import pytest
import torch

from online_judge.checks.facts.endings import FarOff
from online_judge.common import trees
from online_judge.evaluator.correctness.draws import Draws
from online_judge.evaluator.dialogue import CandidateFailed
from online_judge.evaluator.reference import Reference

from .linear import Candidate, relu, trials_with
from .sources import REFERENCE

WAVES = REFERENCE.replace("torch.relu(self.linear(x))", "torch.sin(250 * self.linear(x))")


def stale(candidate: Candidate, source: str = REFERENCE, *, loose: bool, loads: bool = True) -> bool:
    """Make all draws; the reference must be restored in any case."""
    with trials_with(candidate, source) as (trials, problem):
        before = problem.reference.outputs(problem.reference.inputs("one"), "one")
        try:
            return bool(Draws(trials, problem, "job", loose=loose, loads=loads).run())
        finally:
            after = problem.reference.outputs(problem.reference.inputs("one"), "one")
            assert torch.equal(before.leaves[0], after.leaves[0])


@pytest.mark.parametrize("loose", [True, False])
def test_candidate_that_follows_the_weights_is_not_stale(loose: bool) -> None:
    candidate = Candidate()
    assert not stale(candidate, loose=loose)
    assert candidate.calls == (3 if loose else 1)


def test_candidate_gets_its_own_weights_back() -> None:
    candidate = Candidate()
    with trials_with(candidate, REFERENCE) as (trials, problem):
        Draws(trials, problem, "job", loose=True, loads=True).run()
        assert torch.equal(candidate.weights["linear.weight"], problem.reference.weights["linear.weight"])


@pytest.mark.parametrize("far_off", [False, True])
def test_reference_works_on_its_own_time(monkeypatch: pytest.MonkeyPatch, *, far_off: bool) -> None:
    def watch(name: str) -> None:
        method = getattr(Reference, name)

        def watched(*args: Any) -> Any:
            whose.append((name, candidate.told[-1][0]))
            return method(*args)

        monkeypatch.setattr(Reference, name, watched)

    whose: list[tuple[str, str]] = []
    candidate = Candidate()
    if far_off:  # once, so that both sides are constructed again
        candidate.compute = lambda *given: relu(*given) + (9.0 if candidate.calls == 2 else 0.0)
    with trials_with(candidate, REFERENCE) as (trials, problem):
        for name in ("inputs", "outputs", "reweigh", "redraw", "restore_weights"):
            watch(name)
        Draws(trials, problem, "job", loose=True, loads=True).run()
    assert {name for name, _ in whose} >= {"inputs", "outputs", "reweigh", "restore_weights"}
    assert (("redraw", "reference") in whose) is far_off
    assert {side for _, side in whose} == {"reference"}


def test_reference_runs_once_at_another_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str | int] = []
    outputs = Reference.outputs

    def noted(self: Reference, inputs: list[Any], trial: str | int) -> trees.Tree:
        calls.append(trial)
        return outputs(self, inputs, trial)

    monkeypatch.setattr(Reference, "outputs", noted)
    assert not stale(Candidate(), loose=True)
    assert (calls.count("job:weights:2"), calls.count("job:weights:0.5")) == (1, 1)


def test_nonfinite_outputs_at_other_weights_are_wrong() -> None:
    candidate = Candidate()
    candidate.compute = lambda *given: relu(*given) * (1.0 if candidate.calls == 1 else float("nan"))
    with pytest.raises(CandidateFailed):
        stale(candidate, loose=True)


def test_kept_copy_of_the_weights_is_stale() -> None:
    assert stale(Candidate(follows=False), loose=False)


def test_float8_outputs_are_compared_at_other_scales() -> None:
    source = REFERENCE.replace("self.linear(x))", "self.linear(x)).to(torch.float8_e4m3fn)")
    candidate = Candidate(lambda *given: relu(*given).to(torch.float8_e4m3fn))
    assert not stale(candidate, source, loose=True)
    assert candidate.calls == 3


@pytest.mark.parametrize("loose", [True, False])
def test_weights_that_the_reference_refuses_show_nothing(loose: bool) -> None:
    layer = "nn.Linear(features, features)\n"
    source = REFERENCE.replace(layer, f"{layer}        self.kept = [self.linear.weight.detach().clone()]\n")
    refuses = "assert torch.equal(self.kept[0], self.linear.weight)\n        return torch.relu("
    candidate = Candidate()
    assert not stale(candidate, source.replace("return torch.relu(", refuses), loose=loose)
    assert candidate.calls == 0


@pytest.mark.parametrize(
    ("gain", "flagged"), [("ones(16)", True), ("zeros(1)", True), ("ones(1)", False), ("randn(16)", False)]
)
def test_constant_weight_without_a_place_is_stale(gain: str, *, flagged: bool) -> None:
    source = REFERENCE.replace("torch.relu(", "torch.relu(self.gain * ").replace(
        "self.linear = ", f"self.gain = nn.Parameter(torch.{gain}); self.linear = "
    )
    assert source.count("gain") == 2
    linear = [[16, 16], [16]]
    assert stale(Candidate(shapes=linear), source, loose=False) is flagged
    assert stale(Candidate(shapes=[]), source, loose=False) is flagged
    assert not stale(Candidate(shapes=[*linear, [16 if "16" in gain else 1]]), source, loose=False)


@pytest.mark.parametrize("call", [1, 2, 3])
def test_failure_leaves_the_reference_as_it_was(call: int) -> None:
    with pytest.raises(CandidateFailed):
        stale(Candidate(fails_at=call), loose=True)


def test_weightless_candidate_is_called_only_under_loose_tolerance() -> None:
    strict, loose = Candidate(), Candidate()
    assert not stale(strict, loose=False, loads=False)
    assert not stale(loose, loose=True, loads=False)
    assert (strict.calls, loose.calls) == (0, 3)


def test_small_error_at_another_scale_shows_nothing() -> None:
    """The error exceeds the tolerance, which is not meant for that scale, but not half of the spread."""
    candidate = Candidate()
    candidate.compute = lambda *given: relu(*given) + (0.15 if candidate.calls == 2 else 0.0)
    assert not stale(candidate, loose=True)
    candidate = Candidate()
    candidate.compute = lambda *given: relu(*given) + (0.15 if candidate.calls == 1 else 0.0)
    assert stale(candidate, loose=True)


def test_far_off_outputs_are_wrong_at_any_scale() -> None:
    candidate = Candidate()
    candidate.compute = lambda *given: relu(*given) if candidate.calls == 1 else relu(*given).flip(0)
    with pytest.raises(CandidateFailed) as failed:
        stale(candidate, loose=True)
    assert isinstance(failed.value.ending, FarOff)


def test_errors_within_problem_tolerance_are_not_far_off() -> None:
    def spoiled(x: Any, weight: Any, bias: Any) -> Any:
        y = relu(x, weight, bias)
        y[0, :6] = 1e3
        return y

    with pytest.raises(CandidateFailed):
        stale(Candidate(spoiled), loose=True)
    own = "TOLERANCE = {'max_atol': 0.5, 'max_rtol': 0.0, 'required_matched_ratio': 0.95}\n"
    assert not stale(Candidate(spoiled), REFERENCE + own, loose=True)
    shifted = Candidate(lambda *given: relu(*given).flip(0))
    with pytest.raises(CandidateFailed):  # within the tolerance of each element, and nowhere near
        stale(shifted, REFERENCE + own.replace("0.5,", "5.0,"), loose=True)


def test_half_precision_errors_are_not_far_off() -> None:
    def low(t: Any) -> Any:
        return ((t.contiguous().view(torch.int32) >> 16) << 16).view(torch.float32)

    def waves(x: Any, weight: Any, bias: Any) -> Any:
        if candidate.calls > 1:
            x, weight = low(x), low(weight)
        return torch.sin(250 * torch.nn.functional.linear(x, weight, bias))

    candidate = Candidate(waves)
    assert not stale(candidate, WAVES, loose=True)
