"""A simulated GPU for one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from online_judge.cpu import simulated_cuda


@pytest.fixture
def gpu() -> Iterator[None]:
    with simulated_cuda("sm_90"):
        yield
