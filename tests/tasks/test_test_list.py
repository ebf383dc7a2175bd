"""The grammar of test lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.errors import TaskError
from adaexplore.tasks.test_list import Selection, parse_test_list, read_test_list

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2", Selection(2, None)),
        ("2 5", Selection(2, (5,))),
        ("2\t1-3,7", Selection(2, (1, 2, 3, 7))),
        ("  2   1 - 3 , 7  # the easy ones", Selection(2, (1, 2, 3, 7))),
        ("2 3,1-4,3", Selection(2, (3, 1, 2, 4))),
    ],
)
def test_line_selects(line: str, expected: Selection) -> None:
    assert parse_test_list(line, "list") == [expected]


def test_blank_lines_and_comments_mean_nothing() -> None:
    assert parse_test_list("# all\n\n1\n   \n 2 1 # one\n", "list") == [
        Selection(1, None),
        Selection(2, (1,)),
    ]


def test_all_bad_lines_are_reported_with_their_numbers() -> None:
    with pytest.raises(TaskError) as caught:
        parse_test_list("1\nlevel2\n2 5 6\n2 5-\n2 9-3\n2 1,,2\n-1\n2 1-99999999999\n2 ²\n", "lists/a.txt")
    message = str(caught.value)
    assert [line.split(": ")[0] for line in message.splitlines()] == [
        f"lists/a.txt:{n}" for n in range(2, 10)
    ]
    assert "got 'level2'" in message
    assert "range 9-3 runs backwards" in message


@pytest.mark.parametrize("text", ["", "# nothing\n\n"])
def test_list_that_selects_nothing_is_refused(text: str) -> None:
    with pytest.raises(TaskError, match="selects nothing"):
        parse_test_list(text, "list")


def test_list_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no test list .*a\.txt"):
        read_test_list(tmp_path / "a.txt")
    with pytest.raises(TaskError, match="cannot read test list"):
        read_test_list(tmp_path)
    (tmp_path / "b.txt").write_bytes(b"\xff\xff")
    with pytest.raises(TaskError, match="not UTF-8"):
        read_test_list(tmp_path / "b.txt")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_list_2", [Selection(2, None)]),
        ("test_list_3", [Selection(3, None)]),
        ("test_list_syn", [Selection(1, tuple(range(1, 201)))]),
        ("quickstart", [Selection(1, None), Selection(2, None), Selection(3, None)]),
    ],
)
def test_list_of_the_repository(name: str, expected: list[Selection]) -> None:
    assert read_test_list(ROOT / f"config/test_list/{name}.txt") == expected


@settings(deadline=None)
@given(st.text())
def test_any_text_is_parsed_or_reported_by_line(text: str) -> None:
    message = ""
    try:
        assert parse_test_list(text, "list")
    except TaskError as error:
        message = str(error)
    assert all(line.startswith(("list:", "test list list ")) for line in message.splitlines())
