"""Small parts of the judge's benchmark on a judge without a GPU."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tool_scripts.judge_bench import own, parts
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.plain import compare
from tool_scripts.judge_bench.plan import Plan
from tool_scripts.judge_bench.records import Batch, Judged, Ledger, PlainRun

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


def compared(source: str, limit_s: float = 100.0) -> PlainRun:
    return compare(Candidate("p/c", "p", REFERENCE, source), "cpu", limit_s, {})


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
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        (CANDIDATE, "passed", ""),
        (WRONG, "wrong", "not close"),
        (CANDIDATE.replace("x * self.weight", "x.nothing"), "error", "AttributeError"),
        ("import os\nos._exit(3)", "crash", ""),
    ],
)
def test_a_plain_comparison_tells_how_it_ended(source: str, outcome: str, reason: str) -> None:
    end = compared(source)
    assert end.outcome == outcome, end
    assert reason in end.detail


def test_child_is_killed_at_its_time_limit() -> None:
    end = compared("import time\ntime.sleep(100)", limit_s=0.5)
    assert end.outcome == "timeout"
    assert end.seconds < 10


def test_honest_candidates_pass_and_are_judged_once(tmp_path: Path) -> None:
    usual = {each.problem: each for each in reversed(own.offline(0, 1))}
    chosen = [usual["quickstart-level1-3_softmax"], usual["quickstart-level2-1_linear_bias_gelu"]]
    ledger = Ledger(tmp_path, "cpu", "honest")
    assert parts.honest(plan(tmp_path, own=chosen), ledger) == 0
    plain = Ledger(tmp_path, "cpu", "plain")
    assert [each.outcome for each in plain.of(PlainRun)] == ["passed", "passed"]
    assert [(each.status, each.rejects) for each in ledger.of(Judged)] == [("passed", ())] * 2, ledger.of(
        Judged
    )
    lines = ledger.path.read_text(), plain.path.read_text()
    again = Ledger(tmp_path, "cpu", "honest")
    assert parts.honest(plan(tmp_path, own=chosen), again) == 0
    assert (again.path.read_text(), plain.path.read_text()) == lines


def test_expired_part_leaves_units(tmp_path: Path) -> None:
    over = plan(tmp_path, own=own.offline(0, 1)[:2], deadline=time.monotonic())
    ledger = Ledger(tmp_path, "cpu", "honest")
    assert parts.honest(over, ledger) == 2
    assert Ledger(tmp_path, "cpu", "plain").of(PlainRun) == []


def test_throughput_has_all_candidates_judged(tmp_path: Path) -> None:
    sources = {"good": (CANDIDATE, True), "bad": (WRONG, False)}
    recorded = [
        Candidate(f"p/{name}", "p", REFERENCE, source, correct=correct)
        for name, (source, correct) in sources.items()
    ]
    ledger = Ledger(tmp_path, "cpu", "throughput")
    assert parts.throughput(plan(tmp_path, recorded=recorded), ledger) == 0
    [batch] = ledger.of(Batch)
    found = {each.candidate: each.status for each in batch.verdicts}
    assert found == {"p/good": "passed", "p/bad": "wrong_value"}
