"""The simulated fleet in small."""

from tool_scripts.simulate_fleet import simulate


def test_no_gpu_idles_and_lost_jobs_start_again() -> None:
    figures = simulate(gpus=80, jobs=2000)
    assert figures["jobs"] == 2000
    assert figures["idle_s"] <= 1
    assert figures["lost"] > 0
    assert 30 <= figures["recovery_s"] <= 60
