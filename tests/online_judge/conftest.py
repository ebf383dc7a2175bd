"""Judges to test against."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .live import ON_RAY, LiveJudge, running_judge

NOT_ON_RAY = {
    "test_queue_status_has_string_keys_per_device": "a cluster of three nodes has three devices",
    "test_requesting_missing_cuda_is_503": "a cluster waits for a GPU that may join",
    "test_cancelled_job_that_waits_never_runs": "three nodes run three jobs at a time, so none waits",
    "test_higher_priority_goes_first": "three nodes run three jobs at a time, so none waits",
    "test_waiting_jobs_over_the_limit_are_429": "three nodes run three jobs at a time, so none waits",
    "test_each_reference_has_a_process_that_is_kept": "each node has a process for it",
    "test_killed_judge_finishes_what_it_had_accepted": "jobs share no evaluation until a device has joined",
}
"""Tests that cannot hold on a Ray cluster, and why."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if ON_RAY else ():
        why = NOT_ON_RAY.get(getattr(item, "originalname", item.name))
        if why is not None:
            item.add_marker(pytest.mark.skip(why))


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    """Have all judges run on a Ray cluster of three nodes of this machine if ``TESTS_ON_RAY`` is set."""
    if not ON_RAY:
        yield
        return
    from .scale.cluster import ray_nodes

    with ray_nodes(3) as nodes, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGE_RAY", nodes.cluster.address)
        yield


@pytest.fixture(scope="module")
def frail_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """One judge with one slot, for tests that break parts from which it recovers."""
    with running_judge(tmp_path_factory.mktemp("frail")) as live:
        yield live


@pytest.fixture
def own_judge(tmp_path: Path) -> Iterator[Callable[..., LiveJudge]]:
    """Start judges that a test may break; takes environment variables."""
    with contextlib.ExitStack() as stack:
        yield lambda **environment: stack.enter_context(running_judge(tmp_path, **environment))
