"""Selection, state, figures and table of the judge's benchmark; nothing is measured here."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import UsageError
from tool_scripts import bench_judge
from tool_scripts.judge_bench import candidates, correctness_figures, own, speed_figures, table
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.figure import quantile, spread
from tool_scripts.judge_bench.records import Batch, Judged, Ledger, PlainRun, Session
from tool_scripts.judge_bench.service import judged

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super(Model, self).__init__()
    def forward(self, x):
        return x + size
size = 4
def get_inputs():
    return [torch.randn(size)]
def get_init_inputs():
    return []
"""


def trace(steps: list[tuple[str, bool]]) -> dict[str, Any]:
    return {
        "run_dir": "experiments/2_7",
        "reference_src": REFERENCE,
        "steps": [
            {
                "step": number,
                "node_id": number,
                "created_by": "large_step",
                "code": code,
                "error": None,
                "score": {"correct": correct},
            }
            for number, (code, correct) in enumerate(steps)
        ],
    }


def session(hardware: str = "NVIDIA H200") -> Session:
    return Session(
        date="2026-11-20T00:00:00+00:00",
        command="python tool_scripts/bench_judge.py",
        revision="abc",
        hardware=hardware,
        driver="1",
        machine="Linux",
        versions={"torch": "2"},
    )


def verdict(unit: str, status: str = "passed", **changes: Any) -> Judged:
    name = unit.partition("/")[2].rpartition("/")[0] or unit
    fields: dict[str, Any] = {"candidate": name, "problem": name.partition("/")[0], "seconds": 1.0}
    return Judged(unit=unit, status=status, **(fields | changes))


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    return lambda part, device="cuda": Ledger(tmp_path, device, part)


def test_recorded_trajectories_are_read_once_each(tmp_path: Path) -> None:
    steps = [("", False), ("a = 1", True), ("a = 1\n", True), ("b = 2", False)]
    (tmp_path / "p7.json").write_text(json.dumps(trace(steps)))
    (tmp_path / "p8.json.gz").write_bytes(gzip.compress(json.dumps(trace([("c = 3", True)])).encode()))
    found = candidates.read(tmp_path)
    assert [each.id for each in found] == ["p7/step-1", "p7/step-3", "p8/step-0"]
    assert [each.correct for each in found] == [True, False, True]
    assert found[0].reference == REFERENCE


