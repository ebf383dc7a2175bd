"""The table of tier B, and searching in it."""

import gzip
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tool_scripts.search_bench.environment import Outcome
from tool_scripts.search_bench.kernel_table import (
    TABLE,
    Habits,
    KernelProblem,
    Timed,
    kernel_problems,
    read_table,
)

ROOT = Path(__file__).resolve().parents[2]
ABOUT = {"hardware": "a GPU", "versions": {}, "date": "2026-11-21", "command": "python3 ..."}
LINES: list[Any] = [
    ABOUT,
    {"family": "softmax", "shape": [4, 8], "structure": "eager", "axes": []},
    ["none", "ok", 40.0, 41.0, 39.0],
    {"family": "softmax", "shape": [4, 8], "structure": "one_pass", "axes": ["WARPS"]},
    [1, "none", "ok", 20.0, 20.2, 19.8],
    [2, "none", "ok", 10.0, 10.1, 9.9],
    [4, "none", "out_of_resources"],
    [2, "no_mask", "wrong"],
    {"family": "softmax", "shape": [4, 8], "structure": "split", "axes": ["WARPS", "exp"]},
    [1, "exp", "none", "ok", 5.0],
    [1, "exp2", "none", "ok", 4.0, 4.5, 3.5],
    [1, "exp", "odd_warps", "compile_error"],
]


def timed(
    warps: int, status: str, *us: float, slip: str = "none", structure: str = "one_pass", **more: str
) -> Timed:
    return Timed(structure, {"WARPS": warps, **more, "slip": slip}, status, us)


