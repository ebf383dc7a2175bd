"""KernelBench's problems on recorded verdicts; no judge runs."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import JudgeUnavailableError
from tests.judge_server import PASSED, Answer, JudgeServer
from tool_scripts.bench_judge import main, parser
from tool_scripts.judge_bench import candidates, correctness_figures, parts, service
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.plan import Plan
from tool_scripts.judge_bench.records import Judged, Ledger
from tool_scripts.judge_bench.service import Client

REFERENCE = """
class Model: ...
def get_inputs(): return []
def get_init_inputs(): return []
NAME = "{name}"
"""
FILES = ("level1/1_a", "level1/10_b", "level2/1_c", "level3/10_d", "level3/9_e")
IN_ORDER = ["level3-9_e", "level3-10_d", "level2-1_c", "level1-1_a", "level1-10_b"]
BROKEN = "Reference failed: RuntimeError: boom"
DIED = "the judge's own processes died twice during this evaluation; try again"


class FakeJudge:
    """Passes every job but those that ``errors`` names; keeps the names of what was submitted."""

    def __init__(self) -> None:
        self.errors: dict[str, str] = {}
        self.asked: list[str] = []
        self.state = "done"
        self.fields: list[tuple[str, str]] = []

    def __call__(self, method: str, path: str, body: dict[str, Any], key: str | None) -> Answer:
        if method == "POST":
            text = body["request"]["original_model_src"]
            name = text.rpartition('NAME = "')[2].partition('"')[0] if "NAME = " in text else "warm-up"
            self.asked.append(name)
            asked = tuple(body["request"].get(key, "") for key in ("dtype_str", "direction"))
            if any(asked) and asked not in self.fields:
                self.fields.append(asked)
            return 202, {"id": name}, {}
        name = path.rpartition("/")[2].partition("?")[0]
        if error := self.errors.get(name):
            return 200, {"state": "failed", "error": error}, {}
        verdict = {"status": "passed", **{k: PASSED[k] for k in ("metadata", "runtime_stats")}}
        return 200, {"state": self.state, "verdict": verdict}, {}

    def new(self) -> list[str]:
        """Return the problems asked since the last call, without warming up."""
        asked, self.asked = [name for name in self.asked if name != "warm-up"], []
        return asked


@pytest.fixture
def kernelbench(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / "kb" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(REFERENCE.format(name=name.replace("/", "-")))
    return tmp_path / "kb"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    fake = FakeJudge()
    with JudgeServer(jobs=fake) as server:

        @contextlib.contextmanager
        def running(*_: object) -> Iterator[str]:
            yield server.url

        monkeypatch.setattr(parts, "running_judge", running)
        yield fake


@pytest.fixture
def run(tmp_path: Path, kernelbench: Path) -> Callable[..., int]:
    def once(**changes: Any) -> int:
        fields = {"deadline": time.monotonic() + 60, "slots": 1, "in_flight": 1, "kernelbench": kernelbench}
        plan = Plan(device="cuda", recorded=(), own=(), out=tmp_path, **(fields | changes))
        return parts.problems(plan, Ledger(tmp_path, "cuda", "problems"))

    return once


def recorded(folder: Path) -> list[Judged]:
    return Ledger(folder, "cuda", "problems").of(Judged)


def verdict(problem: str, speedup: float | None = 1.0, **changes: Any) -> Judged:
    fields = {"unit": f"problems/{problem}", "status": "passed", "speedup": speedup, "seconds": 1.0}
    return Judged(candidate=f"{problem}/reference", problem=problem, **(fields | changes))


def failure(problem: str, error: str) -> Judged:
    return verdict(problem, None, status="error", error=error)


def figures_of(folder: Path, records: list[Judged]) -> Any:
    ledger = Ledger(folder, "cuda", "problems")
    for each in records:
        ledger.add(each)
    return correctness_figures.problems(ledger)


def test_level_3_comes_first_each_by_number(
    judge: FakeJudge, run: Callable[..., int], tmp_path: Path
) -> None:
    assert run() == 0
    assert judge.new() == IN_ORDER
    assert [each.problem for each in recorded(tmp_path)] == IN_ORDER
    assert recorded(tmp_path)[0].speedup == 1.5


def test_levels_are_taken_as_given(kernelbench: Path) -> None:
    levels = parser().parse_args(["--levels", "1,3"]).levels
    found = candidates.kernelbench(kernelbench, levels)
    assert [each.problem for each in found] == [*IN_ORDER[3:], *IN_ORDER[:2]]
    assert "class ModelNew" in found[0].source
    assert "get_inputs" not in found[0].source


def test_the_next_call_skips_what_is_finished(
    judge: FakeJudge, run: Callable[..., int], tmp_path: Path
) -> None:
    assert run(deadline=time.monotonic()) == 5
    assert run(count=2) == 0
    assert judge.new() == IN_ORDER[:2]
    assert run() == 0
    assert judge.new() == IN_ORDER[2:]
    assert run() == 0
    assert judge.new() == []
    assert len(recorded(tmp_path)) == 5


def test_judge_errors_are_repeated_last(judge: FakeJudge, run: Callable[..., int], tmp_path: Path) -> None:
    judge.errors = {"level3-9_e": DIED, "level3-10_d": BROKEN}
    assert run(count=2) == 0
    assert [each.failure for each in recorded(tmp_path)] == ["judge error", "problem error"]
    judge.new()
    judge.errors = {}
    assert run() == 0
    assert judge.new() == [*IN_ORDER[2:], "level3-9_e"]


def test_an_http_error_is_a_judge_error(kernelbench: Path) -> None:
    with JudgeServer(jobs=lambda *_: (500, "no disk", {})) as server, Client(server.url) as client:
        found = client.judge(candidates.kernelbench(kernelbench, [2])[0], "problems/x")
    assert found.failure == "judge error"
    assert "500" in str(found.error)


def test_a_unit_that_takes_too_long_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WAITING_S", 0.2)
    methods: list[str] = []

    def jobs(method: str, *_: object) -> Answer:
        methods.append(method)
        return 200, {"id": "1", "state": "running"}, {}

    with JudgeServer(jobs=jobs) as server, Client(server.url) as client:
        found = client.judge(Candidate("p/c", "p", "r", "s"), "problems/p", limit_s=0)
    assert (found.failure, found.status) == ("given up", "error")
    assert methods[-1] == "DELETE"


def test_a_judge_that_exited_ends_the_call() -> None:
    with JudgeServer() as server:
        url = server.url
    with Client(url) as client, pytest.raises(JudgeUnavailableError, match="the same command again"):
        client.judge(Candidate("p/c", "p", "r", "s"), "problems/p")


def test_judge_and_problem_errors_are_counted_apart(tmp_path: Path) -> None:
    records = [
        verdict("level3-1_a", gpu_ms=2.0, flags=("throttled",), problem_flags=("stochastic",)),
        failure("level3-2_b", BROKEN),
        failure("level3-3_c", DIED),
        verdict("level3-3_c"),
        failure("level3-4_d", "given up: no verdict after 300 s"),
        verdict("level3-5_e", None, status="integrity"),
    ]
    errors, ratios = figures_of(tmp_path, records)
    assert (errors.number, errors.met) == (1, False)
    assert errors.miss == f"level3-3_c {DIED}"
    assert "partial: 5 of 250 problems" in errors.samples
    outcomes = {"passed": 2, "problem error": 1, "given up": 1, "integrity": 1}
    assert errors.details["outcomes"] == outcomes
    listed = [(each["problem"], each["level"], each["error"]) for each in errors.details["exceptions"]]
    assert listed[:2] == [("3_c", "3", DIED), ("2_b", "3", BROKEN)]
    assert [each[0] for each in listed[2:]] == ["4_d", "5_e"]
    assert errors.details["problem_flags"] == {"stochastic": 1}
    assert (ratios.number, ratios.met) == (1.0, None)
    assert ratios.samples == "partial: 5 of 250 problems, 2 with a ratio"


@pytest.mark.parametrize(
    ("done", "outside", "met"), [(250, 12, True), (250, 13, False), (100, 12, None), (100, 13, False)]
)
def test_a_partial_share_is_missed_only_for_certain(
    tmp_path: Path, done: int, outside: int, met: bool | None
) -> None:
    ratios = [1.03] * outside + [0.985] * (done - outside)
    records = [verdict(f"level1-{number}_x", ratio, gpu_ms=0.5) for number, ratio in enumerate(ratios)]
    errors, share = figures_of(tmp_path, records)
    assert (share.met, len(share.details["exceptions"])) == (met, outside)
    assert (share.details["exceptions"][0]["ratio"], share.details["exceptions"][0]["gpu_ms"]) == (1.03, 0.5)
    assert errors.met is (True if done == 250 else None)
    assert ("partial" in share.samples) == (done < 250)


def test_without_a_gpu_only_errors_are_counted(tmp_path: Path) -> None:
    [figure] = figures_of(tmp_path, [verdict("level3-1_a", None), failure("level2-1_b", BROKEN)])
    assert (figure.number, figure.met) == (0, None)


def test_state_without_the_new_fields_is_read(tmp_path: Path) -> None:
    new = {"problem_flags", "baseline_gpu_ms", "baseline_clean_ms"}
    line = {"type": "Judged", **verdict("level1-1_a").model_dump(mode="json", exclude=new)}
    (tmp_path / "cuda-problems.jsonl").write_text(json.dumps(line) + "\n")
    assert recorded(tmp_path) == [verdict("level1-1_a")]


def test_precisions_and_directions_have_states_of_their_own(
    judge: FakeJudge, kernelbench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [
        "--device",
        "cpu",
        "--part",
        "problems",
        "--kernelbench",
        str(kernelbench),
        "--out",
        str(tmp_path),
    ]
    for more in ([], ["--dtype", "bf16"], ["--dtype", "fp16", "--direction", "both"]):
        assert main([*named, *more]) == 0
        assert sorted(judge.new()) == sorted(IN_ORDER)
    assert judge.fields == [("fp32", "forward"), ("bf16", "forward"), ("fp16", "both")]
    assert main([*named, "--dtype", "bf16"]) == 0
    assert judge.new() == []
    table = capsys.readouterr().out
    for variant in ("candidate ", "candidate (bf16)", "candidate (fp16, both)"):
        assert f"the reference as {variant}" in table


def test_other_parts_refuse_a_precision(tmp_path: Path) -> None:
    assert main(["--device", "cpu", "--part", "repeat", "--dtype", "bf16", "--out", str(tmp_path)]) == 2
