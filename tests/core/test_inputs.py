from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError, TaskError
from adaexplore.core.files.inputs import input_text


def test_byte_order_mark_and_line_ends_are_normalised(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(b"\xef\xbb\xbfa = 'caf\xc3\xa9'\r\nb\rc\n")
    assert input_text(path, "kernel") == "a = 'café'\nb\nc\n"


def test_unreadable_input_raises_callers_error_naming_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^no list .*none\.txt; name another$"):
        input_text(tmp_path / "none.txt", "list", ConfigError, "name another")
    with pytest.raises(
        TaskError, match=r"^cannot read problem .*: Is a directory; name a file that you may read$"
    ):
        input_text(tmp_path, "problem", TaskError)
    path = tmp_path / "latin.py"
    path.write_bytes(b"a\ncaf\xe9")
    with pytest.raises(
        TaskError, match=r"^problem .*latin\.py is not UTF-8 text: see line 2; save it as UTF-8$"
    ):
        input_text(path, "problem", TaskError)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "large"])
def test_endless_or_large_file_is_refused_unread(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    elif name == "large":
        path.touch()
        os.truncate(path, 2**40)  # sparse
    what = "larger than 2 MiB" if name == "large" else "no regular file"
    with pytest.raises(
        TaskError, match=rf"^cannot read problem .*: it is {what}; name a regular file of at most 2 MiB$"
    ):
        input_text(path, "problem", TaskError, limit=2**21)
