"""Find what the modules of a package declare, so that a new one needs no entry in a list."""

import importlib
import pkgutil
from typing import Any


def declared(package: str, name: str) -> list[Any]:
    """Return the attribute ``name`` of every module below ``package`` that has it, by the modules' names.

    A process without access to the files must have asked once before, and keep the answer.
    """
    path = importlib.import_module(package).__path__
    names = sorted(found.name for found in pkgutil.walk_packages(path, f"{package}."))
    modules = map(importlib.import_module, names)
    return [getattr(module, name) for module in modules if hasattr(module, name)]
