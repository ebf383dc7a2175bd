"""Environment variables are read in one place and keys never show."""

from __future__ import annotations

from pathlib import Path

from adaexplore.settings.environment import Environment, read_environment


def test_blank_variable_counts_as_absent() -> None:
    environment = read_environment({"OPENAI_API_KEY": "  ", "KERNELBENCH_ROOT": ""})
    assert environment == Environment()


def test_keys_are_read_but_never_shown() -> None:
    names = (
        "OPENAI_API_KEY",
        "AZURE_API_KEY",
        "ANTHROPIC_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        "ADAEXPLORE_JUDGE_TOKEN",
    )
    environment = read_environment({name: f"secret-{name}" for name in names})
    assert environment.present == set(names[:-1])
    assert environment.judge_token == "secret-ADAEXPLORE_JUDGE_TOKEN"
    assert "secret" not in repr(environment)


def test_kernelbench_root_is_a_path() -> None:
    assert read_environment({"KERNELBENCH_ROOT": "/data/kb"}).kernelbench_root == Path("/data/kb")
