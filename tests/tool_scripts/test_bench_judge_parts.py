"""Small parts of the judge's benchmark on a judge without a GPU."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tool_scripts.judge_bench import own, verdict_parts
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.children import ChildEnd, run_child
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.plan import Plan
from tool_scripts.judge_bench.queue_part import queue
from tool_scripts.judge_bench.records import Batch, Flood, Judged, NaiveRun, PlainRun

pytestmark = pytest.mark.slow

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8))
    def forward(self, x):
        return x * self.weight
def get_inputs():
    return [torch.randn(4, 8)]
def get_init_inputs():
    return []
"""
CANDIDATE = REFERENCE.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")
WRONG = CANDIDATE.replace("x * self.weight", "x + self.weight")


def child(program: str, source: str, limit_s: float = 100.0) -> ChildEnd:
    return run_child(program, Candidate("p/c", "p", REFERENCE, source), "cpu", limit_s, {})


def plan(folder: Path, **changes: object) -> Plan:
    base = Plan(
        device="cpu",
        recorded=(),
        own=(),
        out=folder,
        deadline=time.monotonic() + 200,
        slots=1,
        plain_jobs=1,
        child_limit_s=100,
        child_environment={"TRITON_INTERPRET": "1"},
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        (CANDIDATE, "passed", ""),
        (WRONG, "wrong", "differs by up to"),
        (CANDIDATE.replace("x * self.weight", "x.nothing"), "error", "AttributeError"),
        ("import os\nos._exit(3)", "crash", ""),
    ],
)
def test_a_plain_comparison_tells_how_it_ended(source: str, outcome: str, reason: str) -> None:
    end = child("plain", source)
    assert end.outcome == outcome, end
    assert reason in end.reason


def test_a_child_is_killed_when_its_time_is_up() -> None:
    end = child("plain", "import time\ntime.sleep(100)", limit_s=0.5)
    assert end.outcome == "timeout"
    assert end.seconds < 10


def test_a_naive_run_tells_its_stages() -> None:
    end = child("naive", CANDIDATE)
    assert end.outcome == "passed", end
    stages = end.result["stages_s"]
    assert list(stages)[:3] == ["interpreter", "imports", "device_start"]
    assert {"time_candidate", "time_baseline"} < set(stages)
    assert 0.5 * end.seconds < sum(stages.values()) <= end.seconds
    assert end.result["speedup"] > 0
    assert child("naive", WRONG).outcome == "wrong"


def test_honest_candidates_of_two_problems_pass_and_are_judged_once(tmp_path: Path) -> None:
    usual = {each.problem: each for each in reversed(own.offline(0, 1))}
    chosen = [usual["quickstart-level1-3_softmax"], usual["quickstart-level2-1_linear_bias_gelu"]]
    ledger = Ledger(tmp_path, "cpu", "honest")
    assert verdict_parts.honest(plan(tmp_path, own=chosen), ledger) == 0
    plain = Ledger(tmp_path, "cpu", "plain")
    assert [each.outcome for each in plain.of(PlainRun)] == ["passed", "passed"]
    assert [(each.status, each.rejects) for each in ledger.of(Judged)] == [("passed", ())] * 2, ledger.of(
        Judged
    )
    lines = ledger.path.read_text(), plain.path.read_text()
    again = Ledger(tmp_path, "cpu", "honest")
    assert verdict_parts.honest(plan(tmp_path, own=chosen), again) == 0
    assert (again.path.read_text(), plain.path.read_text()) == lines


def test_a_part_whose_time_is_up_leaves_units(tmp_path: Path) -> None:
    over = plan(tmp_path, own=own.offline(0, 1)[:2], deadline=time.monotonic())
    ledger = Ledger(tmp_path, "cpu", "honest")
    assert verdict_parts.honest(over, ledger) == 2
    assert Ledger(tmp_path, "cpu", "plain").of(PlainRun) == []


def test_throughput_takes_what_the_naive_runs_ended_with(tmp_path: Path) -> None:
    sources = {
        "good": (CANDIDATE, True),
        "bad": (WRONG, False),
        "slow": ("import time\ntime.sleep(99)", True),
    }
    recorded = [
        Candidate(f"p/{name}", "p", REFERENCE, source, correct=correct)
        for name, (source, correct) in sources.items()
    ]
    asked = plan(tmp_path, recorded=recorded, count=3)
    impatient = replace(asked, recorded=recorded[2:], count=1, child_limit_s=0.5)
    for each in (impatient, asked):
        assert verdict_parts.naive(each, Ledger(tmp_path, "cpu", "naive")) == 0
    runs = {run.candidate: run.outcome for run in Ledger(tmp_path, "cpu", "naive").of(NaiveRun)}
    assert runs == {"p/good": "passed", "p/bad": "wrong", "p/slow": "timeout"}
    ledger = Ledger(tmp_path, "cpu", "throughput")
    assert verdict_parts.throughput(asked, ledger) == 0
    [batch] = ledger.of(Batch)
    found = {each.candidate: each.status for each in batch.verdicts}
    assert found == {"p/good": "passed", "p/bad": "wrong_value"}


def test_a_flood_fills_the_queue_exactly(tmp_path: Path) -> None:
    asked = plan(tmp_path, queue_submissions=30, queue_limit=5, queue_sleep_s=2.0, queue_finish=2)
    ledger = Ledger(tmp_path, "cpu", "queue")
    assert queue(asked, ledger) == 0
    [flood] = ledger.of(Flood)
    assert (flood.running_and_waiting, flood.accepted, flood.refused) == (6, 6, 24), flood
    assert (flood.retry_after, flood.lost, flood.started_twice, flood.distinct_ids) == (24, 0, 0, 6)
    assert flood.statuses["passed"] >= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cpu-queue-judge.log", "cpu-queue.jsonl"]
