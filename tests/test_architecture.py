"""The rooms of the house: import contracts hold, can fail, and the agent side needs no torch."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("adaexplore", "online_judge", "synthesis", "skill_memory", "tool_scripts")

IMPORT_AGENT_SIDE = """
import importlib, pkgutil, sys
for name in ("torch", "triton", "numpy", "fastapi", "prometheus_client", "uvicorn"):
    sys.modules[name] = None
for package in ("adaexplore", "synthesis", "skill_memory"):
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(sorted({"openai", "anthropic"} & set(sys.modules)))
"""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as run; run()",
            "--no-cache",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def layer_names() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    text = parser["importlinter:contract:layers"]["layers"]
    return {name.strip(" ()") for line in text.split("\n") for name in line.split("|")} - {""}


def build_skeleton(folder: Path) -> None:
    """Empty packages with the real names, under the real contracts."""
    shutil.copy(ROOT / ".importlinter", folder)
    for name in {*PACKAGES, *layer_names()} - {"adaexplore.__main__"}:
        package = folder.joinpath(*name.split("."))
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()


def test_import_contracts_hold() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_room_of_the_agent_side_has_its_layer() -> None:
    rooms = {f"adaexplore.{path.parent.name}" for path in ROOT.glob("adaexplore/*/__init__.py")}
    assert rooms == {name for name in layer_names() if name.startswith("adaexplore.")} - {
        "adaexplore.__main__"
    }


def test_contracts_catch_each_kind_of_wrong_import(tmp_path: Path) -> None:
    wrong = {
        "adaexplore/core/bad.py": "import adaexplore.settings",
        "adaexplore/records/bad.py": "import adaexplore.llm",
        "adaexplore/search/bad.py": "import adaexplore.tasks",
        "adaexplore/report/bad.py": "import adaexplore.settings",
        "adaexplore/llm/bad.py": "import numpy",
        "tool_scripts/bad.py": "import online_judge",
        "online_judge/bad.py": "import adaexplore.settings",
    }
    build_skeleton(tmp_path)
    assert lint_imports(tmp_path).returncode == 0
    for path, text in wrong.items():
        (tmp_path / path).write_text(text + "\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert "0 kept, 6 broken" in result.stdout
    for importer, imported in (
        ("adaexplore.core", "adaexplore.settings"),
        ("adaexplore.records", "adaexplore.llm"),
    ):
        assert f"{importer} is not allowed to import {imported}" in result.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_package_says_what_it_is_for(package: str) -> None:
    assert (ROOT / package / "__init__.py").read_text().startswith('"""')


def test_agent_side_imports_without_torch_and_loads_no_sdk() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_AGENT_SIDE], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        declared += extra
    names = {re.split(r"[<>=;\[ ]", requirement)[0].lower() for requirement in declared}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0].lower() for line in lines if "==" in line and not line.startswith("#")}
    assert names == pinned
