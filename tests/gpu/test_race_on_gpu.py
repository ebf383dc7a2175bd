"""Shared inputs, timed blocks, and honest candidates of unusual habits, on a real GPU."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from online_judge.checks.check import Severity
from online_judge.checks.registry import all_flags
from online_judge.common.cuda_driver import DriverError
from online_judge.common.timing import Stopwatch
from online_judge.common.trees import take_apart
from online_judge.evaluator import costs
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.evaluator.timing import measurement, setup
from online_judge.evaluator.timing.setup import InputPool, TimingSetup
from online_judge.protocol.shared_tensors import Place, SharedTensors
from tests.online_judge.live import LiveJudge, running_judge

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

TIMED = {"measure_performance": True, "num_correct_trials": 3, "num_perf_trials": 100}
TOP = "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n"


def module(forward: str, inputs: str, name: str = "Model", top: str = "", init: str = "pass") -> str:
    """Return a module of this ``forward(self, *args)`` and these inputs."""
    lines = "\n".join(f"        {line}" for line in forward.splitlines())
    return (
        f"{TOP}{top}\nclass {name}(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, *args):\n{lines}\n"
        f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n"
    )


def reference_of(inputs: str, forward: str = "return args[0] * 2") -> Reference:
    return Reference(module(forward, inputs), Seeds(b"key"), "fp32", cuda=True)


@pytest.fixture(scope="module")
def stopwatch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def pools() -> Iterator[Any]:
    """Make input pools that are freed."""
    made: list[InputPool] = []

    def make(inputs: str, count: int = 6) -> InputPool:
        made.append(InputPool(reference_of(inputs), "pool", count, random.Random(5)))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def sums(pool: InputPool) -> list[tuple[int, ...]]:
    return [tuple(costs.checksum(leaf) for leaf in take_apart(given).leaves) for given in pool.sets]


# the pool


def test_no_content_comes_twice(pools: Any) -> None:
    pool = pools("[torch.randn(64, 33), {'a': torch.rand(1000)}]", count=16)
    seen = sums(pool)
    for _ in range(5):
        pool.refresh()
        seen += sums(pool)
    pool.refresh(whole=True)
    seen += sums(pool)
    for leaf in range(2):
        assert len({entry[leaf] for entry in seen}) == len(seen) == 16 * 7


def test_refreshing_changes_a_part_or_the_whole(pools: Any) -> None:
    pool = pools("[torch.randn(512, 512)]")
    before = [given[0].clone() for given in pool.sets]
    pool.refresh()
    changed = [float((given[0] != old).float().mean()) for given, old in zip(pool.sets, before, strict=True)]
    assert all(0 < share < 0.1 for share in changed)
    for given in pool.sets:
        given[0].zero_()
    pool.refresh(whole=True)
    assert all(float((given[0] == 0).float().mean()) < 0.01 for given in pool.sets)


def test_pool_elements_keep_their_position_in_the_draw(pools: Any) -> None:
    pool = pools("[torch.randn(40, 50)]")
    drawn = [reference_of("[torch.randn(40, 50)]").inputs(f"pool:{number}")[0] for number in range(4)]
    for given in pool.sets:
        known = torch.stack([given[0] == draw for draw in drawn]).any(0)
        assert bool(known.all())


def test_structure_shapes_strides_and_addresses(pools: Any) -> None:
    inputs = "[torch.randn(8, 16).t(), (torch.randn(3), 7, None), {'m': torch.rand(2, 3, 4).transpose(0, 2)}]"
    pool = pools(inputs)
    places = set()
    for first, (second, seven, none), named in pool.sets:
        assert (first.shape, first.stride()) == ((16, 8), (1, 16))
        assert (second.shape, seven, none) == ((3,), 7, None)
        assert (named["m"].shape, named["m"].stride()) == ((4, 3, 2), (1, 4, 12))
        places |= {first.data_ptr(), second.data_ptr(), named["m"].data_ptr()}
    assert len(places) == 18
    assert all(place % 512 == 0 for place in places)


def test_integer_and_mask_inputs_use_one_draw(pools: Any) -> None:
    inputs = "[torch.randperm(100), torch.randn(10) > 0, torch.randint(0, 9, (5,), dtype=torch.int32)]"
    pool = pools(inputs)
    for _ in range(3):
        pool.refresh()
        for given in pool.sets:
            assert torch.equal(given[0].sort().values.cpu(), torch.arange(100))
            assert (given[1].dtype, given[2].dtype) == (torch.bool, torch.int32)


def test_structural_zeros_stay(pools: Any) -> None:
    pool = pools("[torch.tril(torch.randn(64, 64))]")
    pool.refresh(whole=True)
    assert all(torch.equal(given[0], given[0].tril()) for given in pool.sets)


def test_constant_inputs_stay_constant(pools: Any) -> None:
    pool = pools("[torch.ones(100)]", count=1)
    pool.refresh()
    assert bool((pool.sets[0][0] == 1).all())


@pytest.mark.parametrize("inputs", ["[torch.empty(0, 4), torch.randn(2)]", "[torch.tensor(0.5)]", "[3, 4.5]"])
def test_inputs_without_elements_or_tensors_are_no_trouble(pools: Any, inputs: str) -> None:
    pool = pools(inputs)
    pool.refresh()
    assert len(pool.sets) == 6


def test_seed_dependent_shapes_cannot_be_timed(pools: Any) -> None:
    with pytest.raises(ReferenceFailed, match="other shapes"):
        pools("[torch.randn(int(torch.randint(3, 1000, ())))]")


def test_changed_copies_are_seen_and_renewed(pools: Any) -> None:
    pool = pools("[torch.randn(100), torch.full((3,), float('nan'))]")
    shared, parcel = pool.share()
    before = sums(pool)
    assert pool.is_unchanged(2)
    shared.view(parcel.places[4])[99] += 1  # the first tensor of list 2
    assert [pool.is_unchanged(number) for number in range(6)] == [True, True, False, True, True, True]
    assert sums(pool) == before
    pool.refresh()
    assert pool.is_unchanged(2)
    shared.free()


def test_written_lists_are_put_back(pools: Any) -> None:
    pool = pools("[torch.randn(100), torch.full((3,), float('nan'))]")
    before, copy = sums(pool), pool.copy_of(2)
    pool.sets[2][0].zero_()
    assert sums(pool) != before
    pool.put_back({2: copy})
    assert sums(pool) == before


def test_shared_memory_holds_nothing_that_was_freed() -> None:
    freed = [torch.ones(2**24, device="cuda") for _ in range(16)]
    torch.cuda.synchronize()
    del freed
    torch.cuda.empty_cache()
    shared, place = SharedTensors(2**26, cuda=True), Place(0, (2**24,), (1,), torch.float32)
    found = bool(shared.view(place).any())
    shared.free()
    assert not found


# the stopwatch


def work(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def sets_of(count: int, size: int = 2**20) -> tuple[list[tuple[torch.Tensor]], list[list[torch.Tensor]]]:
    given = [(torch.randn(size, device="cuda"),) for _ in range(count)]
    return given, [[torch.full((size,), float("nan"), device="cuda")] for _ in range(count)]


def test_block_times_each_call_and_keeps_each_output(stopwatch: Stopwatch) -> None:
    given, places = sets_of(10)
    run = stopwatch.block(work, given, places, flushes=2)
    begin = time.perf_counter()
    run.go()
    wall_ms = (time.perf_counter() - begin) * 1e3
    times = run.times()
    assert len(times.calls) == 10
    assert all(call > 0 for call in times.calls)
    assert min(times.gaps) > stopwatch.flush_ms
    assert times.span < wall_ms
    for (x,), (place,) in zip(given, places, strict=True):
        assert torch.equal(place, work(x))


def test_launches_are_hidden_behind_the_flushes(stopwatch: Stopwatch) -> None:
    given, places = sets_of(20, size=1024)
    run = stopwatch.block(work, given, places, flushes=10)
    run.go()
    run.go()
    assert sorted(run.times().calls)[10] < 0.02


def test_plain_block_has_no_times(stopwatch: Stopwatch) -> None:
    given, places = sets_of(3)
    run = stopwatch.block(work, given, places, marked=False)
    run.go()
    assert (run.times().calls, run.times().span) == ([], 0.0)
    assert torch.equal(places[2][0], work(given[2][0]))


def test_replayed_graph_reads_new_contents(stopwatch: Stopwatch) -> None:
    given, places = sets_of(4)
    for _ in range(3):
        work(given[0][0])
    run = stopwatch.graph(work, given, places)
    given[3][0].normal_()
    torch.cuda.synchronize()
    run.go()
    assert torch.equal(places[3][0], work(given[3][0]))


def test_output_of_another_form_stays_away(stopwatch: Stopwatch) -> None:
    given, places = sets_of(1)
    stopwatch.block(lambda x: x[:5], given, places).go()
    assert bool(places[0][0].isnan().all())


def test_seed_is_set_before_each_call(stopwatch: Stopwatch) -> None:
    given = [(torch.ones(4096, device="cuda"),)] * 3
    places = [[torch.zeros(4096, device="cuda")] for _ in range(3)]

    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, True)

    stopwatch.block(drop, given, places, seeds=[7, 8, 7]).go()
    assert torch.equal(places[0][0], places[2][0])
    assert not torch.equal(places[0][0], places[1][0])
    stopwatch.block(drop, given, places).go()
    assert not torch.equal(places[0][0], places[2][0])


def test_launches_of_seeded_calls_are_timed(stopwatch: Stopwatch) -> None:
    given, places = sets_of(9, size=1024)

    def slow(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0005)
        return work(x)

    def median_ms(seeds: list[int]) -> float:
        flushes = stopwatch.longer_cover(64)
        run = stopwatch.block(slow, given, places, flushes=flushes, seeds=seeds)
        run.go()
        return statistics.median(run.times().calls)

    assert median_ms([]) < 0.1
    assert median_ms([7] * 9) > 0.3


def test_stream_that_was_left_behind_is_undone(stopwatch: Stopwatch) -> None:
    other = torch.cuda.Stream()
    torch.cuda.set_stream(other)
    given, places = sets_of(1)
    stopwatch.block(work, given, places).go()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_warm_up_takes_its_time_and_no_longer(stopwatch: Stopwatch) -> None:
    given, _ = sets_of(4)
    begin = time.perf_counter()
    calls, best_ms = stopwatch.warm_up(work, given, 0.03)
    assert 0.03 <= time.perf_counter() - begin < 1.0
    assert calls > 3
    assert 0 < best_ms < 5


def test_calls_that_wait_for_the_host_are_late(stopwatch: Stopwatch) -> None:
    x = torch.ones(1024, device="cuda")

    def waits() -> torch.Tensor:
        y = x + 1
        time.sleep(0.0005)
        return y + 1

    def late(call: Callable[[], torch.Tensor], flushes: int) -> int:
        run = stopwatch.block(call, [()] * 9, [[torch.empty_like(x)] for _ in range(9)], flushes=flushes)
        run.go()
        return run.times().late

    assert late(waits, 1) == 8  # the first one does not count
    assert late(waits, stopwatch.longer_cover(64)) <= 1
    assert late(lambda: x + 1, stopwatch.cover(0.1)) <= 1


# the setup


def test_clean_time_repeats_itself(stopwatch: Stopwatch) -> None:
    problem = Problem(reference_of("[torch.randn(4096, 8192)]"))
    expected = [torch.empty(4096, 8192, device="meta")]
    call = problem.reference.call("eager")
    times = []
    for seed in range(3):
        rng = random.Random(seed)
        made = setup.TimingSetup(problem.reference, "clean", call, stopwatch, expected, rng, shared=False)
        times.append(made.clean_ms().gpu)
        made.free()
    assert max(times) / min(times) < 1.03
    assert min(times) > 2 * 4096 * 8192 * 4 / 8e12 * 1e3


def test_setup_without_enough_memory_leaves_none_behind(
    stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(reference_of("[torch.randn(1024, 1024)]"))
    expected = [torch.empty(1024, 1024, device="meta")]
    call = problem.reference.call("eager")
    real, made = setup.SharedTensors, []

    def full(nbytes: int, *, cuda: bool) -> Any:
        if len(made) == 3:  # the inputs of both sides and the outputs of one
            raise DriverError("cuMemAlloc failed with CUDA error 2")
        made.append(real(nbytes, cuda=cuda))
        return made[-1]

    monkeypatch.setattr(setup, "SharedTensors", full)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    with pytest.raises(DriverError, match="cuMemAlloc"):
        TimingSetup(problem.reference, "race", call, stopwatch, expected, random.Random(1), shared=True)
    torch.cuda.empty_cache()
    assert before - torch.cuda.mem_get_info()[0] < 64 * 2**20


def test_copies_of_other_strides_take_longer(stopwatch: Stopwatch) -> None:
    expected = [torch.empty(4096, 8192, device="meta")]
    assert measurement.copy_extra_ms(expected, [(8192, 1)], stopwatch) == 0.0
    assert measurement.copy_extra_ms(expected, [(1, 4096)], stopwatch) > 0


# honest candidates


@pytest.fixture(scope="module")
def gpu_judge(cuda: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    with running_judge(tmp_path_factory.mktemp("judge"), JUDGE_DEVICE="cuda") as live:
        yield live


GATE = """
@triton.jit
def gate(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.sigmoid(x) * x, mask=at < n)

