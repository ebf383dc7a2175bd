import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adaexplore.core.text.edits import Edit, EditError, apply_edits, parse_edits

SOURCE = """import torch


def f(x):
    y = x + 1
    return y


def g(x):
    y = x + 1
    return y * 2
"""


def written(*edits):
    return "\n".join(
        f"<old_str_{index}>\n{old}\n</old_str_{index}>\n<new_str_{index}>\n{new}\n</new_str_{index}>"
        for index, old, new in edits
    )


def refused(source, edits):
    with pytest.raises(EditError) as caught:
        apply_edits(source, edits)
    return caught.value


# reading a reply


def test_edits_are_parsed_in_order_without_outer_newlines():
    reply = "First\n" + written((1, "a\n  b", "c"), (2, "\nd", "\n\n  e\n")) + "\nthat is all"
    assert parse_edits(reply) == (Edit(1, "a\n  b", "c"), Edit(2, "d", "  e"))


def test_adjacent_tags_need_no_whitespace_between_them():
    assert parse_edits("<old_str_1>a</old_str_1><new_str_1>b</new_str_1>") == (Edit(1, "a", "b"),)
    assert parse_edits("<old_str_1>a</old_str_1> \t\n <new_str_1></new_str_1>") == (Edit(1, "a", ""),)


def test_a_reply_without_tags_has_no_edits():
    assert parse_edits("") == parse_edits("the kernel is fine as it is") == ()


def test_tags_named_in_prose_are_not_edits():
    reply = "I put <old_str_1> and <new_str_1> around it.\n" + written((1, "a", "b"))
    assert parse_edits(reply) == (Edit(1, "a", "b"),)
    assert parse_edits("In <old_str_1> I changed nothing.") == ()


def test_example_tag_before_the_edit_is_ignored():
    assert parse_edits("As <old_str_1>..</old_str_1> asks:\n" + written((1, "a", "b"))) == (
        Edit(1, "a", "b"),
    )


@pytest.mark.parametrize(
    "reply",
    [
        "<old_str_1>a</old_str_1>\n<new_str_2>b</new_str_2>",
        "<old_str_1>a</old_str_1> becomes <new_str_1>b</new_str_1>",
        "<old_str_1>a</old_str_1>\n<new_str_1>b",
        "<old_str_1>a</old_str_1>",
    ],
)
def test_edit_without_new_text_fails_when_applied(reply):
    edits = parse_edits(written((3, "x", "y")) + reply)
    assert edits == (Edit(3, "x", "y"), Edit(1, "a", None))
    error = refused("a x", edits)
    assert (error.index, error.reason) == (1, "no <new_str_1> after </old_str_1>")


def test_tags_with_other_numbers_are_plain_text():
    reply = "<old_str_1>a <old_str_2> b</old_str_1><new_str_1>c</new_str_2>d</new_str_1>"
    assert parse_edits(reply) == (Edit(1, "a <old_str_2> b", "c</new_str_2>d"),)


def test_tags_within_a_new_text_belong_to_it():
    new = "<old_str_2>x</old_str_2><new_str_2>y</new_str_2>"
    assert parse_edits(f"<old_str_1>a</old_str_1><new_str_1>{new}</new_str_1>") == (Edit(1, "a", new),)


def test_old_text_ends_at_first_closing_tag():
    reply = "<old_str_1>a</old_str_1> b</old_str_1><new_str_1>c</new_str_1>"
    assert parse_edits(reply) == (Edit(1, "a", None),)


