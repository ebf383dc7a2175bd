"""How long a race goes on, and what its sides add up to, without a GPU."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from online_judge.common.timing import Block
from online_judge.cpu.simulation import simulated_cuda
from online_judge.evaluator.dialogue import BlockRefused, CandidateGone
from online_judge.evaluator.timing import interleaved as race_module
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.interleaved import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    MIN_SAMPLES,
    InterleavedTiming,
    Outcome,
    Side,
    _Audit,
)
from online_judge.protocol.orders import Block as BlockOrder
from online_judge.verdict.observations import flags_of_all


def marked(*calls_ms: float) -> Observed:
    starts, ends, now = [], [], 0.0
    for call in calls_ms:
        starts.append(now)
        ends.append(now + call)
        now += call + 0.1
    return Observed(now, Block(tuple(starts), tuple(ends), 0.0))


def both(rounds: int, calls: int, call_ms: float, noise: float = 0.0) -> Outcome:
    rng = random.Random(1)
    outcome = Outcome()
    for _ in range(rounds):
        times = [call_ms * (1 + noise * rng.random()) for _ in range(calls)]
        outcome.candidate.add(marked(*times), BlockOrder(calls))
        outcome.reference.add(marked(*[call_ms] * calls), BlockOrder(calls))
    return outcome


def race(
    trials: int = 100, reference: Any = None, setup: Any = None, dialogue: Any = None
) -> InterleavedTiming:
    problem: Any = SimpleNamespace(reference=reference)
    setup = setup or SimpleNamespace(output_bytes=4)
    return InterleavedTiming(dialogue, problem, setup, "race", random.Random(1), trials, 1e-3)


def ids(outcome: Outcome) -> list[str]:
    return [flag.id for flag in flags_of_all(outcome.observations, "/job")]


def enough(outcome: Outcome, rounds: int, claimed_ms: float = 1.0, trials: int = 100) -> bool:
    return race(trials)._enough(outcome, rounds, claimed_ms)


def test_samples_are_all_marked_calls() -> None:
    side = Side()
    side.add(marked(1.0, 2.0), BlockOrder(2))
    side.add(marked(3.0, 10.0), BlockOrder(2))
    side.add(Observed(8.0, Block((), (), 0.0)), BlockOrder(4, kind="plain"))
    side.add(Observed(6.0, Block((), (), 0.0)), BlockOrder(4, kind="graph"), 2)
    assert side.samples == pytest.approx([1.0, 2.0, 3.0, 10.0])
    assert side.gpu_ms == pytest.approx(2.5)
    assert side.mean_ms == pytest.approx(4.0)
    assert (side.e2e_ms, side.graph, side.unmarked) == (2.0, [3.0], 6)


def test_gpu_time_is_that_of_both_sides_calls() -> None:
    outcome = Outcome()
    for side, call_ms in ((outcome.candidate, 1.0), (outcome.reference, 3.0)):
        side.add(marked(call_ms, call_ms), BlockOrder(2))
        side.add(Observed(99.0, Block((), (), 0.0)), BlockOrder(4, kind="plain"))
    assert outcome.gpu_s == pytest.approx((2 + 6 + 4 + 12) / 1e3)


def test_race_has_its_rounds_and_samples_first() -> None:
    assert not enough(both(MIN_ROUNDS - 1, 128, 1.0), MIN_ROUNDS - 1)
    assert enough(both(MIN_ROUNDS, 128, 1.0), MIN_ROUNDS)
    few = (MIN_SAMPLES - 1) // MIN_ROUNDS
    assert not enough(both(MIN_ROUNDS, few, 1.0), MIN_ROUNDS, trials=1)
    assert enough(both(MIN_ROUNDS, few + 1, 1.0), MIN_ROUNDS, trials=1)


def test_noise_asks_for_the_requested_number_and_calm_does_not() -> None:
    noisy, calm = both(6, 10, 4.0, noise=0.2), both(6, 10, 4.0)
    assert not enough(noisy, 6, trials=100)
    assert enough(noisy, 6, trials=60)
    assert enough(calm, 6, trials=100)
    assert enough(both(MAX_ROUNDS, 1, 4.0, noise=0.5), MAX_ROUNDS, trials=1000)


def test_calls_of_seconds_have_three_rounds() -> None:
    assert not enough(both(2, 1, 1000.0), 2, claimed_ms=1000.0)
    assert enough(both(3, 1, 1000.0), 3, claimed_ms=1000.0)


def test_warm_up_that_is_claimed_to_be_slow_does_not_shorten_a_race() -> None:
    assert not enough(both(3, 1, 1.0), 3, claimed_ms=1e6)


class Refusing:
    """Says of every block that it cannot be run."""

    def ready_block(self, order: BlockOrder) -> Any:
        raise BlockRefused("CUDA error: capturing stream has unjoined work")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> InterleavedTiming:
    monkeypatch.setattr(race_module.torch.cuda, "synchronize", lambda: None)
    pool = SimpleNamespace(refresh=lambda whole: None, copy_of=lambda place: [])
    setup = SimpleNamespace(pool=pool, poison=lambda: None, output_bytes=4)
    return race(reference=SimpleNamespace(writes_inputs=False), setup=setup, dialogue=Refusing())


@pytest.mark.parametrize("kind", ["marked", "plain"])
def test_candidate_process_that_will_not_be_timed_is_out(refused: InterleavedTiming, kind: Any) -> None:
    with pytest.raises(CandidateGone, match="refused"):
        refused._round(Outcome(), 1, BlockOrder(4, kind=kind), 2)


def test_work_that_nobody_waits_for_is_a_side_stream(refused: InterleavedTiming) -> None:
    outcome = Outcome()
    refused._replay(outcome, 1, 4, 2)
    assert ids(outcome) == ["side_stream"]


@pytest.mark.parametrize("best", [None, "1", 1, True, 0.0, -1.0, float("nan"), float("inf"), 1e12, [1.0]])
def test_warm_up_times_that_cannot_be_are_not_taken(best: Any) -> None:
    dialogue = SimpleNamespace(ask=lambda *order: {"best_ms": best})
    reference = SimpleNamespace(call_seed=lambda name: 1, stochastic=False)
    setup = SimpleNamespace(
        outputs="parcel", pool=SimpleNamespace(parcel="parcel"), shared_tensors=[], output_bytes=4
    )
    with pytest.raises(CandidateGone, match="times that cannot be"):
        race(reference=reference, setup=setup, dialogue=dialogue)._warm_candidate_up()


@pytest.mark.parametrize(("output_bytes", "kept"), [(2**20, True), (8 * 2**30, False)])
def test_outputs_that_are_too_large_are_not_kept(output_bytes: int, kept: bool) -> None:
    output = torch.ones(3)
    held = race(setup=SimpleNamespace(output_bytes=output_bytes))._kept(output)
    assert torch.equal(held, output)
    assert (held.data_ptr() != output.data_ptr()) == kept


def test_audit_compares_what_was_kept_and_forgets_it() -> None:
    outcome, subject = Outcome(), race()
    subject._audits = [
        _Audit(0, None, [torch.ones(4)], [torch.ones(4)]),
        _Audit(1, 7, [torch.ones(4)], [torch.tensor([1.0, 1.0, 1.0, 2.0])]),
    ]
    subject.audit(outcome)
    subject.audit(outcome)
    (flag,) = flags_of_all(outcome.observations, "/job")
    assert flag.id == "timed_output_wrong"
    assert flag.evidence.startswith("1 of 4 elements of timed call 7 of round 1 are wrong")


SIZE = 500_000


class Lazy:
    """Both sides of a race whose outputs are nearly all zeros, and a candidate that gives zeros."""

    output_bytes = 4 * SIZE

    def __init__(self, cheat: str) -> None:
        self._cheat = cheat
        self.number = 0
        self._received, self._own = torch.zeros(2, SIZE), torch.zeros(2, SIZE)
        self.received_rows, self.own_rows = [self._received], [self._own]
        self.pool = SimpleNamespace(
            refresh=lambda whole: None,
            copy_of=lambda place: [],
            is_unchanged=lambda *which: True,
            put_back=lambda copies: None,
        )

    def ready_block(self, order: BlockOrder) -> None:
        pass

    def clock(self, *which: str) -> None:
        pass

    def poison(self, calls: int) -> None:
        self._received[:calls] = float("nan")

    def run_block(self) -> tuple[float, dict[str, Any]]:
        honest = self._cheat == "none" or (self._cheat == "after the first block" and self.number == 0)
        for call in range(2):
            self._received[call] = self._output(call) if honest else torch.zeros(SIZE)
        return 3.0, {"starts": [0.0, 2.0], "ends": [1.0, 3.0], "tail": 0.0}

    def reference_block(self, sets: Any, flushes: int, *, marked: bool = True) -> Observed:
        for row, call in enumerate(sets):
            self._own[row] = self._output(call)
        if self._cheat == "filled in after the answer":
            for call in range(2):
                self._received[call] = self._output(call)
        return marked_block()

    def _output(self, call: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(10 * self.number + call)
        output = torch.zeros(SIZE)
        output[torch.randint(SIZE, (2,), generator=generator)] = 1.0
        return output


def marked_block() -> Observed:
    return Observed(3.0, Block((0.0, 2.0), (1.0, 3.0), 0.0))


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("cheat", ["none", "always", "after the first block", "filled in after the answer"])
def test_work_that_is_left_out_of_timed_calls_is_seen_where_no_sample_finds_it(
    monkeypatch: pytest.MonkeyPatch, cheat: str, large: bool
) -> None:
    monkeypatch.setattr(race_module, "_KEPT_BYTES", 0 if large else 2**40)
    sides, outcome = Lazy(cheat), Outcome()
    with simulated_cuda("sm_90"):
        subject = race(reference=SimpleNamespace(writes_inputs=False), setup=sides, dialogue=sides)
        for sides.number in range(5):
            subject._round(outcome, sides.number, BlockOrder(2), 2)
        subject.audit(outcome)
    assert set(ids(outcome)) == (set() if cheat == "none" else {"timed_output_wrong"})
