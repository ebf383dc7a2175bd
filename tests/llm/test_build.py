from __future__ import annotations

import subprocess
import sys

import pytest

from adaexplore.core.errors import ConfigError
from adaexplore.core.plan import Purpose
from adaexplore.llm.vendors.vendor import RecordedReply
from tests.llm.conftest import ask, build_client


def test_replay_answers_from_the_replies_given() -> None:
    replies = {"1_1/1/large": RecordedReply(Purpose.LARGE, "recorded")}
    assert build_client("replay", "m", replies=replies).complete(ask()).text == "recorded"


@pytest.mark.parametrize(("server_type", "key"), [("command", "command"), ("replay", "replay_path")])
def test_missing_setting_is_named(server_type: str, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        build_client(server_type, "m")


def test_importing_clients_imports_no_sdk() -> None:
    code = (
        "import sys, adaexplore.run.vendors\n"
        "adaexplore.run.vendors.all_vendors()\n"
        "sys.exit(any(name in sys.modules for name in ('openai', 'anthropic', 'httpx', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
