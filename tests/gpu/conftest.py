"""What tests on a real GPU share."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.online_judge.live import LiveJudge, running_judge


@pytest.fixture(scope="session")
def cuda() -> None:
    """Skip without a CUDA device; another process checks, so that CUDA does not start in this one."""
    question = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", question], capture_output=True).returncode != 0:
        pytest.skip("no CUDA device")


@pytest.fixture(scope="module")
def gpu_judge(cuda: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Yield a judge of the GPU with two evaluations at a time."""
    folder = tmp_path_factory.mktemp("judge")
    with running_judge(folder, JUDGE_DEVICE="cuda", MAX_CONCURRENT_EVALS="2") as live:
        yield live
