"""The referee's side of a GPU evaluation, with CPU memory and made-up times."""

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge import channel, player
from online_judge.channel import Channel, ChannelClosed
from online_judge.evaluation import arenas, match, timing
from online_judge.evaluation.match import Match, PlayerGone
from online_judge.evaluation.reference import Reference, Seeds
from online_judge.sandbox import CANDIDATE_FILE, PlayerSpec

from .sources import HONEST, REFERENCE, with_forward

FACTS = {"hardware": "GPU", "device": "cuda:0"}
BROKEN_LATER = with_forward(
    "self.calls = getattr(self, 'calls', 0) + 1\n"
    "return torch.relu(self.linear(x)) * (1.0 if self.calls <= 2 else 3.0)"
)


class Lock:
    """Remembers how it was held."""

    def __init__(self) -> None:
        self.held: list[bool] = []

    def hold(self, *, exclusive: bool) -> AbstractContextManager[None]:
        self.held.append(exclusive)
        return nullcontext()


class TimedReference(Reference):
    """A reference on the CPU that says it is on a GPU and takes 6 ms."""

    measured = 0

    def __init__(self) -> None:
        super().__init__(REFERENCE, "key", Seeds(b"key"), "fp32", cuda=False)
        self.cuda = True

    def inputs(self, trial: str | int) -> list[Any]:
        return self._on_the_cpu(super().inputs, trial)

    def outputs(self, inputs: list[Any], trial: str | int) -> Any:
        return self._on_the_cpu(super().outputs, inputs, trial)

    def measure_ms(self, inputs: list[Any], trials: int, trial: str | int) -> list[float]:
        TimedReference.measured += 1
        return [6.0] * trials

    def _on_the_cpu(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.cuda = False
        try:
            return call(*arguments)
        finally:
            self.cuda = True


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Verdict]:
    """Runs a match whose player is a thread of this process."""
    monkeypatch.setattr(match, "pack", lambda value, cuda: arenas.pack(value, cuda=False))
    monkeypatch.setattr(match, "Arena", lambda nbytes, cuda: arenas.Arena(nbytes, cuda=False))
    monkeypatch.setattr(TimedReference, "measured", 0)
    monkeypatch.setattr(timing, "flush_buffer", lambda: None)

    def run(
        source: str,
        samples: Callable[[int], list[float]] = lambda trials: [2.0] * trials,
        recorded_ms: float | None = None,
        baselines: dict[tuple[str, ...], float] | None = None,
        lock: Lock | None = None,
        **fields: Any,
    ) -> Verdict:
        def measure_ms(call: Callable[[], object], trials: int, flush: object) -> list[float]:
            call()
            return samples(trials)

        monkeypatch.setattr(timing, "measure_ms", measure_ms)
        (tmp_path / CANDIDATE_FILE).write_text(source)
        referee_end, player_end = channel.pair()
        spec = PlayerSpec(str(tmp_path), "cpu", "", "sm_90", "paper")

        def obey() -> None:
            with player_end, suppress(ChannelClosed):
                player.Player(Channel(player_end), spec).play()

        thread = threading.Thread(target=obey)
        thread.start()
        request = EvaluationRequest.model_validate(
            {"num_correct_trials": 2, "num_perf_trials": 20, "measure_performance": True} | fields
        )
        with referee_end:
            judged = Match(
                player=Channel(referee_end),
                reference=TimedReference(),
                request=request,
                clock=lambda whose, stage: None,
                lock=lock or Lock(),
                baselines={} if baselines is None else baselines,
                recorded_ms=recorded_ms,
                facts=FACTS,
                folder=str(tmp_path),
            )
            try:
                return judged.run()
            finally:
                referee_end.close()
                thread.join(30)
                judged.free()
                sys.modules.pop(player.MODULE, None)

    return run


def test_speedup_is_the_ratio_of_unrounded_means(play: Callable[..., Verdict]) -> None:
    verdict = play(with_forward(HONEST), lambda trials: [1.9] * (trials // 2) + [2.2] * (trials // 2))
    assert verdict.correct, verdict.metadata
    mean = (1.9 * 9 + 2.2 * 9) / 18
    assert verdict.runtime_ms == pytest.approx(mean)
    assert verdict.runtime_stats == pytest.approx(
        {
            "mean": mean,
            "std": verdict.runtime_stats["std"],
            "min": 1.9,
            "max": 2.2,
            "median": 2.05,
            "num_trials": 18,
            "hardware": "GPU",
            "device": "cuda:0",
            "fast_p": 6.0 / mean,
            "baseline_type": "measured",
            "baseline_time": 6.0,
        },
    )
    assert verdict.metadata["notes"] == ["tf32_asymmetric"]


def test_only_timing_is_exclusive(play: Callable[..., Verdict]) -> None:
    lock = Lock()
    play(with_forward(HONEST), lock=lock)
    assert lock.held == [False, True, False]


def test_reference_is_timed_once_per_problem_and_precision(play: Callable[..., Verdict]) -> None:
    baselines: dict[tuple[str, ...], float] = {}
    for _ in range(2):
        play(with_forward(HONEST), baselines=baselines)
    assert TimedReference.measured == 1
    play(with_forward(HONEST), baselines=baselines, tf32="off")
    assert TimedReference.measured == 2


def test_recorded_baseline_is_taken_as_it_is(play: Callable[..., Verdict]) -> None:
    stats = play(with_forward(HONEST), recorded_ms=5.0).runtime_stats
    assert (stats["fast_p"], stats["baseline_type"], stats["baseline_time"]) == (2.5, "recorded", 5.0)
    assert TimedReference.measured == 0


def test_output_is_checked_again_after_timing(play: Callable[..., Verdict]) -> None:
    verdict = play(BROKEN_LATER)
    assert verdict.status == "wrong_value"
    assert verdict.metadata["correctness_trials"] == "(2 / 2)"


def test_unmeasured_pass_has_no_times(play: Callable[..., Verdict]) -> None:
    verdict = play(with_forward(HONEST), measure_performance=False, tf32="off")
    assert (verdict.correct, verdict.runtime_ms, verdict.runtime_stats) == (True, None, {})
    assert "notes" not in verdict.metadata


@pytest.mark.parametrize("samples", [[0.0] * 20, [float("nan")] * 20, [1.0] * 3, [-1.0] * 20, ["1"] * 20])
def test_times_that_cannot_be_are_not_taken(play: Callable[..., Verdict], samples: list[float]) -> None:
    with pytest.raises(PlayerGone, match="times that cannot be"):
        play(with_forward(HONEST), lambda trials: samples)


def test_trials_use_different_hidden_inputs() -> None:
    reference = TimedReference()
    first, second = reference.inputs(0)[0], reference.inputs(1)[0]
    assert not torch.equal(first, second)
    assert torch.equal(first, reference.inputs(0)[0])
    torch.manual_seed(42)
    assert not torch.equal(first, torch.randn(8, 16))
