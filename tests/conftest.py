"""Settings shared by all tests."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.online_judge.live import LiveJudge

settings.register_profile("shared-machine", deadline=None, derandomize=True)
settings.load_profile("shared-machine")


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as wide as they like: processes that tests are spread over have a ``COLUMNS``."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Start one judge for all tests that do not change it; at first it may open few files."""
    from tests.online_judge.live import running_judge

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        try:
            folder = tmp_path_factory.mktemp("judge")
            live = stack.enter_context(running_judge(folder, MAX_CONCURRENT_EVALS="2"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        yield live


@pytest.fixture
def threads_that_switch_while_a_tree_is_built() -> Iterator[None]:
    def switch(_phase: str, _info: dict[str, int]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(switch)
    gc.set_threshold(100)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(switch)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first if tests are spread over processes, so that all end together."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)
