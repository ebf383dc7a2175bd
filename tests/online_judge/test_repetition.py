"""Equal calls that differ, with a scripted candidate."""

from typing import Any

import pytest
import torch

from adaexplore.core.judging.status import Status
from online_judge.evaluator.correctness import repetition
from online_judge.evaluator.correctness.repetition import REPEATS
from online_judge.evaluator.dialogue import CandidateFailed
from online_judge.evaluator.trials import WrongValues
from online_judge.verdict.endings import explain

from .linear import Candidate, relu, trials_with
from .sources import REFERENCE

ONES = REFERENCE.replace("torch.relu(self.linear(x))", "torch.ones_like(x)")


def differ(candidate: Candidate, source: str = REFERENCE) -> bool:
    """Return whether equal calls differ, as far as rounding explains."""
    with trials_with(candidate, source) as (trials, problem):
        first = trials.call("one", problem.reference.inputs("one"), graded=True, kept=True)
        return repetition.repeat(trials, "one", first)[1] is not None


def diagnosed(candidate: Candidate) -> Status:
    """Return the status of a kernel that is wrong."""
    with trials_with(candidate, REFERENCE) as (trials, problem):
        with pytest.raises(WrongValues) as wrong:
            trials.call("one", problem.reference.inputs("one"))
        return status(repetition.diagnosed(trials, "one", wrong.value))


def status(failed: CandidateFailed) -> Status:
    return explain(failed.ending, "/job").status


def changing(*factors: float) -> Candidate:
    """Make a candidate whose results are multiplied by these factors, call by call."""
    candidate = Candidate()
    candidate.compute = lambda *given: relu(*given) * factors[candidate.calls - 1]
    return candidate


def test_equal_calls_do_not_differ() -> None:
    candidate = Candidate()
    assert not differ(candidate)
    assert candidate.calls == 1 + REPEATS == 4


@pytest.mark.parametrize("call", [1, 2, 3])
def test_difference_in_any_repeated_call_counts(call: int) -> None:
    last_bit, more = [1.0] * 4, [1.0] * 4
    last_bit[call], more[call] = 1 + 2**-23, 1.01
    assert differ(changing(*last_bit))
    with pytest.raises(CandidateFailed) as failed:
        differ(changing(*more))
    assert status(failed.value) is Status.NONDETERMINISTIC


def test_rounding_of_a_constant_result_is_a_note() -> None:
    """Its spread is the unit of errors, and that of the first call is rounding alone."""
    candidate = Candidate(lambda x, *weights: 1 + 2**-20 * (torch.rand_like(x) < 0.5))
    assert differ(candidate, ONES)


def test_only_changing_wrong_results_are_nondeterministic() -> None:
    assert diagnosed(changing(9.0, 9.0, 9.0, 9.0)) is Status.WRONG_VALUE
    assert diagnosed(changing(9.0, 9.0, 9.0, 8.0)) is Status.NONDETERMINISTIC


def test_nan_at_changing_places_is_nondeterministic() -> None:
    def spoilt(x: Any, weight: Any, bias: Any) -> Any:
        result = relu(x, weight, bias)
        result[candidate.calls, 0] = float("nan")
        return result

    candidate = Candidate(spoilt)
    assert diagnosed(candidate) is Status.NONDETERMINISTIC


def test_failing_second_call_keeps_the_first_finding() -> None:
    candidate = changing(9.0)
    candidate.fails_at = 2
    assert diagnosed(candidate) is Status.WRONG_VALUE
