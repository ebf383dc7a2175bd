"""A simulated GPU for one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from online_judge.candidate.switches import GlobalFlags
from online_judge.cpu import simulated_cuda


@pytest.fixture
def gpu() -> Iterator[None]:
    with simulated_cuda("sm_90"):
        yield


@pytest.fixture(autouse=True, scope="module")
def switches() -> Iterator[None]:
    """Kernels that are imported here may switch what later tests look at."""
    before = GlobalFlags()
    yield
    before.restore()