@pytest.mark.parametrize(
    "piece",
    [
        "<old_str_1>",
        "<old_str_1></old_str_1>",
        "<old_str_1>a</old_str_1>" + " " * 50,
        "<old_str_1></old_str_1><new_str_1>",
        "</new_str_1><new_str_1>",
        "<old_str_",
    ],
)
def test_megabyte_of_tags_parses_in_linear_time(piece):
    started = time.process_time()
    parse_edits(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 5


# applying


def test_an_edit_replaces_the_one_place_that_matches():
    assert apply_edits("a = 1\nb = 2\n", [Edit(1, "b = 2", "b = 3\nc = 4")]) == "a = 1\nb = 3\nc = 4\n"
    assert apply_edits("a = 1\nb = 2\n", [Edit(1, "1", "7")]) == "a = 7\nb = 2\n"


def test_later_edits_apply_to_the_edited_text():
    assert apply_edits("a\n", [Edit(1, "a", "b"), Edit(2, "b", "c")]) == "c\n"


def test_an_edit_may_change_nothing_and_may_delete():
    assert apply_edits("a\nb\n", [Edit(1, "a", "a")]) == "a\nb\n"
    assert apply_edits("a\nb\nc\n", [Edit(1, "b\nc", "")]) == "a\n\n"


def test_trailing_blanks_are_ignored_without_an_exact_match():
    assert apply_edits("x = 1  \ny = 2\t\nz = 3\n", [Edit(1, "x = 1\ny = 2", "w = 0")]) == "w = 0\t\nz = 3\n"
    assert apply_edits("x = 1\ny = 2\n", [Edit(1, "x = 1 \ny = 2  ", "w = 0")]) == "w = 0\n"


def test_exact_match_wins_over_match_ignoring_blanks():
    assert apply_edits("a \nb\na\nb\n", [Edit(1, "a \nb", "c")]) == "c\na\nb\n"


def test_outer_blank_lines_are_left_out_last():
    assert apply_edits("a\nb\n", [Edit(1, "   \n\t\nb\n  ", "c")]) == "a\nc\n"


def test_line_endings_of_windows_match_either_way():
    assert apply_edits("a\r\nb\r\nc\r\n", [Edit(1, "a\nb", "d")]) == "d\r\nc\r\n"
    assert (
        apply_edits(
            "a\nb\nc\n",
            parse_edits("<old_str_1>\r\na\r\nb\r\n</old_str_1>\r\n<new_str_1>\r\nd\r\n</new_str_1>"),
        )
        == "d\nc\n"
    )


def test_match_ignoring_blanks_must_end_a_line():
    assert refused("x = 10\n", [Edit(1, "x = 1 ", "x = 2")]).reason == "old text not found"


def test_a_blank_first_line_needs_a_blank_line():
    assert apply_edits("a\n\nb\n", [Edit(1, "  \nb", "c")]) == "a\nc\n"
    # none before b here: found only when outer blank lines are left out
    assert apply_edits("a\nb\n", [Edit(1, "  \nb", "c")]) == "a\nc\n"


def test_indentation_is_never_ignored():
    assert refused("    a = 1\n    b = 2\n", [Edit(1, "a = 1\nb = 2", "c")]).reason == "old text not found"


# refusing


def test_no_edits_are_an_error():
    error = refused("a", [])
    assert (error.index, error.reason, str(error)) == (None, "no edits in the reply", "no edits in the reply")


@pytest.mark.parametrize("old", ["", "  ", "\n \n"])
def test_an_empty_old_text_is_an_error(old):
    error = refused("a\n\n", [Edit(2, old, "b")])
    assert (error.index, error.reason) == (2, "empty old text")
    assert isinstance(error, ValueError)


def test_an_ambiguous_text_is_refused_with_its_places():
    error = refused(SOURCE, [Edit(1, "    y = x + 1", "    y = x")])
    assert str(error) == "edit 1: old text is ambiguous, found 2 times"
    assert error.nearest == "5:     y = x + 1\n10:     y = x + 1"


def test_overlapping_places_are_ambiguous():
    assert refused("a\na\na\n", [Edit(1, "a\na", "b")]).reason == "old text is ambiguous, found 2 times"


def test_many_places_are_counted_up_to_a_limit():
    assert refused("a" * 1_000_000, [Edit(1, "a" * 500_000, "b")]).reason.endswith("found 20 or more times")


def test_missing_old_text_error_shows_nearest_lines():
    error = refused(SOURCE, [Edit(4, "def g(x):\n    y = x + 1\n    return y * 3", "pass")])
    assert (error.index, error.reason) == (4, "old text not found")
    assert error.nearest.splitlines() == [
        "9: def g(x):",
        "10:     y = x + 1",
        "11:     return y * 2",
        "12: ",
    ]


def test_most_similar_line_is_shown_if_none_matches():
    error = refused(SOURCE, [Edit(1, "    return y * 22", "")])
    assert "11:     return y * 2" in error.nearest.splitlines()


def test_nearest_lines_are_aligned_at_equal_lines():
    error = refused(SOURCE, [Edit(1, "zzz\ndef g(x):\n    y = x + 1", "")])
    assert error.nearest.splitlines()[:4] == ["6:     return y", "7: ", "8: ", "9: def g(x):"]
    error = refused(SOURCE, [Edit(1, "q\n    return y * 22 + 1", "")])
    assert error.nearest.splitlines()[:3] == ["8: ", "9: def g(x):", "10:     y = x + 1"]


def test_an_empty_source_has_no_nearest_lines():
    assert refused("", [Edit(1, "a", "b")]).nearest == ""


def test_nearest_lines_are_few():
    source = "\n".join(f"line {number}" for number in range(500))
    old = "\n".join(f"line {number}" for number in range(100, 140)) + "\nno such line"
    nearest = refused(source, [Edit(1, old, "")]).nearest.splitlines()
    assert len(nearest) <= 8
    assert any(line.startswith("141: ") for line in nearest)


def test_nearest_lines_of_large_source_are_found_quickly():
    started = time.process_time()
    refused("x = tl.load(p + offsets, mask=mask)\n" * 30_000, [Edit(1, "y = tl.store(q, v)\n" * 3000, "")])
    assert time.process_time() - started < 20


def test_edits_apply_all_or_none():
    assert refused("a\nb\n", [Edit(1, "a", "c"), Edit(2, "zzz", "d")]).index == 2


# properties

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8), min_size=1, max_size=8
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), TEXTS, TEXTS), max_size=5, unique_by=lambda edit: edit[0]))
def test_written_edits_are_parsed_back(edits):
    assume(not any("_str_" in text for _, old, new in edits for text in (old, new)))
    expected = tuple(Edit(index, old.strip("\r\n"), new.strip("\r\n")) for index, old, new in edits)
    assert parse_edits(written(*edits)) == expected


