"""Fuzz the judge's HTTP API: no 500, no answer that its OpenAPI document does not describe.

It needs schemathesis, best in a virtual environment of its own, and takes ``FUZZ_SECONDS`` (600) in all::

    python3 -m venv DIR && DIR/bin/pip install schemathesis
    SCHEMATHESIS=DIR/bin/schemathesis python -m pytest -m long tests/online_judge/test_fuzz_api.py

``fuzz_api.toml`` names what is not checked, and why.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import httpx
import pytest

from .live import running_judge

CONFIG = Path(__file__).with_name("fuzz_api.toml")
SCHEMATHESIS = shutil.which(os.environ.get("SCHEMATHESIS", "schemathesis"))
SECONDS = int(os.environ.get("FUZZ_SECONDS", "600"))
ACCESS = {"open": (), "token": ("one",), "clients": ("ann", "bob")}
"""How a judge is guarded: not at all, by one token, by two clients that must not see each other's jobs."""
PHASES = "examples,coverage,fuzzing,stateful"


def errors_in(judge_log: Path) -> list[str]:
    """Return the log lines of errors that clients may not have seen."""
    found = []
    for line in judge_log.read_text("utf-8", "replace").splitlines():
        try:
            level = json.loads(line)["level"]
        except (ValueError, KeyError, TypeError):  # a process below the judge wrote it
            continue
        if level in ("error", "critical"):
            found.append(line)
    return found


def judge_access(tokens: tuple[str, ...], folder: Path) -> dict[str, str]:
    if len(tokens) < 2:
        return {"ADAEXPLORE_JUDGE_TOKEN": "".join(tokens), "JUDGE_TOKENS": ""}
    lines = [f"{token} {hashlib.sha256(token.encode()).hexdigest()}\n" for token in tokens]
    (folder / "tokens").write_text("".join(lines))
    return {"ADAEXPLORE_JUDGE_TOKEN": "", "JUDGE_TOKENS": str(folder / "tokens")}


def fuzz_config(tokens: tuple[str, ...], folder: Path) -> str:
    """Write the clients down for schemathesis, and return its configuration."""
    if not tokens:
        return CONFIG.read_text("utf-8")
    users = [
        {"name": token, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {token}"}]}
        for token in tokens
    ]
    (folder / "clients.json").write_text(json.dumps({"auth": users}))
    peers = f"peers = {json.dumps(tokens)}\n" if len(tokens) > 1 else ""
    return CONFIG.read_text("utf-8") + f'\n[auth.wfc]\npath = "clients.json"\n{peers}'


@pytest.mark.long
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.skipif(SCHEMATHESIS is None, reason="no command schemathesis; name one with SCHEMATHESIS")
@pytest.mark.parametrize("access", ACCESS)
def test_answers_are_as_described(access: str, tmp_path: Path) -> None:
    tokens = ACCESS[access]
    (tmp_path / "schemathesis.toml").write_text(fuzz_config(tokens, tmp_path), "utf-8")
    environment = judge_access(tokens, tmp_path) | {
        "RUNTIME_TIMEOUT": "5",
        "MAX_CONCURRENT_EVALS": "2",
        "MAX_QUEUE_SIZE": "1000000",  # a full queue answers v1 with 503, which is an error to schemathesis
        "LOG_FORMAT": "json",
        "JUDGE_STATE": str(tmp_path / "state.sqlite"),
    }
    with running_judge(tmp_path, **environment) as judge:
        bearer = {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}
        document = httpx.get(f"{judge.url}/openapi.json", headers=bearer, timeout=30, trust_env=False)
        (tmp_path / "openapi.json").write_bytes(document.raise_for_status().content)
        asked = [str(SCHEMATHESIS), "--config-file", "schemathesis.toml", "run", "openapi.json"]
        asked += ["--url", judge.url, "--phases", PHASES, "--max-time", str(SECONDS // len(ACCESS))]
        if len(tokens) > 1:  # else half of the requests bear a wrong token, as they do in the run with one
            asked += ["--generation-with-security-parameters", "false"]
        code = subprocess.run(asked, cwd=tmp_path, check=False).returncode
    assert (code, errors_in(tmp_path / "judge.log")) == (0, [])


def test_errors_of_the_judge_are_found(tmp_path: Path) -> None:
    lines = [json.dumps({"level": level}) for level in ("info", "warning", "error", "critical")]
    log = tmp_path / "log"
    log.write_text("\n".join([*lines, "not JSON", "5", "{}"]))
    assert errors_in(log) == lines[2:]


def test_exclusions_are_of_single_operations() -> None:
    config = tomllib.loads(CONFIG.read_text("utf-8"))
    assert config["checks"] == {"enabled": True}
    assert all("include-path" in operation for operation in config["operations"])
