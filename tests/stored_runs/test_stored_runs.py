"""Commands about runs of each format of records print what they printed when the runs were stored."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from tests.stored_runs.outputs import RUNS, expected, outputs, unpack


@pytest.mark.parametrize("name", RUNS)
def test_stored_runs_are_read_as_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unpack(tmp_path))
    made = outputs(name)
    assert made == {command: expected(name, command).read_text("utf-8") for command in made}
