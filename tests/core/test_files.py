from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.core.errors import StorageError
from adaexplore.core.files.atomic import write_json, write_text


def test_leftover_temporary_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".a.txt.tmp").write_text("half of it")
    write_text(tmp_path / "a.txt", "whole")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "whole")]


def test_line_ends_are_kept(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "a.txt", "one\r\ntwo\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == b"one\r\ntwo\n"


def test_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    (tmp_path / ".a.txt.tmp").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*a\.txt: .*choose another place"):
        write_json(tmp_path / "a.txt", {"new": 1})
    assert (tmp_path / "a.txt").read_text() == "old"
