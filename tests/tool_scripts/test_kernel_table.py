"""The kernels of tier B: they compile, are right, fail where they should; their table; searching in it."""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from adaexplore.core.errors import ConfigError
from tool_scripts import time_kernel_table
from tool_scripts.search_bench.environment import Outcome
from tool_scripts.search_bench.table import STATUSES, pack, read_table
from tool_scripts.search_bench.table_children import Child, ChildLost, keys_in, order_of
from tool_scripts.search_bench.table_environment import TABLE, Habits, KernelProblem, kernel_problems
from tool_scripts.search_bench.templates.space import FAMILIES, SLIPS, Point, points

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "softmax": (6, 300),
    "layer_norm": (6, 300),
    "reduction": (3, 64, 1),
    "matmul": (64, 64, 64),
    "attention": (2, 64, 16),
}
ABOUT = {"hardware": "a GPU", "versions": {}, "date": "2026-11-21", "command": "python3 ..."}


def shown(family: str, slip: str = "none") -> list[Point]:
    """The smallest candidate of each structure; the interpreter has no bfloat16 products."""
    chosen = FAMILIES[family]
    smallest: dict[str, Point] = {}
    for point in sorted(points(chosen, chosen.shapes[0]), key=size):
        if point.slip == slip and point.choices.get("precision") in (None, "tf32"):
            smallest.setdefault(point.structure, point)
    assert len(smallest) == len(chosen.structures)
    return list(smallest.values())


def size(point: Point) -> int:
    return sum(value for value in point.choices.values() if isinstance(value, int))


def worker(mode: str, order: Mapping[str, Any], tmp_path: Path, **variables: str) -> list[dict[str, Any]]:
    """All answers of a fresh worker to one order."""
    cache = {"TRITON_CACHE_DIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-m", "tool_scripts.search_bench.table_worker", mode],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **cache, **variables},
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_templates_compile_for_an_h200_and_bad_warps_and_blocks_do_not(tmp_path: Path) -> None:
    right = [
        next(p for p in shown(name) if p.structure == f.structures[-1].name) for name, f in FAMILIES.items()
    ]
    slipped = [shown("softmax", slip)[0] for slip in ("odd_warps", "odd_block")]
    answers = worker("compile", {"points": [order_of(point) for point in [*right, *slipped]]}, tmp_path)
    assert [answer["failed"][0] for answer in answers if "failed" in answer] == ["compile_error"] * 2
    assert len(list(tmp_path.rglob("*.cubin"))) >= len(right)


@pytest.mark.slow
def test_every_structure_is_right_and_its_slips_are_caught(tmp_path: Path) -> None:
    right = [Point(name, TINY[name], p.structure, p.choices) for name in FAMILIES for p in shown(name)]
    baselines = [Point(name, TINY[name], "eager", {"slip": "none"}) for name in FAMILIES]
    slipped = [
        Point(
            "softmax", TINY["softmax"], "one_pass", {"WARPS": 4, "exp": "exp", "cache": "keep", "slip": slip}
        )
        for slip in ("half_block", "no_mask", "short_grid", "odd_block")
    ]
    every = [*baselines, *right, *slipped]
    order = {"points": [order_of(point) for point in every], "repeats": 2}
    answers = worker("time", order, tmp_path, TRITON_INTERPRET="1")
    results = {answer["result"]: answer for answer in answers if "result" in answer}
    statuses = [results[number]["status"] for number in range(len(every))]
    assert statuses == ["ok"] * (len(baselines) + len(right)) + ["wrong", "wrong", "wrong", "launch_error"]
    assert all(len(answer["us"]) == 2 for answer in results.values() if answer["status"] == "ok")


def test_a_sample_holds_each_structure_each_slip_and_no_candidate_twice() -> None:
    for family in FAMILIES.values():
        for shape in family.shapes:
            sample = list(points(family, shape))
            assert len({point.key for point in sample}) == len(sample)
            assert 150 <= len(sample) <= 450
    assert {point.slip for f in FAMILIES.values() for s in f.shapes for point in points(f, s)} == {
        "none",
        *SLIPS,
    }


