from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import StorageError
from adaexplore.core.files.json_lines import JsonLines


def same(value: Any) -> Any:
    return value


def test_every_line_reads_back_in_order(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "new" / "a.jsonl")
    assert lines.read(same) == []
    values = [{"a": "é\n\ud800"}, 1.5, None]
    for value in values:
        lines.append(value)
    assert JsonLines(lines.path).read(same) == values


def test_torn_line_is_named_and_others_are_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.jsonl"
    JsonLines(path).append({"number": 1})
    with path.open("a") as out:
        out.write('{"number": 2')
    JsonLines(path).append({"number": 3})
    JsonLines(path).append(["no", "number"])
    with caplog.at_level(logging.WARNING):
        assert JsonLines(path).read(lambda line: line["number"]) == [1, 3]
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [f"{path}:2", f"{path}:4"]


def test_partial_writes_still_give_a_whole_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Grudging(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(data[:3])

    lines = JsonLines(tmp_path / "a.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, mode, buffering: Grudging(path, mode.replace("b", "")))
        lines.append({"number": 1})
    assert lines.read(same) == [{"number": 1}]


def test_unusable_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write"):
        JsonLines(tmp_path).append(1)
    with pytest.raises(StorageError, match="cannot read"):
        JsonLines(tmp_path).read(same)
