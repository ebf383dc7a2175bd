"""The lints: each has an id, and a message that says what to do instead."""

from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, ConfigDict

from adaexplore.settings.yaml_text import read_bundled


@dataclass(frozen=True)
class Finding:
    """A fault and its place."""

    rule: str  # id of the lint, a key of ``messages`` in ``lints.yaml``
    line: int  # line of the source, from 1
    message: str  # one line that says what to do instead


class LintTable(BaseModel):
    """``lints.yaml``; the file explains its parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    messages: dict[str, str]
    names: dict[str, str]
    keywords: dict[str, dict[str, str]]
    module_attributes: str


@cache
def lint_table() -> LintTable:
    return LintTable.model_validate(read_bundled("adaexplore.preflight", "lints.yaml"))


def finding(rule: str, line: int, **facts: object) -> Finding:
    return Finding(rule, line, lint_table().messages[rule].format(**facts))