@settings(deadline=None)
@given(st.text(st.sampled_from(["<", ">", "/", "1", "a", "\n", " "]), max_size=20), st.data())
def test_any_reply_is_read(text, data):
    tags = [f"<{slash}{side}_str_{n}>" for slash in ("", "/") for side in ("old", "new") for n in (1, 2)]
    reply = "".join(data.draw(st.lists(st.sampled_from([*tags, text, "x", " "]), max_size=15)))
    for edit in parse_edits(reply):
        assert edit.old in reply
        assert edit.new is None or edit.new in reply


@settings(deadline=None)
@given(LINES, st.data())
def test_edit_from_the_source_changes_only_that_place(lines, data):
    source = "\n".join(lines)
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    old = source[start:end]
    assume(old.strip() and source.find(old) == start and source.find(old, start + 1) < 0)
    new = data.draw(TEXTS)
    assert apply_edits(source, [Edit(1, old, new)]) == source[:start] + new + source[end:]


@settings(deadline=None)
@given(LINES, st.data())
def test_added_blanks_at_line_ends_are_forgiven(lines, data):
    numbered = [f"{number}{line}" for number, line in enumerate(lines)]
    blanks = st.sampled_from(["", " ", "\t", "  \t", "\r"])
    source = "".join(line + data.draw(blanks) + "\n" for line in numbered)
    old = "\n".join(line + data.draw(blanks) for line in numbered)
    result = apply_edits(source, [Edit(1, old, "NEW")])
    assert result.strip() == "NEW"


@settings(deadline=None)
@given(LINES, st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_edit_list_matches_applying_edits_one_by_one(lines, pairs):
    source = "\n".join(lines)
    edits = [Edit(index, old, new) for index, (old, new) in enumerate(pairs)]
    expected, failed = source, None
    for edit in edits:
        try:
            expected = apply_edits(expected, [edit])
        except EditError as error:
            failed = error
            break
    if failed is None and edits:
        assert apply_edits(source, edits) == expected
    else:
        error = refused(source, edits)
        assert error.index == (failed.index if failed else None)
