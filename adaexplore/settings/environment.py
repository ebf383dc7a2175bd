"""Environment variables of the agent side; no other module reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.dialects import catalogue
from adaexplore.settings.paths import expanded

KEY_VARIABLES: Mapping[str, str] = {
    "OPENAI_API_KEY": "openai_api_key",
    "AZURE_API_KEY": "azure_api_key",
    "ANTHROPIC_API_KEY": "anthropic_api_key",
}


@dataclass(frozen=True)
class Environment:
    """The environment variables of this project; keys never show in ``repr``.

    Attributes:
        azure_endpoint: the address of the Azure resource.
        judge_token: sent to a remote judge.
        kernelbench_root: the folder that holds ``level1/`` and so on.
        benchmarks: folders of other benchmarks' tasks, by the variable that names each.
    """

    openai_api_key: str | None = field(default=None, repr=False)
    azure_api_key: str | None = field(default=None, repr=False)
    azure_endpoint: str | None = field(default=None, repr=False)
    anthropic_api_key: str | None = field(default=None, repr=False)
    judge_token: str | None = field(default=None, repr=False)
    kernelbench_root: Path | None = None
    benchmarks: Mapping[str, str] = field(default_factory=dict)

    def keys_present(self) -> dict[str, bool]:
        """Return whether each key variable is set, by its name."""
        return {variable: getattr(self, name) is not None for variable, name in KEY_VARIABLES.items()}


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Read the project's variables from ``variables`` (``os.environ``); a blank one counts as missing.

    Raises:
        ConfigError: ``KERNELBENCH_ROOT`` starts with an unknown home directory.
    """

    def value(name: str) -> str | None:
        return variables.get(name, "").strip() or None

    root = value("KERNELBENCH_ROOT")
    return Environment(
        openai_api_key=value("OPENAI_API_KEY"),
        azure_api_key=value("AZURE_API_KEY"),
        azure_endpoint=value("AZURE_OPENAI_ENDPOINT"),
        anthropic_api_key=value("ANTHROPIC_API_KEY"),
        judge_token=value("ADAEXPLORE_JUDGE_TOKEN"),
        kernelbench_root=None if root is None else expanded(root),
        benchmarks={name: text for name in catalogue.VARIABLES.values() if (text := value(name))},
    )
