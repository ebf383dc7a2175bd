"""Judges to test against."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .live import LiveJudge, running_judge


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """One judge for all tests that leave it as it was."""
    with running_judge(tmp_path_factory.mktemp("judge"), MAX_CONCURRENT_EVALS="2") as live:
        yield live


@pytest.fixture(scope="module")
def frail_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """One judge with one slot for tests that break what it recovers from."""
    with running_judge(tmp_path_factory.mktemp("frail")) as live:
        yield live


@pytest.fixture
def own_judge(tmp_path: Path) -> Iterator[Callable[..., LiveJudge]]:
    """Starts judges that a test may break; takes environment variables."""
    with contextlib.ExitStack() as stack:
        yield lambda **environment: stack.enter_context(running_judge(tmp_path, **environment))
