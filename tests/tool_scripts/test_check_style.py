"""Banned names and phrases are found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tool_scripts.check_style import EXEMPT, ROOT, check


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_banned_name_is_reported_with_its_places(repository: Path) -> None:
    (repository / "a.py").write_text("player = 1\n\nplayer = 2\n")
    advice = "player; use candidate process instead"
    assert check(repository) == [f"a.py:1: {advice}", f"a.py:3: {advice}"]


@pytest.mark.parametrize("text", ["player_handle", "PlayerHandle", "NoPlayer", "PLAYERS", "all players"])
def test_name_counts_within_identifiers(repository: Path, text: str) -> None:
    (repository / "a.md").write_text(text)
    assert [line.partition(";")[0] for line in check(repository)] == ["a.md:1: player"]


@pytest.mark.parametrize("text", ["playeroni", "mushroom", "Roommate", "contestant"])
def test_longer_word_is_another_word(repository: Path, text: str) -> None:
    (repository / "a.md").write_text(text)
    assert check(repository) == []


@pytest.mark.parametrize("text", ["It tells\nthe time.", "# It tell\n# how.", "Tells  with"])
def test_phrase_counts_across_line_breaks(repository: Path, text: str) -> None:
    (repository / "a.md").write_text(text)
    (line,) = check(repository)
    assert "tell(s) how/whether/the/with" in line


@pytest.mark.parametrize("text", EXEMPT)
def test_exempt_strings_do_not_count(repository: Path, text: str) -> None:
    (repository / "a.md").write_text(text)
    assert check(repository) == []


def test_test_names_have_at_most_eight_words(repository: Path) -> None:
    eight, nine = ("def test_" + "_".join(["word"] * count) for count in (8, 9))
    (repository / "a.py").write_text(f"{eight}(): ...\n{nine}(): ...\n")
    assert check(repository) == [f"a.py:2: {nine}; use at most eight words"]


def test_data_and_ignored_files_do_not_count(repository: Path) -> None:
    (repository / ".gitignore").write_text("outputs/\n")
    for folder in ("outputs", "results", "datasets"):
        (repository / folder).mkdir()
        (repository / folder / "a.md").write_text("player")
    assert check(repository) == []


def test_this_repository_passes() -> None:
    assert check(ROOT) == []
