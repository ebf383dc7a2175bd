from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from adaexplore.cli import run
from adaexplore.cli.main import main
from adaexplore.core.errors import Interrupted

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"


@pytest.mark.parametrize("named", [True, False])
def test_a_stopped_run_says_how_to_go_on(
    named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Interrupted("stopped; the same command goes on from here")

    monkeypatch.setattr(run, "open_session", stopped)
    settings = ["--set", f"save_path={tmp_path}"] if named else []
    assert main(["run", "--task", str(PROBLEM), *settings]) == 130
    said = capsys.readouterr().err
    assert ("the same command goes on" in said) is named
    assert ("--set save_path=outputs/MCTS_" in said) is not named


def test_a_signal_says_once_what_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signalled(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise Interrupted("stopped")

    monkeypatch.setattr(run, "open_session", signalled)
    assert main(["run", "--task", str(PROBLEM), "--set", f"save_path={tmp_path}"]) == 130
    assert "stopping; finished steps are kept (again" in caplog.text
