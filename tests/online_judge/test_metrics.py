"""What the counters say."""

from types import SimpleNamespace
from typing import cast

from online_judge.processes.pool import Pool
from online_judge.queue.metrics import Metrics


def lines(metrics: Metrics) -> list[str]:
    return metrics.render().decode().splitlines()


def test_share_of_the_exclusive_slot_can_be_computed() -> None:
    metrics = Metrics()
    metrics.timed(0, held_s=2.0, gpu_s=1.5)
    metrics.timed(0, held_s=1.0, gpu_s=0.5)
    assert 'adaexplore_judge_slot_held_seconds_total{device="0"} 3.0' in lines(metrics)
    assert 'adaexplore_judge_slot_gpu_seconds_total{device="0"} 2.0' in lines(metrics)


def test_each_flag_of_a_verdict_counts_once() -> None:
    metrics = Metrics()
    metrics.flagged(["replay", "clock_mismatch", "replay"])
    metrics.flagged(["replay"])
    assert 'adaexplore_judge_integrity_flags_total{flag="replay"} 2.0' in lines(metrics)
    assert 'adaexplore_judge_integrity_flags_total{flag="clock_mismatch"} 1.0' in lines(metrics)


def test_drift_of_a_baseline_is_counted_per_device() -> None:
    metrics = Metrics()
    metrics.drifted(1)
    assert 'adaexplore_judge_baseline_drifts_total{device="1"} 1.0' in lines(metrics)


def test_armed_players_are_counted_when_asked_for() -> None:
    metrics = Metrics()
    pool = SimpleNamespace(ready=2)
    metrics.watch_processes({0: cast(Pool, pool)})
    assert 'adaexplore_judge_armed_players{device="0"} 2.0' in lines(metrics)
    pool.ready = 1
    assert 'adaexplore_judge_armed_players{device="0"} 1.0' in lines(metrics)