TIMED = (
    timed(1, "ok", 20.0, 20.2, 19.8),
    timed(2, "ok", 10.0, 10.1, 9.9),
    timed(4, "out_of_resources"),
    timed(2, "wrong", slip="no_mask"),
    timed(1, "ok", 5.0, structure="split", exp="exp"),
    timed(1, "ok", 4.0, 4.5, 3.5, structure="split", exp="exp2"),
    timed(1, "compile_error", structure="split", exp="exp", slip="odd_warps"),
)
FAILURES = ("compile_error", "out_of_resources", "launch_error", "wrong")
STRUCTURES = {  # from plain to elaborate
    "softmax": ["torch_parts", "three_pass", "online", "one_pass", "multi_row", "persistent", "split"],
    "layer_norm": ["torch_statistics", "three_pass", "two_pass", "one_pass", "multi_row", "split", "atomic"],
    "reduction": ["torch_sum", "one_stage", "torch_second", "two_stage", "atomic"],
    "matmul": ["epilogue_only", "torch_epilogue", "fused", "split_atomic", "split_buffer", "persistent"],
    "attention": ["softmax_only", "full_row", "flash_all", "flash_skip", "flash_two_loops"],
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.jsonl.gz"
    lines = [json.dumps(line, separators=(",", ":")) for line in LINES]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return file


def test_structures_are_stored_from_plain_to_elaborate() -> None:
    for landscape in read_table():
        order = list(dict.fromkeys(timed.structure for timed in landscape.timed))
        assert order == [name for name in STRUCTURES[landscape.name.partition(" ")[0]] if name in order]


def test_a_table_is_read_whole(table: Path) -> None:
    (landscape,) = read_table(table)
    assert landscape.name == "softmax 4x8"
    assert landscape.eager_us == (40.0, 41.0, 39.0)
    assert landscape.timed == TIMED
    assert landscape.speedup(landscape.timed[1]) == 4.0


NEVER = Habits(small_fails=0, repair_fails=0, large_fails=0, fresh_fails=0)


def problem(table: Path, habits: Habits = NEVER) -> KernelProblem:
    (only,) = kernel_problems(table, habits)
    return only


def at(found: KernelProblem, timed: int, table: Path) -> Outcome:
    """Return the outcome of arriving at one candidate."""
    return found.arrive(read_table(table)[0].timed[timed], random.Random(1))


def test_measurement_is_sampled_and_truth_is_the_median(table: Path) -> None:
    start = at(problem(table), 1, table)
    timed = start.state.got
    draws = {problem(table).arrive(timed, random.Random(seed)).speedup for seed in range(60)}
    assert draws == {a / b for a in (40.0, 41.0, 39.0) for b in (10.0, 10.1, 9.9)}
    assert start.true_speedup == 4.0


def test_small_step_keeps_structure_and_changes_one_axis(table: Path) -> None:
    start = at(problem(table), 5, table)
    assert start.state.got.choices["exp"] == "exp2"
    step = problem(table).small(start, random.Random(3))
    assert step.state.got.structure == "split"
    assert step.state.got.choices["exp"] == "exp"


def test_small_step_meets_recorded_failures_nearby(table: Path) -> None:
    start = at(problem(table), 1, table)
    steps = [problem(table).small(start, random.Random(seed)) for seed in range(40)]
    assert {step.state.got.choices["WARPS"] for step in steps} == {1, 4}
    assert {step.correct for step in steps if step.state.got.choices["WARPS"] == 4} == {False}


def test_repair_ends_at_nearest_working_candidate(table: Path) -> None:
    found = problem(table)
    failed = at(found, 2, table)
    assert not failed.correct
    mended = found.small(failed, random.Random(1))
    assert mended.correct
    assert mended.state.got.structure == "one_pass"


def test_steps_fail_as_often_as_the_habits_say(table: Path) -> None:
    habits = Habits(small_fails=0.5, fresh_fails=0.6)
    found = problem(table, habits)
    start = at(found, 5, table)
    rng = random.Random(7)
    small = [found.small(start, rng).correct for _ in range(600)]
    assert 1 - sum(small) / len(small) == pytest.approx(0.5, abs=0.07)
    large = [found.large((), rng).correct for _ in range(600)]
    assert 1 - sum(large) / len(large) == pytest.approx(0.6, abs=0.07)


def test_first_kernels_are_plainer_than_later_ones(table: Path) -> None:
    found = problem(table)
    start = at(found, 1, table)
    first = [found.large((), random.Random(s)) for s in range(300)]
    later = [found.large((start,), random.Random(s)) for s in range(300)]
    share = {
        name: Counter(step.state.got.structure for step in steps)["split"] / 300
        for name, steps in (("first", first), ("later", later))
    }
    assert share["first"] == pytest.approx(0.6 / 1.6, abs=0.08)
    assert share["later"] == pytest.approx(0.6 / 0.9, abs=0.08)


def test_a_landscape_without_a_gain_is_left_out(table: Path) -> None:
    lines = gzip.decompress(table.read_bytes()).decode()
    table.write_bytes(gzip.compress(lines.replace('"ok",40.0,41.0,39.0]', '"ok",3.0]').encode()))
    assert kernel_problems(table) == []


def test_the_environment_needs_no_torch() -> None:
    code = "import sys, tool_scripts.search_bench.kernel_table; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_stored_table_is_small_and_has_all_families() -> None:
    landscapes = read_table()
    assert TABLE.stat().st_size <= 300_000
    assert "H200" in json.loads(gzip.decompress(TABLE.read_bytes()).splitlines()[0])["hardware"]
    assert {landscape.name.partition(" ")[0] for landscape in landscapes} == set(STRUCTURES)
    for landscape in landscapes:
        found = Counter(timed.status for timed in landscape.timed)
        assert found["ok"] >= 150
        assert min(found[status] for status in FAILURES) >= 1
        assert all(len(timed.repeats_us) >= 3 for timed in landscape.timed if timed.correct)


def test_stored_table_steps_fail_at_recorded_rates() -> None:
    large, small = [], []
    for found in kernel_problems():
        rng = random.Random(3)
        large += [found.large((), rng) for _ in range(100)]
        right = [step for step in large[-100:] if step.correct]
        small += [found.small(rng.choice(right), rng) for _ in range(100)]
    assert 1 - fmean(step.correct for step in large) == pytest.approx(Habits().fresh_fails, abs=0.06)
    assert 1 - fmean(step.correct for step in small) == pytest.approx(Habits().small_fails, abs=0.06)
