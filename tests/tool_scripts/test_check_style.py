"""Counts of banned names, phrases and docstrings only fall."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tool_scripts.check_style import COUNTS, EXEMPT, LOWER, ROOT, check


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "tool_scripts").mkdir()
    return tmp_path


def record(repository: Path, **counts: int) -> None:
    (repository / COUNTS).write_text(json.dumps(counts))


def recorded(repository: Path, key: str) -> int:
    counts: dict[str, int] = json.loads((repository / COUNTS).read_text())
    return counts[key]


def test_higher_count_names_file_and_word(repository: Path) -> None:
    record(repository, player=1)
    (repository / "a.py").write_text("player = 1\n\nplayer = 2\n")
    assert check(repository) == [
        "player: 2 found, 1 recorded; use candidate process instead: a.py:1, a.py:3",
    ]


def test_lower_count_asks_for_lower(repository: Path) -> None:
    record(repository, player=2)
    (repository / "a.py").write_text("player = 1\n")
    assert check(repository) == [f"player: 1 found, 2 recorded; lower the ceiling: {LOWER}"]


def test_lower_records_a_fallen_count(repository: Path) -> None:
    record(repository, player=2)
    (repository / "a.py").write_text("player = 1\n")
    assert check(repository, lower=True) == []
    assert recorded(repository, "player") == 1


def test_lower_never_raises_a_ceiling(repository: Path) -> None:
    record(repository, player=1)
    (repository / "a.py").write_text("player = player\n")
    assert len(check(repository, lower=True)) == 1
    assert recorded(repository, "player") == 1


@pytest.mark.parametrize("text", ["player_handle", "PlayerHandle", "NoPlayer", "PLAYERS", "all players"])
def test_name_counts_within_identifiers(repository: Path, text: str) -> None:
    record(repository)
    (repository / "a.md").write_text(text)
    assert [line.partition(":")[0] for line in check(repository)] == ["player"]


@pytest.mark.parametrize("text", ["playeroni", "mushroom", "Roommate", "contestant"])
def test_longer_word_is_another_word(repository: Path, text: str) -> None:
    record(repository)
    (repository / "a.md").write_text(text)
    assert check(repository) == []


@pytest.mark.parametrize("text", ["It tells\nthe time.", "# It tell\n# how.", "Tells  with"])
def test_phrase_counts_across_line_breaks(repository: Path, text: str) -> None:
    record(repository)
    (repository / "a.md").write_text(text)
    assert [line.partition(":")[0] for line in check(repository)] == ["tell(s) how/whether/the/with"]


def test_non_imperative_docstring_counts(repository: Path) -> None:
    record(repository)
    (repository / "a.py").write_text('def f():\n    """What it returns."""\n')
    assert check(repository) == ["D401: 1 found, 0 recorded; use an imperative first line instead: a.py:2"]


@pytest.mark.parametrize("text", EXEMPT)
def test_exempt_strings_do_not_count(repository: Path, text: str) -> None:
    record(repository)
    (repository / "a.md").write_text(text)
    assert check(repository) == []


def test_data_and_ignored_files_do_not_count(repository: Path) -> None:
    record(repository)
    (repository / ".gitignore").write_text("outputs/\n")
    for folder in ("outputs", "results", "datasets"):
        (repository / folder).mkdir()
        (repository / folder / "a.md").write_text("player")
    assert check(repository) == []


def test_this_repository_passes() -> None:
    assert check(ROOT) == []
