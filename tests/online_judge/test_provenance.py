"""Whose code a file is."""

import os
import subprocess
import sys
from pathlib import Path

_ASK = (
    "import sys; from online_judge.candidate.provenance import is_candidates as own; print(own(sys.argv[1]))"
)


def test_folder_of_installed_packages_is_no_candidates(tmp_path: Path) -> None:
    installed, plain = tmp_path / "installed", tmp_path / "plain"
    (installed / "tqdm-4.0.dist-info").mkdir(parents=True)
    plain.mkdir()
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (installed, plain, root)))}

    def is_own(file: Path) -> str:
        command = [sys.executable, "-c", _ASK, str(file)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert is_own(installed / "tqdm" / "_monitor.py") == "False\n"
    assert is_own(plain / "candidate.py") == "True\n"
