from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError, TaskError
from adaexplore.core.files.inputs import input_text


def test_text_comes_without_a_byte_order_mark_and_with_one_sort_of_line_end(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(b"\xef\xbb\xbfa = 'caf\xc3\xa9'\r\nb\rc\n")
    assert input_text(path, "kernel") == "a = 'café'\nb\nc\n"


def test_what_cannot_be_read_is_refused_with_its_name_and_the_callers_error(tmp_path: Path) -> None:
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
