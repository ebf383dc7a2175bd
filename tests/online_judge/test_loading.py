"""Loading a candidate's file."""

from pathlib import Path

import pytest

from adaexplore.core.cpu_limit import CpuLimitReached
from online_judge.candidate import loading


def test_endless_loop_is_stopped_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_IMPORT_CPU_S", 0.2)
    with pytest.raises(CpuLimitReached, match=r"0\.2 s of CPU time; is there an endless loop"):
        loading.load_class(b"while True:\n    pass\n", str(tmp_path / "candidate.py"))
