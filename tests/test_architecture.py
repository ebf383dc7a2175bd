"""The packages: import contracts hold, can fail, and the agent side needs no torch."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
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
        if not module.name.endswith(("__main__", "view.server", "inlining.worker")):
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


def layer_names(contract: str = "layers") -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    text = parser[f"importlinter:contract:{contract}"]["layers"]
    return {name.strip(" ()") for line in text.split("\n") for name in line.split("|")} - {""}


def build_skeleton(folder: Path) -> None:
    """Empty packages with the real names, under the real contracts."""
    shutil.copy(ROOT / ".importlinter", folder)
    for name in {*PACKAGES, *layer_names(), *layer_names("judge-layers")} - {"adaexplore.__main__"}:
        package = folder.joinpath(*name.split("."))
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()


def test_import_contracts_hold() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_agent_package_has_its_layer() -> None:
    packages = {f"adaexplore.{path.parent.name}" for path in ROOT.glob("adaexplore/*/__init__.py")}
    assert packages == {name for name in layer_names() if name.startswith("adaexplore.")} - {
        "adaexplore.__main__"
    }


def test_every_package_of_the_judge_has_its_layer() -> None:
    packages = {f"online_judge.{path.parent.name}" for path in ROOT.glob("online_judge/*/__init__.py")}
    assert packages == {
        name for name in layer_names("judge-layers") if (ROOT / name.replace(".", "/")).is_dir()
    }


ROOTS = ("adaexplore", "online_judge", "skill_memory", "synthesis")
COMMANDS = ROOT / "adaexplore/cli"  # one file per command


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for root in ROOTS for path in ROOT.glob(f"{root}/**/*.py")} - {COMMANDS}),
    ids=lambda folder: str(folder.relative_to(ROOT)),
)
def test_no_folder_has_over_15_modules(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= 15


def test_judge_has_no_import_cycle() -> None:
    """Imports for type checks and within functions count."""
    modules = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in ROOT.glob("online_judge/**/*.py")
    }
    imports: dict[str, set[str]] = {}
    for path, name in modules.items():
        found = imports[name.removesuffix(".__init__")] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("online_judge"):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found.add(whole if whole in modules.values() else str(node.module))
    assert list(cycles(imports)) == []
    assert list(cycles({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()})) == ["a", "b", "c"]


def cycles(imports: dict[str, set[str]]) -> Iterator[str]:
    """Modules that are left when those that import nothing that is left are taken away, again and again."""
    left = {
        name: {other for other in others if other in imports} - {name} for name, others in imports.items()
    }
    while leaves := {name for name, others in left.items() if not others}:
        left = {name: others - leaves for name, others in left.items() if name not in leaves}
    yield from left


def test_contracts_catch_each_kind_of_wrong_import(tmp_path: Path) -> None:
    wrong = {
        "adaexplore/core/bad.py": "import adaexplore.settings",
        "adaexplore/records/bad.py": "import adaexplore.llm",
        "adaexplore/search/bad.py": "import adaexplore.tasks",
        "adaexplore/report/bad.py": "import adaexplore.settings",
        "adaexplore/llm/bad.py": "import numpy",
        "tool_scripts/bad.py": "import online_judge",
        "online_judge/bad.py": "import adaexplore.settings",
        "online_judge/evaluator/bad.py": "import online_judge.candidate",
        "online_judge/verdict/bad.py": "import torch",
        "online_judge/queue/bad.py": "import ray",
    }
    build_skeleton(tmp_path)
    assert lint_imports(tmp_path).returncode == 0
    for path, text in wrong.items():
        (tmp_path / path).write_text(text + "\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert "0 kept, 9 broken" in result.stdout
    for importer, imported in (
        ("adaexplore.core", "adaexplore.settings"),
        ("adaexplore.records", "adaexplore.llm"),
        ("online_judge.evaluator", "online_judge.candidate"),
    ):
        assert f"{importer} is not allowed to import {imported}" in result.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_package_says_what_it_is_for(package: str) -> None:
    assert (ROOT / package / "__init__.py").read_text().startswith('"""')


def test_agent_side_imports_neither_torch_nor_sdk() -> None:
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


def test_wheel_leaves_out_tool_scripts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["setuptools"]["packages"]["find"]["include"]
    assert included == [f"{package}*" for package in PACKAGES if package != "tool_scripts"]
