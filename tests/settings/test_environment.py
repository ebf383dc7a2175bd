"""Environment variables are read in one place and the token never shows."""

from __future__ import annotations

from pathlib import Path

from adaexplore.settings.environment import Environment, read_environment


def test_blank_variable_counts_as_absent() -> None:
    environment = read_environment({"ADAEXPLORE_JUDGE_TOKEN": "  ", "KERNELBENCH_ROOT": ""})
    assert environment == Environment()


def test_token_is_read_but_never_shown() -> None:
    environment = read_environment({"ADAEXPLORE_JUDGE_TOKEN": "secret"})
    assert environment.judge_token == "secret"
    assert "secret" not in repr(environment)


def test_kernelbench_root_is_a_path() -> None:
    assert read_environment({"KERNELBENCH_ROOT": "/data/kb"}).kernelbench_root == Path("/data/kb")