def test_work_starts_with_the_baselines_and_is_balanced_when_cut_short() -> None:
    work = time_kernel_table.every_point(list(FAMILIES))
    shapes = sum(len(family.shapes) for family in FAMILIES.values())
    assert {point.structure for point in work[:shapes]} == {"eager"}
    half = Counter((point.family, point.shape) for point in work[: len(work) // 2])
    assert len(half) == shapes
    assert min(half.values()) >= 80


class Scripted:
    """A child whose answers are given; ``None`` is its death."""

    deaths = 0

    def __init__(self, mode: str) -> None:
        self.about: dict[str, Any] = {}

    def ask(self, order: Mapping[str, Any], wait_s: float) -> Iterator[dict[str, Any]]:
        for number, data in enumerate(order["points"]):
            yield {"begin": number}
            if data["choices"]["WARPS"] == 13:
                Scripted.deaths += 1
                raise ChildLost("died with code 3")
        for number, _ in enumerate(order["points"]):
            yield {"result": number, "status": "ok", "us": [1.0]}

    def close(self) -> None:
        pass


def candidate(warps: int, slip: str = "none", structure: str = "one_pass", **choices: Any) -> Point:
    return Point("softmax", (4, 8), structure, {"WARPS": warps, **choices, "slip": slip})


def test_a_candidate_that_ends_the_child_is_recorded_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_kernel_table, "Child", Scripted)
    file = io.StringIO()
    todo = [candidate(warps) for warps in (1, 13, 2)]
    assert time_kernel_table.time_points(todo, file, 3, time.monotonic() + 60)
    records = {
        data["choices"]["WARPS"]: data["status"] for data in map(json.loads, file.getvalue().splitlines())
    }
    assert records == {13: "launch_error", 1: "ok", 2: "ok"}
    assert Scripted.deaths == 1


def test_a_run_out_of_time_says_that_points_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_kernel_table, "Child", Scripted)
    assert not time_kernel_table.time_points([candidate(1)], io.StringIO(), 3, time.monotonic() - 1)


def test_a_dead_child_is_noticed() -> None:
    child = Child("compile")
    assert list(child.ask({"points": []}, 60)) == []
    child.close()
    with pytest.raises(ChildLost):
        list(child.ask({"points": []}, 60))


