"""Build the wheel, install it into a clean virtual environment and use it away from the repository.

    python -m tool_scripts.check_wheel [--python python3.12]

Runs ``--help`` of each command and two tasks of the quickstart. Needs a package index.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from adaexplore.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run the check; raises subprocess.CalledProcessError for the first command that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python to install it for")
    python = parser.parse_args().python
    with tempfile.TemporaryDirectory() as folder:
        away = Path(folder)
        source = away / "source"
        _run(["git", "clone", "-q", str(ROOT), str(source)], away)  # committed files only, no earlier build
        _run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(away), str(source)], away)
        (wheel,) = away.glob("adaexplore-*.whl")
        _run([python, "-m", "venv", "clean"], away)
        lock = str(source / "requirements.lock")
        _run(["clean/bin/pip", "install", "-q", "-c", lock, f"{wheel}[judge,view]"], away)
        adaexplore = str(away / "clean" / "bin" / "adaexplore")
        for command in COMMANDS:
            _run([adaexplore, command, "--help"], away, stdout=subprocess.DEVNULL)
        (away / "two.txt").write_text("1 1\n1 2\n", encoding="utf-8")
        changes = ["--set", "test_list_path=two.txt", "--set", "save_path=run"]
        _run([adaexplore, "run", "--config", "config/quickstart.yaml", *changes], away)
        _run([adaexplore, "stats", "run"], away)


def _run(command: list[str], folder: Path, stdout: int | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=stdout)


if __name__ == "__main__":
    main()
