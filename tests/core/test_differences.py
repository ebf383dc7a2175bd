from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.differences import differences_between
from tests.differences import apply_differences

OLD = "\n".join(f"line {number}" for number in range(20))
LINES = st.lists(st.sampled_from(["", " ", "a", "b", "-a", "+b", "@@ -1 +1 @@", "```", "a\r"]), max_size=12)


def test_a_changed_line_is_shown_with_context() -> None:
    told = differences_between(OLD, OLD.replace("line 9", "other"))
    assert told.split("\n") == [
        "@@ -7,7 +7,7 @@",
        *(f" line {number}" for number in (6, 7, 8)),
        "-line 9",
        "+other",
        *(f" line {number}" for number in (10, 11, 12)),
    ]


def test_equal_texts_have_no_differences() -> None:
    assert differences_between(OLD, OLD) == ""
    assert apply_differences(OLD, "none") == OLD


@given(LINES, LINES)
def test_differences_rebuild_the_new_text_exactly(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    assert apply_differences(before, differences_between(before, after)) == after


def test_far_apart_changes_are_several_hunks() -> None:
    new = "first\n" + OLD.replace("line 17\n", "")
    told = differences_between(OLD, new)
    assert told.count("@@ -") == 2
    assert apply_differences(OLD, told) == new
