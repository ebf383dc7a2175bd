"""What the fuzzing script reads and how it fails; the fuzzing itself needs schemathesis and takes minutes."""

import json
import tomllib
from pathlib import Path

from tool_scripts.fuzz_api import CONFIG, errors_in, main


def test_missing_command_is_an_error_of_use(tmp_path: Path) -> None:
    assert main(["--schemathesis", str(tmp_path / "nothing")]) == 2


def test_errors_of_the_judge_are_found(tmp_path: Path) -> None:
    lines = [json.dumps({"level": level}) for level in ("info", "warning", "error", "critical")]
    log = tmp_path / "log"
    log.write_text("\n".join([*lines, "not JSON", "5", "{}"]))
    assert errors_in(log) == lines[2:]


def test_exclusions_are_of_single_operations() -> None:
    config = tomllib.loads(CONFIG.read_text("utf-8"))
    assert config["checks"] == {"enabled": True}
    assert all("include-path" in operation for operation in config["operations"])
