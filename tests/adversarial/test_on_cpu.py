"""Try the corpus on the judge without a GPU, and on a naive harness, which it fools."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from tests.online_judge.live import running_judge

from .manifest import CASES, DEGENERATE, HONEST, ROWS
from .naive import NaiveHarness, NaiveVerdict, naive_harness
from .sources import fixture, fixture_names, mechanism, problem
from .trials import Trials, sweep

FOOLS = [name for name, case in CASES.items() if case.naive is not None]
FAST = 5.0


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    folder = tmp_path_factory.mktemp("judged")
    state = tmp_path_factory.mktemp("state") / "verdicts.sqlite"
    with running_judge(folder, JUDGE_STATE=str(state)) as live:
        started = Trials(live, "cpu")
        yield started
    started.report()
    sweep()


@pytest.fixture(scope="module")
def naive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NaiveHarness]:
    with naive_harness(tmp_path_factory.mktemp("naive")) as harness:
        yield harness
    sweep()


@pytest.fixture(scope="module")
def honest(naive: NaiveHarness) -> NaiveVerdict:
    """Return the naive harness's verdict on the honest kernel under the interpreter."""
    verdict = naive.judge(problem("gate", "cpu"), fixture(HONEST["gate"], "cpu"))
    assert verdict.correct
    return verdict


def test_every_row_has_two_fixtures_or_a_reason() -> None:
    assert [row.number for row in ROWS] == list(range(1, 53))
    assert [row.number for row in ROWS if len(row.cases) < 2 and not row.reason] == []


def test_fixture_files_match_the_listed_cases() -> None:
    preludes = {case.prelude for case in CASES.values() if case.prelude is not None}
    assert fixture_names() == {*CASES, *HONEST.values(), *preludes}
    assert len(CASES) == sum(len(row.cases) for row in ROWS)


def test_fixtures_of_a_row_are_written_differently() -> None:
    for row in ROWS:
        programs = {case.fixture: mechanism(fixture(case.fixture, "cpu")) for case in row.cases}
        for one, other in combinations(programs, 2):
            assert programs[one] != programs[other], (one, other)


def test_every_problem_has_different_cpu_and_gpu_sizes() -> None:
    for name in {case.problem for case in CASES.values()}:
        assert problem(name, "cpu") != problem(name, "gpu"), name


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


@pytest.mark.parametrize("name", FOOLS)
def test_cheat_fools_a_naive_harness(naive: NaiveHarness, honest: NaiveVerdict, name: str) -> None:
    """In one of three attempts: some race with a thread of theirs, and lose it on a busy machine."""
    case = CASES[name]

    def fooled() -> bool:
        verdict = naive.judge(
            problem(case.problem, "cpu"),
            fixture(name, "cpu"),
            candidate_first=case.candidate_first,
            prelude=None if case.prelude is None else fixture(case.prelude, "cpu"),
        )
        ratio = max(verdict.speedup / honest.speedup, honest.runtime_ms / verdict.runtime_ms)
        return verdict.correct and (case.naive != "fast" or ratio > FAST)

    assert any(fooled() for _ in range(3))
