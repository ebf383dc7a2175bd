"""Edits between two sources."""

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.edits import apply_edits, parse_edits
from adaexplore.offline_writer.patches import edits_between

LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c = 3", "a = 1 ", "d"]), min_size=1, max_size=14)


@given(LINES, LINES)
def test_edits_turn_old_text_into_new(old: list[str], new: list[str]) -> None:
    before = "\n".join(["first", *old, "last"])
    after = "\n".join(["first", *new, "last"])
    reply = edits_between(before, after)
    if before == after:
        assert reply == ""
    else:
        assert apply_edits(before, parse_edits(reply)) == after


def test_a_changed_number_is_a_small_edit() -> None:
    source = "\n".join(["import torch", *[f"x{n} = {n}" for n in range(50)]])
    edits = parse_edits(edits_between(source, source.replace("x7 = 7", "x7 = 8")))
    assert [(edit.old, edit.new) for edit in edits] == [("x7 = 7", "x7 = 8")]
