from __future__ import annotations

import pytest

from adaexplore.cli.output import columns, progress, show


def test_log_gets_plain_line_every_ten_percent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(40, "step") as bar:
        for done in range(40):
            bar.set_postfix({"correct": f"{done}/40"}, refresh=False)
            bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("10 %, 4 of 40 steps, ")
    assert lines[-1].startswith("100 %, 40 of 40 steps, ")
    assert lines[-1].endswith(", correct=39/40")
    assert not any("\r" in line for line in lines)


def test_progress_starts_after_earlier_work(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(10, "problem", initial=9) as bar:
        bar.update()
    assert capsys.readouterr().err.splitlines()[0].startswith("100 %, 10 of 10 problems")


def test_prose_fits_the_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert columns() == 20
    show("keys: " + "not set, " * 9)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 20