def test_a_trajectory_without_its_reference_takes_kernelbenchs(tmp_path: Path) -> None:
    data = trace([("a = 1", True)])
    del data["reference_src"]
    (tmp_path / "p7.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match="--kernelbench"):
        candidates.read(tmp_path)
    (tmp_path / "kb" / "level2").mkdir(parents=True)
    (tmp_path / "kb" / "level2" / "7_Relu.py").write_text("kb")
    assert candidates.read(tmp_path, tmp_path / "kb")[0].reference == "kb"


@pytest.mark.parametrize("text", ["[]", "{", '{"steps": [{"step": 1, "code": "x"}], "reference_src": "r"}'])
def test_malformed_trajectory_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(UsageError, match=r"odd\.json is not a recorded tree"):
        candidates.read(tmp_path)


def test_pairs_are_read_with_their_problem(tmp_path: Path) -> None:
    for name in ("problem", "one", "two"):
        (tmp_path / "relu").mkdir(exist_ok=True)
        (tmp_path / "relu" / f"{name}.py").write_text(name)
    found = candidates.read(tmp_path)
    assert [(each.id, each.reference, each.correct) for each in found] == [
        ("relu/one", "problem", None),
        ("relu/two", "problem", None),
    ]


def test_selection_follows_seed_and_keeps_recorded_share() -> None:
    pool = [Candidate(f"p/{n}", f"p{n % 3}", "r", f"s{n}", correct=n % 4 != 0) for n in range(100)]
    chosen = candidates.in_recorded_share(pool, 40, seed=1)
    assert [each.correct for each in chosen].count(False) == 10
    assert chosen == candidates.in_recorded_share(pool, 40, seed=1)
    assert chosen != candidates.in_recorded_share(pool, 40, seed=2)
    order = candidates.shuffled(pool, 1, "honest")
    assert sorted(order, key=str) == sorted(pool, key=str)
    assert {each.problem for each in order[:3]} == {"p0", "p1", "p2"}


def test_a_reference_becomes_a_candidate_without_its_inputs() -> None:
    module: dict[str, Any] = {}
    source = candidates.as_candidate(REFERENCE)
    exec(source, module)
    assert module["ModelNew"]()(1) == 5
    assert "Model" not in module
    assert "get_inputs" not in module


def test_own_kernels_are_three_large_and_three_small() -> None:
    names = [each.problem for each in own.kernels()]
    assert [name.partition("-")[0] for name in names] == [own.LARGE] * 3 + [own.SMALL] * 3
    assert all("class ModelNew" in each.source for each in own.kernels())


def test_offline_kernels_are_the_same_each_time() -> None:
    made = own.offline(0, 2)
    assert made == own.offline(0, 2)
    assert len({each.problem for each in made}) == 12


def test_truncated_line_is_measured_again(ledger: Any) -> None:
    first = ledger("aa")
    first.add(verdict("aa/x/0"))
    first.add(verdict("aa/x/1"))
    first.path.write_text(first.path.read_text()[:-20])
    again = ledger("aa")
    assert [each.unit for each in again.of(Judged)] == ["aa/x/0"]
    again.add(verdict("aa/x/1"))
    assert [each.unit for each in ledger("aa").of(Judged)] == ["aa/x/0", "aa/x/1"]


def test_state_of_other_hardware_is_refused(ledger: Any) -> None:
    ledger("aa").open_session(session())
    ledger("aa").open_session(session())
    with pytest.raises(UsageError, match="another hardware"):
        ledger("aa").open_session(session("NVIDIA A100"))


def test_damaged_state_is_named(ledger: Any) -> None:
    ledger("aa").path.write_text('{"type": "Nothing"}\n')
    with pytest.raises(UsageError, match="damaged"):
        ledger("aa")


def test_quantiles_and_spread() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert spread([float(n) for n in range(1, 12)]) == pytest.approx((10 - 2) / 6)


def test_a_verdict_on_the_wire_becomes_a_record() -> None:
    answer = {
        "state": "done",
        "queue_time": 0.5,
        "verdict": {
            "status": "integrity",
            "metadata": {
                "tier": "tf32",
                "problem_flags": ["stochastic"],
                "integrity": ["clock_mismatch", "library_bound"],
                "integrity_evidence": [
                    {"id": "clock_mismatch", "severity": "reject", "evidence": "2 ms"},
                    {"id": "library_bound", "severity": "note", "evidence": "x"},
                ],
            },
            "runtime_stats": {
                "fast_p": 2.0,
                "gpu_ms": 0.5,
                "slot": {"held_s": 1.0, "gpu_s": 0.7},
            },
        },
    }
    found = judged(Candidate("p/c", "p", "r", "s"), "honest/p/c", answer, 3.0)
    assert (found.status, found.rejects, found.tier) == ("integrity", ("clock_mismatch",), "tf32")
    assert (found.speedup, found.gpu_ms, found.slot_held_s, found.slot_gpu_s) == (2.0, 0.5, 1.0, 0.7)
    assert found.problem_flags == ("stochastic",)
    failed = judged(
        Candidate("p/c", "p", "r", "s"), "u", {"state": "failed", "error": "Reference failed"}, 1.0
    )
    assert (failed.status, failed.error) == ("error", "Reference failed")


def test_interpreter_times_are_not_counted() -> None:
    stats = {"fast_p": 1.0, "timing": "interpreter"}
    answer = {"state": "done", "verdict": {"status": "passed", "runtime_stats": stats}}
    assert judged(Candidate("p/c", "p", "r", "s"), "u", answer, 1.0).speedup is None


def test_honest_counts_other_statuses_rejects_and_errors(ledger: Any) -> None:
    plain, state = ledger("plain"), ledger("honest")
    for number in range(210):
        plain.add(PlainRun(candidate=f"p/step-{number}", outcome="passed", seconds=1.0))
        state.add(verdict(f"honest/p/step-{number}", candidate=f"p/step-{number}"))
    plain.add(PlainRun(candidate="p/step-999", outcome="wrong", seconds=1.0))
    [figure] = correctness_figures.honest(plain, state)
    assert (figure.number, figure.met) == (0, True)
    state.add(verdict("honest/p/step-1", "wrong_value", candidate="p/step-1"))
    state.add(verdict("honest/p/step-2", candidate="p/step-2", rejects=("side_stream",)))
    state.add(verdict("honest/p/step-3", "error", candidate="p/step-3", error="judge died"))
    state.add(verdict("honest/p/step-3", candidate="p/step-3"))
    [figure] = correctness_figures.honest(plain, state)
    assert (figure.number, figure.met) == (2, False)
    assert "p/step-2 passed side_stream" in figure.miss


def test_too_few_honest_candidates_are_no_success(ledger: Any) -> None:
    plain, state = ledger("plain"), ledger("honest")
    plain.add(PlainRun(candidate="p/step-1", outcome="passed", seconds=1.0))
    assert list(correctness_figures.honest(plain, state)) == []
    state.add(verdict("honest/p/step-1", candidate="p/step-1"))
    assert next(correctness_figures.honest(plain, state)).met is None


@pytest.mark.parametrize(
    ("noise", "gpu_ms", "met"), [(0.005, 0.2, True), (0.05, 0.2, False), (0.005, 0.05, None)]
)
def test_repeat_needs_small_spread_and_right_sized_kernels(
    ledger: Any, noise: float, gpu_ms: float, met: bool | None
) -> None:
    state = ledger("repeat")
    for name in ("large-a", "large-b", "large-c"):
        for turn in range(20):
            unit = f"repeat/{name}/fused/{turn}"
            state.add(verdict(unit, speedup=1.5 * (1 + noise * (turn % 2)), gpu_ms=gpu_ms))
    [figure] = correctness_figures.repeat(state)
    assert figure.number == pytest.approx(noise, rel=0.2)
    assert figure.met is met


def test_aa_allows_more_to_short_kernels(ledger: Any) -> None:
    state = ledger("aa")
    for problem in range(10):
        for turn in range(5):
            gpu_ms = 0.05 if problem else 1.0
            state.add(verdict(f"aa/p{problem}/reference/{turn}", speedup=1.015, gpu_ms=gpu_ms))
    [figure] = correctness_figures.aa(state)
    assert figure.number == pytest.approx(0.9)
    assert figure.met is False
    assert "aa/p0/reference/0 1.015" in figure.miss


def test_throughput_is_compared_with_the_release(ledger: Any) -> None:
    state = ledger("throughput")
    verdicts = tuple(verdict(f"throughput/p/{n}", error="judge died" if n == 40 else None) for n in range(41))
    state.add(Batch(slots=4, in_flight=8, wall_s=50.0, start_s=5.0, verdicts=verdicts))
    [figure] = speed_figures.throughput(state)
    assert figure.number == pytest.approx(40 * 72 / speed_figures.RELEASE_AN_HOUR)
    assert (figure.met, figure.details["judge_errors"]) == (True, 1)


def test_latency_counts_only_the_status_it_is_about(ledger: Any) -> None:
    state = ledger("latency")
    for number, (status, seconds) in enumerate([("compile", 1.0), ("compile", 2.0), ("launch", 90.0)]):
        state.add(verdict(f"latency/compile/p/{number}", status, seconds=seconds))
    [figure] = speed_figures.latency(state)
    assert (figure.number, figure.met) == (1.5, True)
    assert figure.details["other_statuses"] == {"launch": 1}


def test_busy_is_over_all_slots_together(ledger: Any) -> None:
    state = ledger("honest")
    state.add(verdict("honest/p/1", slot_held_s=1.0, slot_gpu_s=0.9))
    state.add(verdict("honest/p/2", slot_held_s=3.0, slot_gpu_s=0.9))
    state.add(verdict("honest/p/3"))
    [figure] = speed_figures.busy([state])
    assert figure.number == pytest.approx(0.45)
    assert figure.met is False


def test_merging_writes_one_file_for_the_gpu(
    tmp_path: Path, ledger: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ledger("aa")
    state.open_session(session())
    state.add(verdict("aa/p/reference/0", speedup=2.0))
    cpu = ledger("latency", "cpu")
    cpu.open_session(session("AMD"))
    cpu.add(verdict("latency/compile/p/1", "compile"))
    words = ["--merge", "--out", str(tmp_path), "--results", str(tmp_path / "results")]
    assert bench_judge.main(words) == 0
    text = capsys.readouterr().out
    assert "MISSED" in text
    assert "| met |" in text
    data = json.loads((tmp_path / "results" / "nvidia-h200.json").read_text())
    assert data["missed"] == ["the reference against itself within 1.00 +- 0.01 (over 100 us; else 0.02)"]
    assert [each["hardware"] for each in data["sessions"]] == ["NVIDIA H200", "AMD"]


def test_figures_of_two_gpus_are_not_merged(tmp_path: Path, ledger: Any) -> None:
    for part, gpu in (("latency", "NVIDIA H200"), ("aa", "NVIDIA A100")):
        state = ledger(part)
        state.open_session(session(gpu))
        state.add(verdict(f"{part}/compile/p/0", "compile"))
    with pytest.raises(UsageError, match="several GPUs"):
        table.store(table.of_folder(tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--device"),
        (["--merge"], "nothing is measured yet"),
        (["--device", "cpu", "--slots", "0"], "at least 1"),
        (["--device", "cpu", "--candidates", "nowhere"], "there is no folder nowhere"),
        (["--device", "cpu", "--part", "latency"], "--candidates"),
        (["--device", "cpu", "--part", "throughput"], "--candidates"),
        (["--device", "cpu", "--part", "problems"], "--kernelbench"),
        (["--device", "cpu", "--part", "problems", "--kernelbench", "nowhere"], "no level3/N_*.py"),
    ],
)
def test_wrong_use_gives_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, words: list[str], message: str
) -> None:
    assert bench_judge.main([*words, "--out", str(tmp_path)]) == 2
    assert message in caplog.records[-1].getMessage()
    assert "\n" not in caplog.records[-1].getMessage()


def test_every_option_is_explained() -> None:
    assert all(action.help for action in bench_judge.parser()._actions)
