"""Environment variables of the agent side, except those of model services, which their clients read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.dialects import catalogue
from adaexplore.settings.paths import expanded


@dataclass(frozen=True)
class Environment:
    """The environment variables of this project; its token never shows in ``repr``."""

    judge_token: str | None = field(default=None, repr=False)  # sent to a remote judge
    kernelbench_root: Path | None = None  # the folder that holds ``level1/`` and so on
    # folders of other benchmarks' tasks, by the variable that names each
    benchmarks: Mapping[str, str] = field(default_factory=dict)


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Read the project's variables from ``variables`` (``os.environ``); a blank one counts as missing.

    Raises:
        ConfigError: ``KERNELBENCH_ROOT`` starts with an unknown home directory.
    """
    given = {name: text.strip() for name, text in variables.items() if text.strip()}
    root = given.get("KERNELBENCH_ROOT")
    return Environment(
        judge_token=given.get("ADAEXPLORE_JUDGE_TOKEN"),
        kernelbench_root=None if root is None else expanded(root),
        benchmarks={name: given[name] for name in catalogue.VARIABLES.values() if name in given},
    )