def gated(x, y=None):
    y = torch.empty_like(x) if y is None else y
    gate[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
LARGE, SMALL = "[torch.randn(2048, 4096)]", "[torch.randn(128, 512)]"
SILU = "x = args[0]\nreturn torch.sigmoid(x) * x"
MANY = "x = args[0]\nfor _ in range(20):\n    x = torch.sigmoid(x) * x\nreturn x"
SIDE_STREAM = """x = args[0]
y, half = torch.empty_like(x), x.shape[0] // 2
current = torch.cuda.current_stream()
self.side.wait_stream(current)
with torch.cuda.stream(self.side):
    gated(x[:half], y[:half])
gated(x[half:], y[half:])
current.wait_stream(self.side)
return y"""
GRAPH = """x = args[0]
if self.graph is None:
    self.x = x.clone()
    gated(self.x)
    torch.cuda.synchronize()
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.y = gated(self.x)
self.x.copy_(x)
self.graph.replay()
return self.y.clone()"""
DROPOUT = "x = args[0]\nreturn nn.functional.dropout(torch.sigmoid(x) * x, 0.5, True)"
READS_A_VALUE = "x = args[0]\nassert float(x[0, 0]) < 99\nreturn torch.sigmoid(x) * x"
HABITS: dict[str, tuple[str, str, str, str]] = {
    # name: inputs, the reference's forward, the candidate's, the candidate's __init__
    "other strides": (LARGE, SILU, "return gated(args[0].t().contiguous()).t()", "pass"),
    "strides of the reference": (LARGE, SILU.replace("* x", "* x).t()").replace("return ", "return ("),
                                 "return gated(args[0]).t()", "pass"),
    "contiguous where the reference is not": (
        LARGE, SILU.replace("* x", "* x).t()").replace("return ", "return ("),
        "return gated(args[0].t().contiguous())", "pass"),
    "twenty tiny launches": (
        SMALL, MANY, "x = args[0]\nfor _ in range(20):\n    x = gated(x)\nreturn x", "pass"),
    "slow host": (SMALL, SILU, "sum(range(20000))\nreturn gated(args[0])", "pass"),
    "joined side stream": (LARGE, SILU, SIDE_STREAM, "self.side = torch.cuda.Stream()"),
    "joined side stream, small": (SMALL, SILU, SIDE_STREAM, "self.side = torch.cuda.Stream()"),
    "own graph": (SMALL, SILU, GRAPH, "self.graph = None"),
    "waits for the device": (SMALL, SILU, "y = gated(args[0])\ntorch.cuda.synchronize()\nreturn y", "pass"),
    "waits, large": (LARGE, SILU, "y = gated(args[0])\ntorch.cuda.synchronize()\nreturn y", "pass"),
    "asks for a value": (SMALL, SILU, "assert float(args[0][0, 0]) < 99\nreturn gated(args[0])", "pass"),
    "in place where the reference is": (
        LARGE, "x = args[0]\nreturn x.mul_(torch.sigmoid(x))", "x = args[0]\nreturn gated(x, x)", "pass"),
    "several outputs": (
        LARGE, "x = args[0]\ny = torch.sigmoid(x) * x\nreturn {'y': y, 'top': (y.amax(1), y > 0)}",
        "y = gated(args[0])\nreturn {'y': y, 'top': (y.amax(1), y > 0)}", "pass"),
    "dropout in training": (
        LARGE, DROPOUT, "return nn.functional.dropout(gated(args[0]), 0.5, True)", "pass"),
    "dropout in training, small": (
        SMALL, DROPOUT, "return nn.functional.dropout(gated(args[0]), 0.5, True)", "pass"),
    "whole numbers": (
        "[torch.randint(0, 1000, (4096, 512))]", "return args[0] * 3 + 1", "return args[0] * 3 + 1", "pass"),
    "a scalar": (LARGE, "return args[0].sum() / args[0].numel() + 1", "return args[0].mean() + 1", "pass"),
    "scratch memory that is kept": (
        LARGE, SILU,
        "x = args[0]\nif self.held is None:\n    self.held = torch.empty_like(x)\n"
        "self.held.copy_(x)\nreturn gated(self.held)", "self.held = None"),
}  # fmt: skip


HUGE = "[torch.randn(2**14, 2**14)]"
"""1 GiB: outputs that are compared at once instead of being kept."""


def test_huge_outputs_can_be_timed(gpu_judge: LiveJudge) -> None:
    answer = gpu_judge.evaluate(
        module("return gated(args[0])", HUGE, "ModelNew", GATE), module(SILU, HUGE), **TIMED
    )
    assert answer["correctness"], answer
    assert answer["runtime_stats"]["fast_p"] > 1.2


def test_huge_timed_outputs_are_compared_whole(gpu_judge: LiveJudge) -> None:
    """Four elements of 2**28 are missing; no sample would find them."""
    lazy = (
        "self.n = getattr(self, 'n', 0) + 1\nx = args[0]\ny = torch.empty_like(x)\n"
        "end = -4 if self.n > 40 else None\n"  # after the checks
        "gated(x.view(-1)[:end], y.view(-1)[:end])\nreturn y"
    )
    answer = gpu_judge.evaluate(module(lazy, HUGE, "ModelNew", GATE), module(SILU, HUGE), **TIMED)
    assert answer["metadata"]["status"] == "wrong_value", answer


@pytest.mark.parametrize("inputs", [SMALL, LARGE])
@pytest.mark.parametrize("forward", [DROPOUT, READS_A_VALUE], ids=["random", "reads a value"])
def test_reference_against_itself_is_about_one(gpu_judge: LiveJudge, forward: str, inputs: str) -> None:
    answer = gpu_judge.evaluate(module(forward, inputs, "ModelNew"), module(forward, inputs), **TIMED)
    assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.05), answer