def test_what_is_recorded_is_not_done_again_and_a_torn_line_is(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    lines = [json.dumps(ABOUT), json.dumps({**order_of(candidate(1)), "status": "wrong"})]
    records.write_text("\n".join([*lines, json.dumps(order_of(candidate(2)))[:40]]))
    assert keys_in(records) == {candidate(1).key}


RECORDS: list[tuple[Point, str, list[float]]] = [
    (Point("softmax", (4, 8), "eager", {"slip": "none"}), "ok", [40.0, 41.0, 39.0]),
    (candidate(1), "ok", [20.0, 20.2, 19.8]),
    (candidate(2), "ok", [10.0, 10.1, 9.9]),
    (candidate(4), "out_of_resources", []),
    (candidate(2, "no_mask"), "wrong", []),
    (candidate(1, structure="split", exp="exp"), "ok", [5.0]),
    (candidate(1, structure="split", exp="exp2"), "ok", [4.0, 4.5, 3.5]),
    (candidate(1, "odd_warps", "split", exp="exp"), "compile_error", []),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    records, file = tmp_path / "records.jsonl", tmp_path / "table.jsonl.gz"
    lines = [json.dumps(ABOUT)]
    for point, status, us in RECORDS:
        lines.append(json.dumps({**order_of(point), "status": status, **({"us": us} if us else {})}))
    records.write_text("\n".join(lines))
    assert pack(records, file) == len(RECORDS)
    return file


def test_structures_are_stored_from_plain_to_elaborate_whatever_was_timed_first() -> None:
    for landscape in read_table(TABLE).landscapes:
        order = list(dict.fromkeys(timed.point.structure for timed in landscape.timed))
        listed = [structure.name for structure in FAMILIES[landscape.family].structures]
        assert order == [name for name in listed if name in order]


def test_a_packed_table_is_read_back_whole(table: Path) -> None:
    read = read_table(table)
    assert read.about == ABOUT
    (landscape,) = read.landscapes
    assert landscape.eager_us == (40.0, 41.0, 39.0)
    assert [(t.point.key, t.status, list(t.repeats_us)) for t in landscape.timed] == [
        (point.key, status, us) for point, status, us in RECORDS[1:]
    ]
    assert landscape.speedup(landscape.timed[1]) == 4.0


@pytest.mark.parametrize(
    ("line", "text", "reason"),
    [
        (0, "{}", "hardware"),
        (2, "[1, 2", "delimiter"),
        (3, '["none", "ok", 1.0, 2.0, "x"]', "times"),
        (4, '[1, "none", "fast", 1.0]', "fast"),
        (4, '[1, "none", "ok"]', "times"),
        (4, '[1, "none", "wrong", 3.0]', "times"),
        (4, '[1, "none", "ok", -3.0]', "times"),
        (4, "[1]", "status"),
        (1, '[1, "none", "ok", 3.0]', "first structure"),
    ],
)
def test_a_malformed_line_is_named(table: Path, line: int, text: str, reason: str) -> None:
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    lines[line] = text
    table.write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(ConfigError, match=rf"line {line + 1} is malformed .*{reason}"):
        read_table(table)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("x")
    with pytest.raises(ConfigError, match="is not a table of kernels"):
        read_table(tmp_path / "table")


def test_a_shape_without_a_baseline_is_refused(table: Path) -> None:
    lines = gzip.decompress(table.read_bytes()).decode().splitlines()
    table.write_bytes(gzip.compress("\n".join([lines[0], *lines[3:]]).encode()))
    with pytest.raises(ConfigError, match="no time of torch"):
        read_table(table)


NEVER = Habits(small_fails=0, repair_fails=0, large_fails=0, fresh_fails=0)


def problem(table: Path, habits: Habits = NEVER) -> KernelProblem:
    (only,) = kernel_problems(table, habits)
    return only


def at(found: KernelProblem, timed: int, table: Path) -> Outcome:
    """The outcome of arriving at one candidate."""
    return found.arrive(read_table(table).landscapes[0].timed[timed], random.Random(1))


def test_a_measurement_is_a_draw_from_the_repeats_and_the_truth_their_median(table: Path) -> None:
    start = at(problem(table), 1, table)
    timed = start.state.got
    draws = {problem(table).arrive(timed, random.Random(seed)).speedup for seed in range(60)}
    assert draws == {a / b for a in (40.0, 41.0, 39.0) for b in (10.0, 10.1, 9.9)}
    assert start.true_speedup == 4.0


def test_a_small_step_stays_in_the_structure_and_turns_one_axis(table: Path) -> None:
    start = at(problem(table), 5, table)
    assert start.state.got.point.choices["exp"] == "exp2"
    step = problem(table).small(start, random.Random(3))
    assert step.state.got.point.structure == "split"
    assert step.state.got.point.choices["exp"] == "exp"


def test_a_small_step_meets_the_real_failures_beside_a_candidate(table: Path) -> None:
    start = at(problem(table), 1, table)
    steps = [problem(table).small(start, random.Random(seed)) for seed in range(40)]
    assert {step.state.got.point.choices["WARPS"] for step in steps} == {1, 4}
    assert {step.correct for step in steps if step.state.got.point.choices["WARPS"] == 4} == {False}


def test_a_repair_ends_at_the_nearest_candidate_that_works(table: Path) -> None:
    found = problem(table)
    failed = at(found, 2, table)
    assert not failed.correct
    mended = found.small(failed, random.Random(1))
    assert mended.correct
    assert mended.state.got.point.structure == "one_pass"


def test_steps_fail_as_often_as_the_habits_say(table: Path) -> None:
    habits = Habits(small_fails=0.5, fresh_fails=0.6)
    found = problem(table, habits)
    start = at(found, 5, table)
    rng = random.Random(7)
    small = [found.small(start, rng).correct for _ in range(600)]
    assert 1 - sum(small) / len(small) == pytest.approx(0.5, abs=0.07)
    large = [found.large(found.root(rng), (), rng).correct for _ in range(600)]
    assert 1 - sum(large) / len(large) == pytest.approx(0.6, abs=0.07)


def test_a_first_kernel_is_rather_plain_and_a_later_one_rather_different(table: Path) -> None:
    found = problem(table)
    start = at(found, 1, table)
    first = [found.large(found.root(random.Random(s)), (), random.Random(s)) for s in range(300)]
    later = [found.large(start, (start,), random.Random(s)) for s in range(300)]
    share = {
        name: Counter(step.state.got.point.structure for step in steps)["split"] / 300
        for name, steps in (("first", first), ("later", later))
    }
    assert share["first"] == pytest.approx(0.6 / 1.6, abs=0.08)
    assert share["later"] == pytest.approx(0.6 / 0.9, abs=0.08)


def test_a_landscape_without_a_gain_is_left_out(table: Path) -> None:
    lines = gzip.decompress(table.read_bytes()).decode()
    table.write_bytes(
        gzip.compress(
            lines.replace('"ok",40.0,41.0,39.0]', '"ok",3.0]').replace('"ok",40,41,39]', '"ok",3]').encode()
        )
    )
    assert kernel_problems(table) == []


def test_the_environment_needs_no_torch() -> None:
    code = "import sys, tool_scripts.search_bench.table_environment; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_records_that_do_not_exist_cannot_be_packed(tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path / "none.jsonl"), "--pack", str(tmp_path / "table.jsonl.gz")]
    assert time_kernel_table.main(arguments) == ConfigError.exit_code


def test_the_stored_table_has_all_families_with_their_failures_and_is_small() -> None:
    table = read_table(TABLE)
    assert TABLE.stat().st_size <= 300_000
    assert "H200" in table.about["hardware"]
    assert {landscape.family for landscape in table.landscapes} == set(FAMILIES)
    for landscape in table.landscapes:
        found = Counter(timed.status for timed in landscape.timed)
        assert found["ok"] >= 150
        assert min(found[status] for status in STATUSES) >= 1
        assert all(len(timed.repeats_us) >= 3 for timed in landscape.timed if timed.correct)


def test_steps_in_the_stored_table_fail_about_as_often_as_recorded_ones() -> None:
    large, small = [], []
    for found in kernel_problems():
        rng = random.Random(3)
        large += [found.large(found.root(rng), (), rng) for _ in range(100)]
        right = [step for step in large[-100:] if step.correct]
        small += [found.small(rng.choice(right), rng) for _ in range(100)]
    assert 1 - fmean(step.correct for step in large) == pytest.approx(Habits().fresh_fails, abs=0.06)
    assert 1 - fmean(step.correct for step in small) == pytest.approx(Habits().small_fails, abs=0.06)
