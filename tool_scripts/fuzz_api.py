"""Fuzz the judge's HTTP API with schemathesis: no 500, no answer that its OpenAPI document does not describe.

``python -m tool_scripts.fuzz_api [--seconds N] [--schemathesis COMMAND]``

A judge without a GPU is started three times: without a token, with one token, and with two clients that must
not see each other's jobs. ``fuzz_api.toml`` names what is not checked, and why. schemathesis belongs in a
virtual environment of its own: ``python3 -m venv DIR && DIR/bin/pip install schemathesis``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from adaexplore.core.errors import AdaExploreError, ConfigError
from tool_scripts.judge_bench.service import running_judge

log = logging.getLogger(__name__)

CONFIG = Path(__file__).with_suffix(".toml")
FOUND = 1
_RUN_LIMIT_S = "5"
_START_S = 30.0


@dataclass(frozen=True)
class Access:
    """One way to guard a judge.

    Attributes:
        name: of the run.
        clients: those of the file ``JUDGE_TOKENS``; their tokens are their names.
        token: ``ADAEXPLORE_JUDGE_TOKEN``.
    """

    name: str
    clients: tuple[str, ...] = ()
    token: str = ""

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return all tokens that the judge takes; none where it needs none."""
        return (*self.clients, self.token) if self.token else self.clients


RUNS = (Access("open"), Access("token", token="one"), Access("clients", clients=("ann", "bob")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 where anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz_api", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=600, help="of all runs together (600)")
    parser.add_argument("--schemathesis", default="schemathesis", help="the command (that on PATH)")
    parser.add_argument("--out", type=Path, help="keep reports and the judges' logs in this folder")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        command = shutil.which(options.schemathesis)
        if command is None:
            raise ConfigError(f"there is no command {options.schemathesis}; name it with --schemathesis")
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.out or Path(temporary)).absolute()
            each_s = max(1, options.seconds // len(RUNS))
            codes = [fuzz(access, command, each_s, folder / access.name) for access in RUNS]
    except AdaExploreError as error:
        log.error("%s", error)
        return error.exit_code
    return FOUND if any(codes) else 0


def fuzz(access: Access, command: str, seconds: int, folder: Path) -> int:
    """Start a judge and let schemathesis ask it; returns 0 where neither it nor the judge's log has an error.

    Args:
        access: how the judge is guarded.
        command: path of schemathesis.
        seconds: length of the run.
        folder: takes configuration, reports and the judge's log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        "RUNTIME_TIMEOUT": _RUN_LIMIT_S,
        "MAX_QUEUE_SIZE": "1000000",  # a full queue answers v1 with 503, which is an error to schemathesis
        "LOG_LEVEL": "info",
        "ADAEXPLORE_JUDGE_TOKEN": access.token,
        "JUDGE_TOKENS": _tokens_file(access, folder),
    }
    config = CONFIG.read_text("utf-8") + _access_config(access, folder)
    (folder / "schemathesis.toml").write_text(config, "utf-8")
    judge_log = folder / "judge.log"
    with (
        tempfile.TemporaryDirectory() as state,
        running_judge("cpu", 2, judge_log, JUDGE_STATE=f"{state}/state.sqlite", **environment) as address,
    ):
        bearer = {"Authorization": f"Bearer {access.tokens[0]}"} if access.tokens else {}
        document = httpx.get(f"{address}/openapi.json", headers=bearer, timeout=_START_S, trust_env=False)
        (folder / "openapi.json").write_bytes(document.raise_for_status().content)
        asked = [command, "--config-file", "schemathesis.toml", "run", "openapi.json", "--url", address]
        asked += ["--phases", "examples,coverage,fuzzing,stateful", "--max-time", str(seconds)]
        asked += ["--report", "json", "--report-json-path", "report.json"]
        if access.clients:  # else half of the requests bear a wrong token, as they do in the run with one
            asked += ["--generation-with-security-parameters", "false"]
        code = subprocess.run(asked, cwd=folder, check=False).returncode
    errors = errors_in(judge_log)
    for line in errors:
        log.warning("the judge logged: %s", line)
    return code or (FOUND if errors else 0)


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


def _tokens_file(access: Access, folder: Path) -> str:
    if not access.clients:
        return ""
    path = folder / "tokens"
    lines = [f"{name} {hashlib.sha256(name.encode()).hexdigest()}\n" for name in access.clients]
    path.write_text("".join(lines), "utf-8")
    return str(path)


def _access_config(access: Access, folder: Path) -> str:
    """Write the clients down for schemathesis; returns what its configuration says about them."""
    if not access.tokens:
        return ""
    users = [
        {"name": token, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {token}"}]}
        for token in access.tokens
    ]
    (folder / "clients.json").write_text(json.dumps({"auth": users}), "utf-8")
    peers = f"peers = {json.dumps(access.tokens)}\n" if len(access.tokens) > 1 else ""
    return f'\n[auth.wfc]\npath = "clients.json"\n{peers}'


if __name__ == "__main__":
    sys.exit(main())
