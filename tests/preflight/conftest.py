"""The Triton that lints are held against."""

from __future__ import annotations

import pytest

from adaexplore.preflight.triton_api import TritonApi, triton_api


@pytest.fixture(scope="module")
def api() -> TritonApi:
    found = triton_api("3.7.1")
    assert found is not None
    return found