@pytest.mark.parametrize("habit", HABITS)
def test_honest_candidate_is_not_rejected(gpu_judge: LiveJudge, habit: str) -> None:
    inputs, reference, forward, init = HABITS[habit]
    candidate = module(forward, inputs, "ModelNew", GATE, init)
    answer = gpu_judge.evaluate(candidate, module(reference, inputs), **TIMED)
    found = answer["metadata"].get("integrity", [])
    assert answer["correctness"], answer
    assert [flag for flag in found if all_flags()[flag].severity is Severity.REJECT] == []
    stats = answer["runtime_stats"]
    assert stats["score_ms"] >= 0.9 * stats["gpu_ms"]
    assert stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"]


def test_host_time_is_excluded_when_replay_confirms_events(gpu_judge: LiveJudge) -> None:
    inputs, reference, forward, init = HABITS["twenty tiny launches"]
    few = forward.replace("range(20)", "range(6)")  # so short a call that flushes hide its launches
    stats = gpu_judge.evaluate(
        module(few, inputs, "ModelNew", GATE, init),
        module(reference.replace("range(20)", "range(6)"), inputs),
        **TIMED,
    )["runtime_stats"]
    assert stats["gpu_ms"] <= stats["score_ms"] <= 1.3 * stats["gpu_ms"] + 0.01
    assert stats["score_ms"] < stats["e2e_ms"]


