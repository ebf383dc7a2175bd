"""What a candidate process shows of a candidate's calls when it is profiled."""

from types import SimpleNamespace
from typing import Any

import pytest

from online_judge.candidate import profile as candidate_profile
from online_judge.candidate.launches import LaunchMeter
from online_judge.checks.facts.kernels import KernelShare, KernelTime, Resources


class Stopwatch:
    """Counts its calls."""

    def __init__(self) -> None:
        self.flushed = 0
        self.blocks: list[int] = []

    def flush(self) -> None:
        self.flushed += 1

    def block(self, call: Any, arguments: Any, places: Any, *, marked: bool) -> Any:
        assert not marked
        self.blocks.append(len(arguments))
        return SimpleNamespace(go=lambda: None)


@pytest.mark.parametrize("seen", [True, False])
def test_profiling_flushes_cache_and_tolerates_a_silent_profiler(
    monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    share = KernelShare(1.0, 0.5, 1, (KernelTime("mine", 0.5, 1),))
    calls: list[str] = []

    def profiled(call: Any, names: Any) -> KernelShare | None:
        assert watch.flushed == calls.count("profiled") + 1
        calls.append("profiled")
        return share if seen else None

    monkeypatch.setattr("online_judge.candidate.profile.profile_share", profiled)
    meter = LaunchMeter(cuda=False)
    monkeypatch.setattr(meter, "resources", lambda: {"mine": Resources(1, 0, 0, 4, 9)})
    watch: Any = Stopwatch()
    found = candidate_profile.inspect(lambda: calls.append("called"), lambda: None, [], meter, watch)
    assert found["shares"] == ([share.to_json()] * 3 if seen else [])
    assert found["resources"] == {"mine": Resources(1, 0, 0, 4, 9).to_json()}
    assert found["wall_ms"] > 0
    assert calls == ["called", "profiled", "profiled", "profiled", "called"]
    assert watch.blocks == [50]
