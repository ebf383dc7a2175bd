"""Whose code a file is: the candidate's, or that of Python, an installed package or the judge."""

from __future__ import annotations

import os
import sysconfig
from functools import cache

import torch
import triton

import adaexplore.core

_MARKS = ("/site-packages/", "/dist-packages/", "/torchinductor_")


def is_candidates(file: str) -> bool:
    """Return whether code from ``file`` counts as the candidate's own, files that it generated included.

    Code without a file (``<string>``, ``<frozen os>``) and what ``torch.compile`` generated does not.
    """
    if not file or file.startswith("<"):
        return False
    if any(mark in file for mark in _MARKS) or file.startswith(_installed()):
        return False
    cached = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")
    return not (cached and file.startswith(cached))


@cache
def _installed() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages = [os.path.dirname(str(package.__file__)) for package in (torch, triton, adaexplore)]
    packages.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # the judge
    return tuple(f"{path.rstrip('/')}/" for path in {*paths, *packages} if path)
