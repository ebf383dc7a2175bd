"""What the installed Triton offers."""

from __future__ import annotations

import pytest

from adaexplore.core.environment import TritonFacts


@pytest.fixture(scope="session")
def api() -> TritonFacts:
    pytest.importorskip("triton")
    from online_judge.processes.environment import triton_facts

    return triton_facts()
