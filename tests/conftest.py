"""Settings shared by all tests."""

import os

import pytest
from hypothesis import settings

settings.register_profile("shared-machine", deadline=None, derandomize=True)
settings.load_profile("shared-machine")


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as wide as they like: processes that tests are spread over have a ``COLUMNS``."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first where tests are spread over processes, so that all end together."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)