def test_batch_norm_in_training_keeps_its_statistics(gpu_judge: LiveJudge) -> None:
    inputs = "[torch.randn(64, 32, 28, 28)]"
    forward, init = "return torch.relu(self.norm(args[0]))", "self.norm = nn.BatchNorm2d(32)"
    answer = gpu_judge.evaluate(
        module(forward, inputs, "ModelNew", init=init), module(forward, inputs, init=init), **TIMED
    )
    assert answer["correctness"], answer
    assert answer["runtime_stats"]["fast_p"] == pytest.approx(1.0, abs=0.05)


# dishonest ones


@pytest.mark.parametrize(
    ("forward", "flags"),
    [
        # what warming up does to the inputs gains nothing
        ("x = args[0]\ny = gated(x)\nx.zero_()\nreturn y", {"inputs_changed", "timed_output_wrong"}),
        # every call after the twentieth repeats its first result
        (
            "self.n = getattr(self, 'n', 0) + 1\n"
            "if self.n < 20:\n    self.y = gated(args[0])\nreturn self.y.clone()",
            {"timed_output_wrong"},
        ),
        # work that goes on when the call has returned
        (
            "y, x = torch.empty_like(args[0]), args[0]\nside = torch.cuda.Stream()\n"
            "side.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(side):\n    torch.cuda._sleep(20_000_000)\n    gated(x, y)\nreturn y",
            {"side_stream", "timed_output_wrong", "clock_mismatch"},
        ),
    ],
)
def test_cheat_is_refused(gpu_judge: LiveJudge, forward: str, flags: set[str]) -> None:
    answer = gpu_judge.evaluate(module(forward, LARGE, "ModelNew", GATE), module(SILU, LARGE), **TIMED)
    assert not answer["correctness"], answer
    if answer["metadata"]["status"] == "integrity":
        assert flags & set(answer["metadata"]["integrity"])
    else:
        assert answer["metadata"]["status"] in ("wrong_value", "nonfinite", "nondeterministic")
