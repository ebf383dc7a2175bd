"""Sources of problems and fixtures, in the size of a device."""

import ast
import re
from pathlib import Path
from typing import Literal

Device = Literal["cpu", "gpu"]

HERE = Path(__file__).parent
_SIZED = re.compile(r"^(?P<names>[A-Z_, ]+) = .*?  # gpu: (?P<sizes>.*)$", re.MULTILINE)


def problem(name: str, device: Device) -> str:
    """Source of a reference module."""
    return sized((HERE / "problems" / f"{name}.py").read_text(), device)


def fixture(name: str, device: Device) -> str:
    """Source of a candidate."""
    return sized((HERE / "fixtures" / f"{name}.py").read_text(), device)


def fixture_names() -> set[str]:
    """All fixtures that there are files of."""
    return {path.stem for path in (HERE / "fixtures").glob("*.py")}


def sized(source: str, device: Device) -> str:
    """``NAMES = small  # gpu: large`` becomes ``NAMES = large`` for the GPU."""
    return _SIZED.sub(r"\g<names> = \g<sizes>", source) if device == "gpu" else source


def mechanism(source: str) -> str:
    """Return a program without its docstrings, names and constants."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, names.setdefault(value, f"n{len(names)}"))
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)
