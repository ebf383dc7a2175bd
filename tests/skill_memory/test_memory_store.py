from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from skill_memory import store
from skill_memory.rule import Rule, Verified
from skill_memory.sidecar import locked
from skill_memory.store import injected, read_rules, rules_for_run, write_rules


def test_rules_survive_a_round_trip(tmp_path: Path) -> None:
    rules = [Rule("You cannot a||b", 3.0), Rule("You cannot é", 1.5), Rule("You cannot c", 12345678.0)]
    write_rules(tmp_path / "m.txt", rules)
    assert read_rules(tmp_path / "m.txt") == rules
    assert (tmp_path / "m.txt").read_text(encoding="utf-8").splitlines()[0] == "You cannot a||b||3"


def test_bom_crlf_blanks_and_missing_counts_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes(
        b"\xef\xbb\xbfYou cannot one||3.0\r\n\r\n  \nYou cannot two\nYou cannot three||\nYou cannot four || 2"
    )
    expected = [("one", 3.0), ("two", 1.0), ("three", 1.0), ("four", 2.0)]
    assert read_rules(path) == [Rule(f"You cannot {name}", count) for name, count in expected]
    assert not caplog.records


@pytest.mark.parametrize("name", ["m.txt", "m.jsonl"])
def test_rule_that_nothing_supports_yet_is_kept(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [Rule("You cannot one", 0.0), Rule("You cannot two", 1.0)]
    write_rules(tmp_path / name, rules)
    assert read_rules(tmp_path / name) == rules
    assert injected(rules, 1) == ("You cannot two",)
    assert not caplog.records


def test_malformed_text_lines_are_skipped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes(
        b"You cannot one||3\nYou cannot 2||many\n||4\nYou cannot \xff||1\nYou cannot x||nan\nYou cannot y||-1"
    )
    assert read_rules(path) == [Rule("You cannot one", 3.0)]
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert str(path) in message
    for number in (2, 3, 4, 5, 6):
        assert f"line {number} " in message
    assert "line 1 " not in message


def test_only_newlines_separate_rules(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text("You cannot a\u2028b||2\n", encoding="utf-8")
    assert read_rules(tmp_path / "m.txt") == [Rule("You cannot a\u2028b", 2.0)]


def test_rules_reaching_threshold_are_injected_in_order() -> None:
    rules = [Rule("b", 3.0), Rule("a", 9.0), Rule("c", 2.9)]
    assert injected(rules, 3) == ("b", "a")


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    write_rules(tmp_path / "bundled.txt", [Rule("You cannot bundle", 5.0)])
    return tmp_path / "bundled.txt"


def test_no_path_is_no_memory(bundled: Path) -> None:
    assert rules_for_run(None, False, bundled) == ()


def test_an_existing_memory_is_used(tmp_path: Path, bundled: Path) -> None:
    write_rules(tmp_path / "own.txt", [Rule("You cannot own", 1.0)])
    assert rules_for_run(tmp_path / "own.txt", False, bundled) == (Rule("You cannot own", 1.0),)


def test_a_missing_memory_is_an_error(tmp_path: Path, bundled: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.txt does not exist"):
        rules_for_run(tmp_path / "absent.txt", False, bundled)
    assert not (tmp_path / "absent.txt").exists()


def test_run_without_bundled_memory_has_no_rules(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert rules_for_run(tmp_path / "none.txt", False, tmp_path / "none.txt") == ()
    assert "prompts hold no rules" in caplog.text


def test_a_missing_memory_is_created_for_an_update(
    tmp_path: Path, bundled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "new" / "memory.txt"
    assert rules_for_run(path, True, bundled) == ()
    assert path.read_text() == ""
    assert not caplog.records


def test_an_unreadable_memory_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="general_memory_path"):
        read_rules(tmp_path)


def test_json_lines_keep_all_fields_and_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(
        '{"rule": "You cannot a", "count": 4, "signature": "s", "reproducer": "r", "counterpart": "c", '
        '"evidence": [{"occurrence": "o", "error": "e", "excerpt": "x"}], "mine": [1], '
        '"verified": [{"triton": "3.7.1", "target": "sm_90", "holds": true}]}\n\n{"rule": "You cannot b"}\n'
    )
    rules = read_rules(path)
    write_rules(path, rules)
    assert read_rules(path) == rules
    first, second = rules
    assert (first.text, first.count, first.signatures, first.extra) == (
        "You cannot a",
        4,
        ("s",),
        {"mine": [1]},
    )
    assert (first.verified[0].holds, first.evidence[0].error, second.count) == (True, "e", 1)
    assert {"rule", "count", "signature", "evidence", "reproducer", "counterpart", "verified"} <= set(
        json.loads(path.read_text().splitlines()[1])
    )


def test_malformed_json_lines_are_skipped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.jsonl"
    lines = ['{"rule": "You cannot one"}', '{"rule": ', "[1]", '{"count": 3}', '{"rule": "x", "count": -1}']
    lines += [
        '{"rule": "x", "evidence": [{"y": 1}]}',
        '{"rule": "x", "version": 99}',
        '{"rule": "You cannot two"}',
    ]
    path.write_text("\n".join(lines))
    assert [rule.text for rule in read_rules(path)] == ["You cannot one", "You cannot two"]
    (record,) = caplog.records
    for number in range(2, 8):
        assert f"line {number} " in record.getMessage()
    assert str(path) in record.getMessage()


def test_text_memory_leaves_out_rules_retired_in_jsonl(tmp_path: Path) -> None:
    retired = Rule("You cannot a", 5, verified=(Verified("3.7.1", "sm_90", False),))
    write_rules(tmp_path / "general_v1.jsonl", [retired, Rule("You cannot b", 1)])
    write_rules(tmp_path / "general_v1_200.txt", [Rule("You cannot a", 5), Rule("You cannot b", 5)])
    rules = rules_for_run(tmp_path / "general_v1_200.txt", False, tmp_path / "none")
    assert injected(rules, 3, "3.7.1") == ("You cannot b",)
    assert injected(rules, 3, "3.6.0") == ("You cannot a", "You cannot b")


@pytest.mark.parametrize(
    "line",
    [
        '{"rule": "You cannot b", "count": 1' + "0" * 400 + "}",
        r'{"rule": "You cannot \ud800", "count": 3}',
        r'{"rule": "You cannot b", "note": "\ud800"}',
        '{"rule": "You cannot b", "verified": [{"triton": null, "target": "sm_90", "holds": true}]}',
        '{"rule": "You cannot b", "verified": [{"triton": "3.7.1", "target": "sm_90", "holds": "no"}]}',
        '{"rule": "You cannot b", "evidence": [{"occurrence": 1, "error": null, "excerpt": 7}]}',
    ],
)
def test_line_that_would_fail_later_is_skipped(
    tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"rule": "You cannot a", "count": 3}\n' + line + "\n")
    assert [rule.text for rule in read_rules(path)] == ["You cannot a"]
    assert f"{path}: skipped line 2 (" in caplog.text


def test_memory_created_by_another_run_is_kept(
    tmp_path: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.jsonl"

    @contextmanager
    def slow(memory: Path) -> Iterator[None]:
        with locked(memory):
            write_rules(path, [Rule("You cannot a", 2.0)])  # what the other run wrote while this one waited
            yield

    monkeypatch.setattr(store, "locked", slow)
    assert [rule.text for rule in rules_for_run(path, True, bundled)] == ["You cannot a"]


def test_faults_are_named_once_until_they_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "m.txt"
    path.write_text("||4\n")
    for _ in range(3):
        read_rules(path)
    assert len(caplog.records) == 1
    path.write_text("||4\n||5\n")
    read_rules(path)
    assert "line 2 " in caplog.records[-1].getMessage()
    assert len(caplog.records) == 2
