"""The corpus of cheats against the judge on a real GPU."""

from collections.abc import Iterator

import pytest

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from tests.adversarial.manifest import CASES, DEGENERATE, HONEST
from tests.adversarial.trials import Trials, sweep
from tests.online_judge.live import running_judge

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def trials(cuda: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    folder = tmp_path_factory.mktemp("judged")
    state = tmp_path_factory.mktemp("state") / "verdicts.sqlite"
    with running_judge(folder, JUDGE_DEVICE="cuda", JUDGE_STATE=str(state)) as live:
        started = Trials(live, "gpu")
        yield started
    started.report()
    sweep()


@pytest.mark.parametrize("name", HONEST)
def test_honest_twin_passes_without_suspicion(trials: Trials, name: str) -> None:
    answer = trials.honest(name)
    metadata = answer["metadata"]
    assert answer["correctness"], answer
    severities = {all_flags()[flag].severity for flag in metadata.get("integrity", [])}
    assert severities <= {Severity.NOTE}
    assert name in DEGENERATE or "degenerate_problem" not in metadata.get("problem_flags", [])


@pytest.mark.parametrize("name", CASES)
def test_cheat_gains_nothing(trials: Trials, name: str) -> None:
    assert trials.complaint(name) == ""
