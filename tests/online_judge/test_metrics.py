"""What the counters say."""

from online_judge.queue.metrics import Load, Metrics


def lines(metrics: Metrics, load: Load | None = None) -> list[str]:
    return metrics.render(load).decode().splitlines()


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
    for ready in (2, 1):
        text = lines(metrics, Load(ready={0: ready}))
        assert f'adaexplore_judge_armed_players{{device="0"}} {ready}.0' in text


def test_load_is_shown_as_it_is_when_asked_for() -> None:
    metrics = Metrics()
    for queued in (3, 0):
        text = lines(metrics, Load(queued, running=1, oldest_s=2.5, jobs={"done": 4, "failed": 0}))
        assert f"adaexplore_judge_queue_depth {queued}.0" in text
        assert "adaexplore_judge_busy_slots 1.0" in text
        assert "adaexplore_judge_queue_oldest_seconds 2.5" in text
        assert 'adaexplore_judge_jobs{state="done"} 4.0' in text
        assert 'adaexplore_judge_jobs{state="failed"} 0.0' in text
