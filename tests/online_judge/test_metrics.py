"""What the counters say."""

from typing import Any

from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import DeviceQueue, QueueStatus
from online_judge.queue.metrics import Metrics
from tests.verdicts import make_verdict


def lines(metrics: Metrics) -> list[str]:
    return metrics.render().decode().splitlines()


def passed(**metadata: Any) -> Verdict:
    return make_verdict(status=Status.PASSED, metadata=metadata)


def test_share_of_the_exclusive_slot_can_be_computed() -> None:
    metrics = Metrics()
    for held_s, gpu_s in ((2.0, 1.5), (1.0, 0.5)):
        use = {"held_s": held_s, "waited_s": 0.0, "gpu_s": gpu_s}
        metrics.judged(0, make_verdict(status=Status.PASSED, runtime_stats={"slot": use}))
    assert 'adaexplore_judge_slot_held_seconds_total{device="0"} 3.0' in lines(metrics)
    assert 'adaexplore_judge_slot_gpu_seconds_total{device="0"} 2.0' in lines(metrics)


def test_each_flag_of_a_verdict_counts_once() -> None:
    metrics = Metrics()
    metrics.judged(0, passed(integrity=["replay", "clock_mismatch"], problem_flags=["replay"]))
    metrics.judged(0, passed(integrity=["replay"]))
    assert 'adaexplore_judge_integrity_flags_total{flag="replay"} 2.0' in lines(metrics)
    assert 'adaexplore_judge_integrity_flags_total{flag="clock_mismatch"} 1.0' in lines(metrics)


def test_drift_of_a_baseline_is_counted_per_device() -> None:
    metrics = Metrics()
    metrics.judged(1, passed(integrity=["baseline_drift"]))
    assert 'adaexplore_judge_baseline_drifts_total{device="1"} 1.0' in lines(metrics)


def test_load_metrics_show_the_current_state() -> None:
    metrics = Metrics()
    for number in (2, 0):
        load = DeviceQueue(queued=number, processing=1, max_concurrent=1)
        queue = QueueStatus(
            total_queued=number,
            total_processing=1,
            per_device={"0": load},
            max_concurrent=1,
            max_queue_size=9,
        )
        metrics.show_load(queue, oldest_s=2.5, jobs={"done": 4, "failed": number}, ready={0: number})
        text = lines(metrics)
        assert f"adaexplore_judge_queue_depth {number}.0" in text
        assert "adaexplore_judge_busy_slots 1.0" in text
        assert "adaexplore_judge_queue_oldest_seconds 2.5" in text
        assert 'adaexplore_judge_jobs{state="done"} 4.0' in text
        assert f'adaexplore_judge_jobs{{state="failed"}} {number}.0' in text
        assert f'adaexplore_judge_armed_players{{device="0"}} {number}.0' in text
